//! A job as the code of its kind sees it: the order, a fresh workspace, a log, a stop signal and the grants.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use aws_credential_types::provider::SharedCredentialsProvider;
pub use freehold_egress::Refusal;
pub use freehold_iam_proxy::{Change, Recorder, Used};
use freehold_protocol::Digest;
use freehold_protocol::grant::GrantAnswer;
use freehold_protocol::order::{Artifact, Order};
use freehold_protocol::provenance::BuildFacts;
use freehold_protocol::report::Fence;
use tokio::sync::watch;

use crate::config::Config;
use crate::record::log::JobLog;
use crate::work::first_box::FirstBox;

/// How long a job may take to end after [`Stop::stopped`]. Then its future is dropped, and every process that it started
/// must end with it. After [`StopReason::LeaseLost`] it has about 7 s.
pub const STOP_GRACE: std::time::Duration = std::time::Duration::from_secs(20);

/// Everything that one attempt needs. The caller creates the workspace and removes it after the attempt.
#[derive(Debug, Clone)]
pub struct Job {
    pub order: Arc<Order>,
    pub fence: Fence,
    /// An empty directory that only this attempt uses.
    pub workspace: PathBuf,
    /// The log for people; redacted and limited in size.
    pub log: JobLog,
    pub stop: Stop,
    pub config: Arc<Config>,
    /// Credentials of the mode's role (session name = job id); refreshed while the job runs.
    pub credentials: SharedCredentialsProvider,
    /// Requests artifacts that the install registry does not hold.
    pub grants: Arc<dyn Grants>,
    /// The box that waits for the job's first program, if one was made ahead.
    pub first_box: FirstBox,
    /// Writes down the connections that the job was refused.
    pub connections: Arc<dyn Connections>,
    /// Records what the job's programs do with IAM.
    pub iam: Arc<dyn Recorder>,
}

/// Writes down what a job tried to reach and may not.
pub trait Connections: Send + Sync + std::fmt::Debug {
    /// Takes one refusal; must not block.
    fn refused(&self, refusal: &Refusal);
}

/// Requests grants for artifacts, and statements about them, from the control plane.
#[async_trait]
pub trait Grants: Send + Sync + std::fmt::Debug {
    /// Requests `artifact`, of which the install registry does not hold `missing`. `round` counts earlier requests whose
    /// URLs expired.
    ///
    /// # Errors
    /// When no answer comes in time, or the attempt was stopped meanwhile.
    async fn request(
        &self,
        job: &Job,
        artifact: &Digest,
        missing: Vec<Digest>,
        round: u32,
    ) -> Result<GrantAnswer, GrantError>;

    /// Requests the tenant's statement about `artifact`, which this attempt has pushed.
    ///
    /// # Errors
    /// As [`Grants::request`].
    async fn attest(&self, job: &Job, artifact: &Artifact, facts: BuildFacts) -> Result<GrantAnswer, GrantError>;
}

/// Why there is no answer to a request for an artifact.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    /// No answer came in time.
    #[error("no answer to the request for artifact `{artifact}` within {waited_secs} s")]
    TimedOut { artifact: Digest, waited_secs: u64 },
    /// The attempt was asked to stop.
    #[error("stopped while waiting for artifact `{0}`")]
    Stopped(Digest),
    /// The request could not be put into the spool.
    #[error("could not ask for artifact `{artifact}`: {reason}")]
    Unsent { artifact: Digest, reason: String },
}

/// Tells an attempt to stop, and why, and how long it may run.
#[derive(Debug, Clone)]
pub struct Stop {
    reason: watch::Receiver<Option<StopReason>>,
    lease: Lease,
}

/// Until when an attempt may run (`CLOCK_BOOTTIME`, in nanoseconds). Its processes end by themselves then, should the runner
/// not be able to end them.
#[derive(Debug, Clone)]
pub struct Lease(watch::Receiver<u64>);

/// Why an attempt must stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The control plane cancelled the job.
    Cancelled,
    /// The lease could not be renewed: another attempt may start.
    LeaseLost,
    /// The time limit of the attempt, or the expiry of its order, has passed.
    TimedOut,
    /// The runner shuts down and the drain period is over.
    Draining,
    /// The customer has switched the runner off. Its role has lost its permissions, and so has the job's.
    SwitchedOff,
}

impl Stop {
    /// Returns a signal and its sender; the attempt may run for ever.
    pub fn channel() -> (watch::Sender<Option<StopReason>>, Self) {
        let (sender, reason) = watch::channel(None);
        (sender, Self { reason, lease: Lease(watch::channel(u64::MAX).1) })
    }

    /// Returns the same signal for an attempt that may run until `lease` says.
    #[must_use]
    pub fn bounded_by(self, lease: watch::Receiver<u64>) -> Self {
        Self { lease: Lease(lease), ..self }
    }

    /// Returns until when the attempt may run (`CLOCK_BOOTTIME`, in nanoseconds).
    pub fn may_run_until(&self) -> u64 {
        *self.lease.0.borrow()
    }

    /// Returns the lease, to wait for its renewals.
    pub fn lease(&self) -> Lease {
        self.lease.clone()
    }

    /// Returns the reason to stop, if there is one.
    pub fn reason(&self) -> Option<StopReason> {
        *self.reason.borrow()
    }

    /// Waits until the lease is lost, even when there was another reason to stop before.
    pub async fn lease_lost(&self) {
        let mut receiver = self.reason.clone();
        if receiver.wait_for(|reason| *reason == Some(StopReason::LeaseLost)).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until there is a reason to stop. Waits for ever when the sender is dropped without one.
    pub async fn stopped(&self) -> StopReason {
        let mut receiver = self.reason.clone();
        loop {
            if let Some(reason) = *receiver.borrow_and_update() {
                return reason;
            }
            if receiver.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

impl Lease {
    /// Waits until the lease is renewed; returns its new end. Nothing is lost when the future is dropped.
    pub async fn renewed(&mut self) -> u64 {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        *self.0.borrow_and_update()
    }
}
