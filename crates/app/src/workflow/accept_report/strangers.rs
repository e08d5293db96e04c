//! Stores which roles of an app trust a stranger, as the report of an attempt's end names them. A role that was not
//! known causes a notification.

use freehold_domain::install::Install;
use freehold_domain::install::strangers::StrangerTrusts;
use freehold_domain::job::Job;
use freehold_domain::notification::of_strangers;
use freehold_protocol::Timestamp;
use freehold_protocol::report::{AttemptEvent, AttemptReport};

use super::AcceptReport;
use crate::AppError;
use crate::notification::task::notify_at;
use crate::ports::Expect;
use crate::table::{self, Decided, Stored, StrangerTrustsRecord, load, put, stranger_trusts_key};

impl AcceptReport {
    /// Stores the roles that trust a stranger after an attempt at `job`, as a report that the queue took at `sent_at`
    /// names them. The same commit stores the task of the notification about those that are new.
    ///
    /// The report counts also if the job rejects it, for example because the attempt lost its lease: the trust exists.
    pub(super) async fn note_strangers(
        &self,
        install: &Install,
        job: &Job,
        report: &AttemptReport,
        sent_at: Timestamp,
    ) -> Result<(), AppError> {
        let AttemptEvent::Finished { roles_trusting_strangers: Some(found), .. } = &report.event else { return Ok(()) };
        let id = &install.id;
        table::change(&*self.store, ("the record of roles that trust strangers, of install", id), || async {
            let known: Option<Stored<StrangerTrustsRecord>> = load(&*self.store, &stranger_trusts_key(id)).await?;
            let (before, expect) = match known {
                Some(Stored { value, rev }) => (value.trusts, Expect::Rev(rev)),
                None => (StrangerTrusts::default(), Expect::Absent),
            };
            let Some((trusts, new)) = before.after(sent_at, found) else { return Ok(Decided::Keep(())) };
            let mut writes = vec![put(&StrangerTrustsRecord { install: id.clone(), trusts }, expect)?];
            if let Some(notification) = of_strangers(job, install.app(), &new, sent_at) {
                // The task has the time of the report, so that a second delivery of the report writes the same task.
                writes.push(notify_at(sent_at, id, notification)?);
            }
            Ok(Decided::Commit(writes, ()))
        })
        .await
    }
}
