//! Refuses reports: records the reason, and orders an attempt that lost its job to stop.

use freehold_domain::install::Install;
use freehold_domain::job::{Job, Rejected};
use freehold_protocol::envelope::PublicKey;
use freehold_protocol::report::{Fence, Refusal, RefusalReason, Report, ReportBody};
use freehold_protocol::{Digest, Envelope, JobId, KeyId, Timestamp};

use super::{AcceptReport, Accepted, bounds, unbelievable};
use crate::AppError;
use crate::messages::DispatchMessage;
use crate::ports::{Committed, Expect};
use crate::subject;
use crate::table::{
    self, NOTICE_SECS, Refused, RetiredNotice, Stored, TRACE_TTL_SECS, evidence, load, notice_key, put_until,
};
use crate::text_limit::cut;

/// The time in seconds within which another report requests a second copy of the same notice. SQS drops second copies
/// for five minutes.
const NOTICE_AGAIN_SECS: u64 = 240;

impl AcceptReport {
    /// Records a refused report, and orders the attempt to stop if it lost its job.
    pub(super) async fn reject(
        &self,
        job: &Job,
        runner: &KeyId,
        fence: Fence,
        rejected: &Rejected,
        body: &str,
    ) -> Result<Accepted, AppError> {
        let reason = rejected.to_string();
        tracing::warn!(job.id = %job.id, "Refused a report: {reason}");
        self.record(table::job_pk(&job.id), body, Some(runner.clone()), reason.clone()).await?;
        let lost = matches!(rejected, Rejected::Stale { .. } | Rejected::Held { .. } | Rejected::Ended { .. });
        if lost {
            self.stop_attempt(&job.id, fence, runner).await?;
        }
        Ok(Accepted::Refused(reason))
    }

    /// Refuses a report under a retired key of the install. After the signature was verified, records the report and
    /// notifies the runner that its key was replaced. The runner then gives its orders back. The runner gets no order
    /// to stop the attempt, because it would delete the order of a stopped attempt.
    pub(super) async fn refuse_retired_key(
        &self,
        install: &Install,
        retired: &KeyId,
        (envelope, body): (&Envelope, &str),
    ) -> Result<Accepted, AppError> {
        let key = self.retired_key(install, retired).await?;
        let report: Report = envelope.open(&key).map_err(unbelievable)?;
        let reason = format!("runner key `{retired}` was replaced");
        tracing::warn!(install.id = %install.id, "Refused a report: {reason}");
        let pk = match &report.body {
            ReportBody::Attempt(attempt) => {
                let job = self.job_of(install, &attempt.job).await?;
                let job = job.ok_or_else(|| not_its_job(install, &attempt.job))?;
                table::job_pk(&job.id)
            }
            ReportBody::Hello(_) | ReportBody::Heartbeat | ReportBody::Refused(_) | ReportBody::Away(_) => {
                table::install_pk(&install.id)
            }
        };
        self.record(pk, body, Some(retired.clone()), reason.clone()).await?;
        self.notify_retired(install, retired).await?;
        Ok(Accepted::Refused(reason))
    }

    /// Asks `dispatch-job` to tell a runner that its key was replaced, at most once per [`NOTICE_SECS`]. A call within
    /// [`NOTICE_AGAIN_SECS`] asks for the same notice again, which SQS drops if the first one was sent.
    pub(super) async fn notify_retired(&self, install: &Install, runner: &KeyId) -> Result<(), AppError> {
        let now = self.clock.now();
        let last: Option<Stored<RetiredNotice>> = load(&*self.store, &notice_key(&install.id, runner)).await?;
        let at = match &last {
            Some(last) if now.since(last.value.at) < NOTICE_AGAIN_SECS * 1000 => last.value.at,
            Some(last) if now.since(last.value.at) < NOTICE_SECS * 1000 => return Ok(()),
            Some(_) | None => {
                let notice = RetiredNotice { install: install.id.clone(), runner: runner.clone(), at: now };
                let expect = last.map_or(Expect::Absent, |last| Expect::Rev(last.rev));
                let write = put_until(&notice, expect, now.plus_secs(TRACE_TTL_SECS))?;
                if self.store.commit(vec![write]).await? != Committed::Done {
                    // Another report of the same key asks for the notice at this moment.
                    return Ok(());
                }
                now
            }
        };
        let notice = DispatchMessage::Retired { install: install.id.clone(), runner: runner.clone(), at };
        Ok(self.outbox.dispatch(&[notice]).await?)
    }

    /// Returns the public key of a retired runner, from the hello that announced it.
    pub(super) async fn retired_key(&self, install: &Install, key: &KeyId) -> Result<PublicKey, AppError> {
        let hello = evidence::kept(&*self.store, &evidence::hello_key(&install.id, key)).await?;
        let announced = hello.and_then(|hello| hello.signed().envelope().peek::<Report>().ok());
        match announced.map(|report| report.body) {
            Some(ReportBody::Hello(hello)) if hello.public_key.key_id() == *key => Ok(hello.public_key),
            _ => Err(AppError::invalid(format!(
                "the hello that announced the retired runner key `{key}` is not stored in the tenant"
            ))),
        }
    }

    /// Records that the runner refused an order. If the order was refused because its job is cancelled, or because the
    /// runner does not understand it, the job ends.
    pub(super) async fn order_refused(
        &self,
        install: &Install,
        runner: &KeyId,
        refusal: &Refusal,
        (body, sent_at): (&str, Timestamp),
    ) -> Result<Accepted, AppError> {
        let detail = cut(&refusal.detail, bounds::MAX_REASON_BYTES);
        let reason = format!("order refused as {}: {detail}", refusal.reason.as_str());
        tracing::warn!(install.id = %install.id, "Runner of `{}`: {reason}", install.id);
        // A refusal that names another install's job, or no job, is recorded under the reporting runner's own install.
        let job = match &refusal.job {
            Some((id, fence)) => self.job_of(install, id).await?.map(|job| (job, *fence)),
            None => None,
        };
        let pk = job.as_ref().map_or_else(|| table::install_pk(&install.id), |(job, _)| table::job_pk(&job.id));
        self.record(pk, body, Some(runner.clone()), reason.clone()).await?;
        match (refusal.reason, job) {
            (RefusalReason::Cancelled, Some((job, fence))) => {
                self.cancelled_unstarted(runner, &job, (fence, sent_at)).await
            }
            (RefusalReason::NotUnderstood, Some((job, fence))) => {
                self.not_understood(runner, &job, (fence, sent_at), reason).await
            }
            (RefusalReason::Expired, Some((job, fence))) if refusal.given_back => {
                self.given_back(runner, &job, (fence, sent_at)).await
            }
            (RefusalReason::OutsideWindow, Some((job, fence))) => {
                self.outside_window(runner, &job, refusal, (fence, sent_at)).await
            }
            _ => Ok(Accepted::Taken),
        }
    }

    /// Returns the job if it exists and belongs to the install.
    pub(super) async fn job_of(&self, install: &Install, id: &JobId) -> Result<Option<Job>, AppError> {
        let job = load::<Job>(&*self.store, &table::job_key(id)).await?;
        Ok(job.map(|job| job.value).filter(|job| job.install == install.id).inspect(subject::note_job))
    }

    /// Sends a cancel that stops only this attempt of the job.
    pub(super) async fn stop_attempt(&self, job: &JobId, fence: Fence, runner: &KeyId) -> Result<(), AppError> {
        let cancel = DispatchMessage::Cancel {
            job: job.clone(),
            dispatch: fence.dispatch,
            receive: Some(fence.receive),
            runner: Some(runner.clone()),
        };
        Ok(self.outbox.dispatch(&[cancel]).await?)
    }

    pub(super) async fn record(
        &self,
        pk: String,
        body: &str,
        runner: Option<KeyId>,
        reason: String,
    ) -> Result<(), AppError> {
        let message = Digest::of(body.as_bytes());
        let refused = Refused { pk, message, at: self.clock.now(), runner, refusal: None, reason };
        table::store_refusal(&*self.store, &refused).await
    }
}

/// Returns the error for a report about a job that does not exist, or belongs to another install.
pub(super) fn not_its_job(install: &Install, job: &JobId) -> AppError {
    AppError::invalid(format!("job `{job}` does not belong to install `{}`", install.id))
}
