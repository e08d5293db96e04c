//! Refuses reports: records the reason, and orders an attempt that lost its job to stop.

use freehold_domain::install::Install;
use freehold_domain::job::{Job, Rejected};
use freehold_protocol::envelope::PublicKey;
use freehold_protocol::report::{Fence, Refusal, RefusalReason, Report, ReportBody};
use freehold_protocol::{Digest, Envelope, JobId, KeyId};

use super::{AcceptReport, Accepted, bounds, unbelievable};
use crate::AppError;
use crate::messages::DispatchMessage;
use crate::table::{self, Refused, evidence, load};

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

    /// Refuses a report whose key is not the current runner key of the install. A report of a retired key is recorded,
    /// and its attempt is told to stop, after its signature was verified.
    pub(super) async fn refuse_speaker(
        &self,
        install: &Install,
        speaker: &KeyId,
        (envelope, body): (&Envelope, &str),
    ) -> Result<Accepted, AppError> {
        if !install.retired.contains(speaker) {
            return Err(AppError::conflict(format!(
                "key `{speaker}` is not the runner key of install `{}`, or its hello has not arrived yet",
                install.id
            )));
        }
        let key = self.retired_key(install, speaker).await?;
        let report: Report = envelope.open(&key).map_err(unbelievable)?;
        let reason = format!("runner key `{speaker}` was replaced");
        tracing::warn!(install.id = %install.id, "Refused a report: {reason}");
        let pk = match &report.body {
            ReportBody::Attempt(attempt) => {
                let job = self.job_of(install, &attempt.job).await?;
                let job = job.ok_or_else(|| not_its_job(install, &attempt.job))?;
                table::job_pk(&job.id)
            }
            ReportBody::Hello(_) | ReportBody::Heartbeat | ReportBody::Refused(_) => table::install_pk(&install.id),
        };
        self.record(pk, body, Some(speaker.clone()), reason.clone()).await?;
        if let ReportBody::Attempt(attempt) = &report.body {
            self.stop_attempt(&attempt.job, attempt.fence, speaker).await?;
        }
        Ok(Accepted::Refused(reason))
    }

    /// Returns the public key of a retired runner, from the hello that announced it.
    async fn retired_key(&self, install: &Install, key: &KeyId) -> Result<PublicKey, AppError> {
        let hello = evidence::kept(&*self.store, &evidence::hello_key(&install.id, key)).await?;
        let announced = hello.and_then(|hello| hello.signed().envelope().peek::<Report>().ok());
        match announced.map(|report| report.body) {
            Some(ReportBody::Hello(hello)) if hello.public_key.key_id() == *key => Ok(hello.public_key),
            _ => Err(AppError::invalid(format!("the hello of the retired runner key `{key}` is not known"))),
        }
    }

    /// Records that the runner refused an order. If it refused a cancelled order, its job ends.
    pub(super) async fn order_refused(
        &self,
        install: &Install,
        runner: &KeyId,
        refusal: &Refusal,
        body: &str,
    ) -> Result<Accepted, AppError> {
        let detail = bounds::cut(&refusal.detail, bounds::MAX_REASON_BYTES);
        let reason = format!("order refused as {}: {detail}", refusal.reason.as_str());
        tracing::warn!(install.id = %install.id, "Runner of `{}`: {reason}", install.id);
        // A word about a job of another install, or of none, is kept with the speaker's own install.
        let job = match &refusal.job {
            Some((id, fence)) => self.job_of(install, id).await?.map(|job| (job, *fence)),
            None => None,
        };
        let pk = job.as_ref().map_or_else(|| table::install_pk(&install.id), |(job, _)| table::job_pk(&job.id));
        self.record(pk, body, Some(runner.clone()), reason).await?;
        match (refusal.reason, job) {
            (RefusalReason::Cancelled, Some((job, fence))) => self.cancelled_unstarted(runner, &job, fence).await,
            _ => Ok(Accepted::Taken),
        }
    }

    /// Returns the job if it exists and belongs to the install.
    pub(super) async fn job_of(&self, install: &Install, id: &JobId) -> Result<Option<Job>, AppError> {
        let job = load::<Job>(&*self.store, &table::job_key(id)).await?;
        Ok(job.map(|job| job.value).filter(|job| job.install == install.id))
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
