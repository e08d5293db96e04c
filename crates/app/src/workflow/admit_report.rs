//! Decides only by the sender of a report whether the report is handled, waits or is dropped. A report costs nothing
//! before that: it is not parsed, no signature is checked, and the table is not read for each report.
//!
//! Each copy of the function handles some reports of every sender without the table. For a sender that sends more, the
//! copy claims reports from the sender's budget in the table, many at a time, so that all copies together respect the
//! budget. A report that waits was counted once. It is not counted again when it comes back, and it is never dropped.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use freehold_domain::reports::budget::{Budget, Rate, Rates, ReportBudget};
use freehold_protocol::{InstallId, Timestamp};

use crate::AppError;
use crate::ports::{Clock, Expect, Store};
use crate::table::{
    self, BudgetRecord, Budgeted, Decided, KnownSender, Stored, WriterId, budget_key, known_sender_key, load,
};

/// The reports of one sender that one copy of the function handles without a claim.
const FREE: Rate = Rate { most: 30, per_hour: 1_200 };
/// The number of reports that one claim asks for.
const CLAIMED: u32 = 50;
/// The time, in seconds, for which a copy of the function remembers to which install a role belongs.
const KNOWN_SECS: u64 = 300;
/// The time, in seconds, for which a copy of the function remembers that a role belongs to no known install.
const UNKNOWN_SECS: u64 = 10;
/// The time for which the reports of a sender whose budget is used up wait or are dropped before the budget is read
/// again, in seconds.
const CLOSED_SECS: u64 = 10;
/// The time for which the budgets of unknown roles are kept, in seconds.
const BUDGET_TTL_SECS: u64 = 2 * 24 * 3600;
/// The number of senders that one copy of the function remembers. It forgets all of them when there are more: a customer
/// can make many roles. It keeps the counts of installs and of all unknown roles together, which are few.
const MAX_SENDERS: usize = 10_000;

/// The use case that checks senders, with its ports and the senders that it remembers.
pub struct AdmitReport {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    writer: WriterId,
    seen: Mutex<Seen>,
}

/// The decision about a report.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Admitted {
    /// The report is handled; if its sender is a known role, only as a report of this install.
    Handle(Option<InstallId>),
    /// The report waits with the dead letters for a later try.
    Wait(Waiting),
    /// The report is dropped, and counted in the budget of its sender.
    Drop,
}

/// A report that waits with the dead letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// The reason why it waits.
    pub why: String,
    /// The owner of the budget in which it is counted, also when its role is known later; absent without a budget.
    pub charged: Option<Budgeted>,
}

#[derive(Default)]
struct Seen {
    senders: HashMap<String, Sender>,
    counts: HashMap<Budgeted, Count>,
}

/// The install to which a sender's role belonged when the table was read at the time `at`; no install for an unknown
/// role.
#[derive(Clone)]
struct Sender {
    install: Option<InstallId>,
    at: Timestamp,
}

/// The counts of one sender's reports in this copy of the function.
struct Count {
    free: Budget,
    handled: u32,
    waiting: u32,
    /// The number of reports that had waited, were handled and are not given back in the table yet.
    left: u32,
    /// The number of reports that were dropped and are not in the table yet.
    dropped: u32,
    /// The time before which no claim is made for reports to handle, because the last one found the budget used up.
    full_until: Timestamp,
    /// The time before which no claim is made for reports that wait, because the last one found the budget used up.
    closed_until: Timestamp,
}

impl Count {
    const fn new(now: Timestamp) -> Self {
        Self {
            free: Budget::full(FREE, now),
            handled: 0,
            waiting: 0,
            left: 0,
            dropped: 0,
            full_until: Timestamp::from_millis(0),
            closed_until: Timestamp::from_millis(0),
        }
    }

    /// Returns whether the next report is handled now; `None` if a claim has to decide.
    fn handles(&mut self, now: Timestamp) -> Option<bool> {
        let (free, left) = self.free.take(FREE, 1, now);
        self.free = left;
        if free > 0 {
            return Some(true);
        }
        if self.handled > 0 {
            self.handled -= 1;
            return Some(true);
        }
        (now < self.full_until).then_some(false)
    }

    /// Returns whether the next report may wait; `None` if a claim has to decide. A report that may not wait is dropped.
    fn lets_wait(&mut self, now: Timestamp) -> Option<bool> {
        if self.waiting > 0 {
            self.waiting -= 1;
            return Some(true);
        }
        if now < self.closed_until {
            self.dropped = self.dropped.saturating_add(1);
            return Some(false);
        }
        None
    }
}

impl AdmitReport {
    /// Returns the use case of one copy of the function, which remembers no sender yet.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>, writer: WriterId) -> Self {
        Self { store, clock, writer, seen: Mutex::default() }
    }

    /// Decides about the next report of the role with the unique id `sender`. The queues' policies permit only roles to
    /// send from other accounts, so a report without a role is from the tenant's own account, and has no budget.
    ///
    /// # Errors
    /// The store's errors. The report then returns to its queue.
    pub async fn admit(&self, sender: Option<&str>, has_waited: bool) -> Result<Admitted, AppError> {
        let Some(sender) = sender else { return Ok(Admitted::Handle(None)) };
        let now = self.clock.now();
        let install = self.install_of(sender, now).await?;
        let of = install.clone().map_or_else(|| Budgeted::Role(sender.to_owned()), Budgeted::Install);
        if self.handles(&of, now).await? {
            return Ok(Admitted::Handle(install));
        }
        let why = format!("{of} has sent more reports than are handled at once");
        Ok(self.waiting(install, has_waited, why, now).await?.map_or(Admitted::Drop, Admitted::Wait))
    }

    /// Sets aside a report that was admitted, but cannot be handled yet. Returns `None` if it may not wait with the
    /// dead letters, and is dropped.
    ///
    /// # Errors
    /// As [`Self::admit`].
    pub async fn set_aside(
        &self,
        sender: Option<&str>,
        has_waited: bool,
        why: String,
    ) -> Result<Option<Waiting>, AppError> {
        let Some(sender) = sender else { return Ok(Some(Waiting { why, charged: None })) };
        let now = self.clock.now();
        let install = self.install_of(sender, now).await?;
        self.waiting(install, has_waited, why, now).await
    }

    /// Notes that a report which had waited was handled, so that another report may wait in the budget in which it was
    /// counted: `charged`, or that of its sender if its copy does not name one. If that fails, fewer reports may wait
    /// for a while.
    pub async fn note_handled(&self, sender: Option<&str>, charged: Option<&Budgeted>) {
        let Some(sender) = sender else { return };
        let now = self.clock.now();
        let noted = async {
            let own = self.install_of(sender, now).await?.map_or(Budgeted::UnknownRoles, Budgeted::Install);
            let of = match charged {
                Some(Budgeted::UnknownRoles) => Budgeted::UnknownRoles,
                // The install may be forgotten, and must get no new row.
                Some(charged) if *charged != own => return Ok(()),
                Some(_) | None => own,
            };
            let left = self.with_count(&of, now, |count| {
                count.left += 1;
                count.left
            });
            if left < CLAIMED {
                return Ok(());
            }
            let give_back = |budget: &ReportBudget| budget.claim_waiting(rates(&of), 0, (left, 0), now);
            self.change_budget(&of, give_back, now).await?;
            self.with_count(&of, now, |count| count.left = count.left.saturating_sub(left));
            Ok::<_, AppError>(())
        };
        if let Err(error) = noted.await {
            tracing::warn!("Could not make room for another report that waits: {error}");
        }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the install whose runner is known to have the role.
    async fn install_of(&self, sender: &str, now: Timestamp) -> Result<Option<InstallId>, AppError> {
        let remembered = self.seen().senders.get(sender).cloned();
        let is_fresh = |found: &Sender| {
            let secs = if found.install.is_some() { KNOWN_SECS } else { UNKNOWN_SECS };
            now.since(found.at) < secs * 1000
        };
        if let Some(found) = remembered.filter(is_fresh) {
            return Ok(found.install);
        }
        let row: Option<Stored<KnownSender>> = load(&*self.store, &known_sender_key(sender)).await?;
        let install = row.map(|row| row.value.install);
        let mut seen = self.seen();
        if seen.senders.len() >= MAX_SENDERS {
            seen.senders.clear();
            seen.counts.retain(|of, _| !matches!(of, Budgeted::Role(_)));
        }
        seen.senders.insert(sender.to_owned(), Sender { install: install.clone(), at: now });
        Ok(install)
    }

    /// Returns whether the next report of the sender is handled now.
    async fn handles(&self, of: &Budgeted, now: Timestamp) -> Result<bool, AppError> {
        if let Some(known) = self.with_count(of, now, |count| count.handles(now)) {
            return Ok(known);
        }
        let claim = |budget: &ReportBudget| budget.claim_handled(rates(of), CLAIMED, now);
        let claimed = self.change_budget(of, claim, now).await?;
        self.with_count(of, now, |count| match claimed.checked_sub(1) {
            Some(more) => count.handled += more,
            None => count.full_until = now.plus_secs(CLOSED_SECS),
        });
        Ok(claimed > 0)
    }

    /// Returns the next report of an install, or of an unknown role, as one that waits; `None` if it is dropped. A
    /// report that has waited was counted before.
    async fn waiting(
        &self,
        install: Option<InstallId>,
        has_waited: bool,
        why: String,
        now: Timestamp,
    ) -> Result<Option<Waiting>, AppError> {
        let of = install.map_or(Budgeted::UnknownRoles, Budgeted::Install);
        let waits = has_waited || self.lets_wait(&of, now).await?;
        Ok(waits.then_some(Waiting { why, charged: Some(of) }))
    }

    /// Returns whether the next report of the sender may wait. Otherwise it is dropped.
    async fn lets_wait(&self, of: &Budgeted, now: Timestamp) -> Result<bool, AppError> {
        if let Some(known) = self.with_count(of, now, |count| count.lets_wait(now)) {
            return Ok(known);
        }
        let (left, dropped) = self.with_count(of, now, |count| (count.left, count.dropped));
        let claim = |budget: &ReportBudget| budget.claim_waiting(rates(of), CLAIMED, (left, dropped), now);
        let claimed = self.change_budget(of, claim, now).await?;
        self.with_count(of, now, |count| {
            count.left = count.left.saturating_sub(left);
            count.dropped = count.dropped.saturating_sub(dropped);
            match claimed.checked_sub(1) {
                Some(more) => count.waiting += more,
                None => {
                    count.closed_until = now.plus_secs(CLOSED_SECS);
                    count.dropped = count.dropped.saturating_add(1);
                }
            }
        });
        if claimed == 0 {
            // One log line per read of the budget, so that a flood of reports does not cause a flood of log lines.
            tracing::error!("Reports of {of} are being dropped: more of them wait than may wait at a time");
        }
        Ok(claimed > 0)
    }

    fn with_count<T>(&self, of: &Budgeted, now: Timestamp, change: impl FnOnce(&mut Count) -> T) -> T {
        change(self.seen().counts.entry(of.clone()).or_insert_with(|| Count::new(now)))
    }

    /// Changes the budget in the table, and returns the number of reports that `claim` returns.
    async fn change_budget(
        &self,
        of: &Budgeted,
        claim: impl Fn(&ReportBudget) -> (u32, ReportBudget) + Send + Sync,
        now: Timestamp,
    ) -> Result<u32, AppError> {
        table::change(&*self.store, ("the budget of", of), || async {
            let found: Option<Stored<BudgetRecord>> = load(&*self.store, &budget_key(of)).await?;
            let expect = found.as_ref().map_or(Expect::Absent, |found| Expect::Rev(found.rev));
            let before = found.map_or_else(|| ReportBudget::new(rates(of), now), |found| found.value.budget);
            let (claimed, budget) = claim(&before);
            if budget == before {
                return Ok(Decided::Keep(claimed));
            }
            let record = BudgetRecord { of: of.clone(), budget, by: self.writer.clone() };
            let write = match of {
                Budgeted::Install(_) => table::put(&record, expect)?,
                Budgeted::Role(_) | Budgeted::UnknownRoles => {
                    table::put_until(&record, expect, now.plus_secs(BUDGET_TTL_SECS))?
                }
            };
            Ok(Decided::Commit(vec![write], claimed))
        })
        .await
    }
}

/// Returns the rates of a budget.
const fn rates(of: &Budgeted) -> Rates {
    match of {
        Budgeted::Install(_) => Rates::INSTALL,
        Budgeted::Role(_) => Rates::UNKNOWN,
        Budgeted::UnknownRoles => Rates::UNKNOWN_ROLES,
    }
}
