//! Limits how many messages that are not authentic are kept. They go to the dead-letter queue, where a person can read
//! them. A flood of them would hide the messages that SQS moved there and that have to be put back.

use freehold_protocol::{InstallId, Timestamp};

use super::{AcceptReport, Accepted, Arrival};
use crate::metrics::{self, About, Metric};
use crate::ports::Expect;
use crate::table::{self, Decided, Stored, Unbelievable, load, put_until, unbelievable_key};
use crate::{AppError, Kind};

/// The window in which such messages are counted, in seconds.
const WINDOW_SECS: u64 = 24 * 3600;
/// The maximum number of such messages that are kept in that time: for each install, and for all unknown roles
/// together.
const MAX_KEPT: u32 = 100;

impl AcceptReport {
    /// Accepts one message as [`Self::accept`] does. A message that can never be accepted is dropped after `MAX_KEPT`
    /// such messages were kept in the window.
    ///
    /// # Errors
    /// As [`Self::accept`]; Invalid for a message that has to be kept as a dead letter.
    pub async fn accept_or_drop(&self, body: &str, arrival: Arrival) -> Result<Accepted, AppError> {
        let install = arrival.install.clone();
        let about = About { install: install.as_ref(), ..About::default() };
        match self.accept(body, arrival).await {
            Err(error) if error.kind == Kind::Invalid => {
                if self.count_unbelievable(install.as_ref(), self.clock.now()).await? {
                    // Messages that are dropped do not count, so that a flood of them does not cause a flood of log lines.
                    metrics::count(Metric::ReportsRefused, about);
                    return Err(error);
                }
                Ok(Accepted::Refused(error.message))
            }
            answered => answered,
        }
    }

    /// Counts a message that is not authentic. Returns whether it is to be kept.
    async fn count_unbelievable(&self, install: Option<&InstallId>, now: Timestamp) -> Result<bool, AppError> {
        let whose = install.map_or("unknown roles", InstallId::as_str);
        let counts =
            table::change(&*self.store, ("the count of messages that are not authentic, of", &whose), || async {
                let known: Option<Stored<Unbelievable>> = load(&*self.store, &unbelievable_key(install)).await?;
                let expect = known.as_ref().map_or(Expect::Absent, |known| Expect::Rev(known.rev));
                let current =
                    known.map(|known| known.value).filter(|known| now.since(known.since) < WINDOW_SECS * 1000);
                let (since, messages) = current.map_or((now, 0), |current| (current.since, current.messages));
                if messages >= MAX_KEPT {
                    return Ok(Decided::Keep(None));
                }
                let (install, by) = (install.cloned(), self.writer.clone());
                let counted = Unbelievable { install, since, messages: messages + 1, by };
                let write = put_until(&counted, expect, now.plus_secs(2 * WINDOW_SECS))?;
                Ok(Decided::Commit(vec![write], Some(counted.messages)))
            });
        let counted = counts.await?;
        if counted == Some(MAX_KEPT) {
            // One log line a day, so that a flood of messages does not cause a flood of log lines.
            let whose = install.map_or_else(|| whose.to_owned(), |id| format!("install `{id}`"));
            tracing::error!(
                "{MAX_KEPT} messages of {whose} were rejected as invalid within a day: further ones are dropped"
            );
        }
        Ok(counted.is_some())
    }
}
