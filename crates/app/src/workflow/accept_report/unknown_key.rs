//! Lets reports of unknown keys wait in the queue for the hello that announces the key, and bounds how many of them one
//! known role, or all unknown roles together, may have there. Messages that wait count against the 120,000 messages of
//! a queue that may be in flight (Amazon SQS quotas), so one sender could otherwise keep the reports of all others from
//! being received.

use freehold_domain::install::Install;
use freehold_protocol::{KeyId, Timestamp};

use super::{AcceptReport, Accepted, Arrival};
use crate::AppError;
use crate::ports::Expect;
use crate::table::{self, Decided, Stored, UnknownReports, load, put_until, unknown_reports_key};

/// The window in which reports of unknown keys are counted, in seconds.
const WINDOW_SECS: u64 = 3600;
/// The maximum number of receives of such reports in that time: of one role that is known, or of all unknown roles
/// together, because a customer can make many roles. A report that waits is received about ten times in the first hour
/// and four times in each later hour.
const MAX_RECEIVES: u32 = 5_000;
/// The sender under which the reports of all unknown roles are counted.
const UNKNOWN_ROLES: &str = "unknown-roles";

impl AcceptReport {
    /// Lets a report whose key is not known wait: returns an error, after which SQS delivers the report again, or sets
    /// the report aside if its sender has too many such reports. The report is never refused for good, because the
    /// hello that announces its key may be late.
    pub(super) async fn wait_for_key(
        &self,
        install: &Install,
        key: &KeyId,
        arrival: &Arrival,
    ) -> Result<Accepted, AppError> {
        let waits = || {
            AppError::conflict(format!(
                "key `{key}` is not the runner key of install `{}`, or the hello that announces it has not arrived yet",
                install.id
            ))
        };
        let Some(sender) = &arrival.sender else { return Err(waits()) };
        let (counted, whose) = match arrival.install {
            Some(_) => (sender.as_str(), format!("role `{sender}` has")),
            None => (UNKNOWN_ROLES, "unknown roles have".to_owned()),
        };
        if self.count_unknown(counted, self.clock.now()).await? {
            return Err(waits());
        }
        Ok(Accepted::Aside(format!(
            "{whose} sent too many reports that are signed with keys that no runner has announced; if this continues, \
             restart the runner of role `{sender}`, so that it announces its key again"
        )))
    }

    /// Counts the receipt of a report of an unknown key. Returns false when there are too many such reports of
    /// `sender`, or so many at once that this one cannot be counted.
    async fn count_unknown(&self, sender: &str, now: Timestamp) -> Result<bool, AppError> {
        let counts = table::change(&*self.store, ("the count of unknown keys of", &sender), || async {
            let known: Option<Stored<UnknownReports>> = load(&*self.store, &unknown_reports_key(sender)).await?;
            let expect = known.as_ref().map_or(Expect::Absent, |known| Expect::Rev(known.rev));
            let current = known.map(|known| known.value).filter(|known| now.since(known.since) < WINDOW_SECS * 1000);
            let (since, receives) = current.map_or((now, 0), |current| (current.since, current.receives));
            if receives >= MAX_RECEIVES {
                return Ok(Decided::Keep(false));
            }
            let (sender, by) = (sender.to_owned(), self.writer.clone());
            let counted = UnknownReports { sender, since, receives: receives + 1, by };
            let write = put_until(&counted, expect, now.plus_secs(2 * WINDOW_SECS))?;
            Ok(Decided::Commit(vec![write], true))
        });
        match counts.await {
            Err(error) if error.is_transient() => Ok(false),
            done => done,
        }
    }
}
