//! Refuses reports: records the reason, and orders an attempt that lost its job to stop.

use freehold_domain::install::Install;
use freehold_domain::job::{Job, Rejected};
use freehold_protocol::report::{Fence, Report, ReportBody};
use freehold_protocol::{Digest, JobId, KeyId};

use super::{AcceptReport, Accepted};
use crate::AppError;
use crate::messages::DispatchMessage;
use crate::table::{self, Refused};

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

    /// Refuses a report whose key is not the current runner key of the install.
    pub(super) async fn refuse_speaker(
        &self,
        install: &Install,
        report: &Report,
        body: &str,
    ) -> Result<Accepted, AppError> {
        if !install.retired.contains(&report.runner) {
            return Err(AppError::invalid(format!(
                "key `{}` is not the runner key of install `{}`",
                report.runner, install.id
            )));
        }
        let reason = format!("runner key `{}` was replaced", report.runner);
        tracing::warn!(install.id = %install.id, "Refused a report: {reason}");
        let pk = match &report.body {
            ReportBody::Attempt(attempt) => table::job_pk(&attempt.job),
            ReportBody::Hello(_) | ReportBody::Heartbeat | ReportBody::Refused(_) => table::install_pk(&install.id),
        };
        self.record(pk, body, Some(report.runner.clone()), reason.clone()).await?;
        if let ReportBody::Attempt(attempt) = &report.body {
            self.stop_attempt(&attempt.job, attempt.fence, &report.runner).await?;
        }
        Ok(Accepted::Refused(reason))
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
