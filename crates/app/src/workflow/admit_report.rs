//! Decides only by the sender of a report whether the report is handled, waits or is dropped. A report costs nothing
//! before that: it is not parsed, no signature is checked, and the table is not read for each report.
//!
//! Each copy of the function handles some reports of every sender without the table. For a sender that sends more, the
//! copy claims reports from the sender's budget in the table, many at a time, so that all copies together respect the
//! budget.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use freehold_domain::reports::budget::{Budget, Claim, Rate, Rates, ReportBudget};
use freehold_protocol::{InstallId, Timestamp};

use crate::AppError;
use crate::ports::{Clock, Expect, Store};
use crate::table::{self, BudgetRecord, Budgeted, Decided, KnownSender, Stored, budget_key, known_sender_key, load};

/// The reports of one sender that one copy of the function handles without a claim.
const FREE: Rate = Rate { most: 30, per_hour: 1_200 };
/// The number of reports that one claim asks for.
const CLAIMED: u32 = 50;
/// The time, in seconds, for which a copy of the function remembers to which install a role belongs.
const KNOWN_SECS: u64 = 300;
/// The time, in seconds, for which a copy of the function remembers that a role belongs to no known install.
const UNKNOWN_SECS: u64 = 10;
/// The time for which the reports of a sender without a budget are dropped before its budget is read again, in seconds.
const CLOSED_SECS: u64 = 10;
/// The time for which the budget of an unknown role is kept, in seconds.
const BUDGET_TTL_SECS: u64 = 2 * 24 * 3600;
/// The number of senders that one copy of the function remembers. It forgets all of them when there are more: a customer
/// can make many roles.
const MAX_SENDERS: usize = 10_000;

/// The use case that checks senders, with its ports and the senders that it remembers.
pub struct AdmitReport {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    seen: Mutex<Seen>,
}

/// The decision about a report.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Admitted {
    /// The report is handled; if its sender is a known role, only as a report of this install.
    Handle(Option<InstallId>),
    /// The report waits for a later try; the text says why.
    Wait(String),
    /// The report is dropped, and counted in the budget of its sender.
    Drop,
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

/// The numbers of one sender's reports that this copy of the function may still handle.
struct Count {
    free: Budget,
    handled: u32,
    waiting: u32,
    /// The number of reports that were dropped and are not in the table yet.
    dropped: u32,
    /// The time until which the sender's reports are dropped without another read of its budget.
    closed_until: Timestamp,
}

impl Count {
    const fn new(now: Timestamp) -> Self {
        Self {
            free: Budget::full(FREE, now),
            handled: 0,
            waiting: 0,
            dropped: 0,
            closed_until: Timestamp::from_millis(0),
        }
    }

    /// Returns what happens to the next report without a claim; `None` if a claim has to decide.
    fn next(&mut self, now: Timestamp) -> Option<Verdict> {
        let (free, left) = self.free.take(FREE, 1, now);
        self.free = left;
        if free > 0 {
            return Some(Verdict::Handle);
        }
        if self.handled > 0 {
            self.handled -= 1;
            return Some(Verdict::Handle);
        }
        if self.waiting > 0 {
            self.waiting -= 1;
            return Some(Verdict::Wait);
        }
        if now < self.closed_until {
            self.dropped = self.dropped.saturating_add(1);
            return Some(Verdict::Drop);
        }
        None
    }
}

#[derive(Clone, Copy)]
enum Verdict {
    Handle,
    Wait,
    Drop,
}

impl AdmitReport {
    /// Returns the use case of one copy of the function, which remembers no sender yet.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock, seen: Mutex::default() }
    }

    /// Decides about the next report of the role with the unique id `sender`. The queues' policies permit only roles to
    /// send from other accounts, so a report without a role is from the tenant's own account, and has no budget.
    ///
    /// # Errors
    /// The store's errors. The report then returns to its queue.
    pub async fn admit(&self, sender: Option<&str>) -> Result<Admitted, AppError> {
        let Some(sender) = sender else { return Ok(Admitted::Handle(None)) };
        let now = self.clock.now();
        let install = self.install_of(sender, now).await?;
        let of = install.clone().map_or_else(|| Budgeted::Role(sender.to_owned()), Budgeted::Install);
        let known = self.seen().counts.entry(of.clone()).or_insert_with(|| Count::new(now)).next(now);
        let verdict = match known {
            Some(verdict) => verdict,
            None => self.claim(&of, now).await?,
        };
        Ok(match verdict {
            Verdict::Handle => Admitted::Handle(install),
            Verdict::Wait => Admitted::Wait(format!("{of} has sent more reports than are handled at once")),
            Verdict::Drop => Admitted::Drop,
        })
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
            *seen = Seen::default();
        }
        seen.senders.insert(sender.to_owned(), Sender { install: install.clone(), at: now });
        Ok(install)
    }

    /// Claims reports from the budget in the table.
    async fn claim(&self, of: &Budgeted, now: Timestamp) -> Result<Verdict, AppError> {
        let dropped = self.seen().counts.get(of).map_or(0, |count| count.dropped);
        let (rates, is_install) = match of {
            Budgeted::Install(_) => (Rates::INSTALL, true),
            Budgeted::Role(_) => (Rates::UNKNOWN, false),
        };
        let claim = table::change(&*self.store, ("the budget of", of), || async {
            let found: Option<Stored<BudgetRecord>> = load(&*self.store, &budget_key(of)).await?;
            let expect = found.as_ref().map_or(Expect::Absent, |found| Expect::Rev(found.rev));
            let budget = found.map_or_else(|| ReportBudget::new(rates, now), |found| found.value.budget);
            let (claim, budget) = budget.claim(rates, CLAIMED, dropped, now);
            let record = BudgetRecord { of: of.clone(), budget };
            let write = if is_install {
                table::put(&record, expect)?
            } else {
                table::put_until(&record, expect, now.plus_secs(BUDGET_TTL_SECS))?
            };
            Ok(Decided::Commit(vec![write], claim))
        })
        .await?;
        let mut seen = self.seen();
        let count = seen.counts.entry(of.clone()).or_insert_with(|| Count::new(now));
        count.dropped = count.dropped.saturating_sub(dropped);
        Ok(match claim {
            Claim::Handle(more) => {
                count.handled += more.saturating_sub(1);
                Verdict::Handle
            }
            Claim::Wait(more) => {
                count.waiting += more.saturating_sub(1);
                Verdict::Wait
            }
            Claim::Drop => {
                count.closed_until = now.plus_secs(CLOSED_SECS);
                count.dropped = count.dropped.saturating_add(1);
                // One log line per read of the budget, so that a flood of reports does not cause a flood of log lines.
                tracing::error!("Reports of {of} are being dropped: it has sent more than its budget of reports");
                Verdict::Drop
            }
        })
    }
}
