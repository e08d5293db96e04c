//! Stores the customer's change windows that a hello announces, and handles orders that a runner gives back because the
//! customer lets no change start.

use freehold_domain::install::Install;
use freehold_domain::install::change_gate::is_still_true;
use freehold_domain::job::{Job, JobEvent, WindowEvent};
use freehold_protocol::report::{ChangeTimes, Fence, Refusal};
use freehold_protocol::{KeyId, Timestamp};

use super::{AcceptReport, Accepted, bounds};
use crate::AppError;
use crate::ports::Expect;
use crate::table::{self, ChangeTimesRecord, Contact, Decided, Stored, changes_key, contact_key, load, put};
use crate::text_limit::cut;
use crate::workflow::advance::{self, Advanced, Reported};

impl AcceptReport {
    /// Stores the announced times, unless the stored times have the same meaning. A change makes the next sweep handle
    /// the workflow of the install, whose jobs may wait for a window.
    pub(super) async fn note_changes(
        &self,
        install: &Install,
        announced: Option<&ChangeTimes>,
        at: Timestamp,
    ) -> Result<(), AppError> {
        table::change(&*self.store, ("the record of change windows of install", &install.id), || async {
            let known: Option<Stored<ChangeTimesRecord>> = load(&*self.store, &changes_key(&install.id)).await?;
            let expect = known.as_ref().map_or(Expect::Absent, |known| Expect::Rev(known.rev));
            let keeps = match (known.as_ref().map(|known| &known.value), announced) {
                (Some(known), _) if known.at > at => true,
                (None, None) => true,
                (Some(ChangeTimesRecord { times: Some(known), .. }), Some(new)) => is_still_true(known, new),
                (Some(ChangeTimesRecord { times, .. }), new) => times.is_none() && new.is_none(),
                (None, Some(_)) => false,
            };
            if keeps || self.is_older(install, at).await? {
                return Ok(Decided::Keep(()));
            }
            let record = ChangeTimesRecord { install: install.id.clone(), at, times: announced.cloned() };
            let mut writes = vec![put(&record, expect)?];
            if let Some(live) = &install.live {
                let now = self.clock.now();
                writes.extend(table::sweep_soon_writes(&*self.store, live, "change windows", now).await?);
            }
            Ok(Decided::Commit(writes, ()))
        })
        .await
    }

    /// Returns whether a newer hello came before this one.
    pub(super) async fn is_older(&self, install: &Install, at: Timestamp) -> Result<bool, AppError> {
        let contact: Option<Stored<Contact>> = load(&*self.store, &contact_key(&install.id)).await?;
        Ok(contact.is_some_and(|known| known.value.contact.announced > at))
    }

    /// Lets a job wait after the runner gave back its order, because the customer lets no change start now.
    pub(super) async fn outside_window(
        &self,
        runner: &KeyId,
        job: &Job,
        refusal: &Refusal,
        (fence, sent_at): (Fence, Timestamp),
    ) -> Result<Accepted, AppError> {
        let reason = cut(&refusal.detail, bounds::MAX_REASON_BYTES).to_owned();
        let window = WindowEvent::Refused { fence, runner: runner.clone(), until: refusal.until, reason };
        let reported = Reported { message: None, sent_at, last_log: None, install: None };
        let event = JobEvent::Window(window);
        match advance::job_event(&*self.store, &job.id, &event, Some(reported), self.clock.now()).await? {
            Advanced::Now { workflow: Some(workflow), started, .. } => {
                self.after_end(&workflow, &started, sent_at).await?;
            }
            Advanced::Now { workflow: None, .. } | Advanced::NotYet(_) | Advanced::Rejected(..) => {}
        }
        Ok(Accepted::Taken)
    }
}
