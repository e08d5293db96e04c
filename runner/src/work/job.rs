//! One job as the code of its kind sees it: the order, a fresh workspace, a log, a stop signal and what it may call.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use aws_credential_types::provider::SharedCredentialsProvider;
use freehold_protocol::Digest;
use freehold_protocol::grant::GrantAnswer;
use freehold_protocol::order::{Artifact, Order};
use freehold_protocol::provenance::BuildFacts;
use freehold_protocol::report::Fence;
use tokio::sync::watch;

use crate::config::Config;
use crate::record::log::JobLog;

/// How long a job may take to end after [`Stop::stopped`]: then its future is dropped, and whatever it started must die
/// with it. After [`StopReason::LeaseLost`] it has about 7 s.
pub const STOP_GRACE: std::time::Duration = std::time::Duration::from_secs(20);

/// Everything that one attempt needs. The caller makes the workspace, and removes it when the attempt has ended.
#[derive(Debug, Clone)]
pub struct Job {
    pub order: Arc<Order>,
    pub fence: Fence,
    /// An empty directory that only this attempt uses.
    pub workspace: PathBuf,
    /// Where lines for people go; redacts and caps them.
    pub log: JobLog,
    pub stop: Stop,
    pub config: Arc<Config>,
    /// Credentials of the mode's role (session name = job id); refreshed while the job runs.
    pub credentials: SharedCredentialsProvider,
    /// Where an artifact that the install registry lacks is asked for.
    pub grants: Arc<dyn Grants>,
}

/// Asks the control plane for an artifact, once, or for its word on what made one.
#[async_trait]
pub trait Grants: Send + Sync + std::fmt::Debug {
    /// Returns the answer to this attempt's request for `artifact`, of which the install registry lacks `missing`, after
    /// `round` others whose URLs expired.
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

    /// Returns the answer to this attempt's request for the tenant's statement about `artifact`, which it has pushed.
    ///
    /// # Errors
    /// As [`Grants::request`].
    async fn attest(&self, job: &Job, artifact: &Artifact, facts: BuildFacts) -> Result<GrantAnswer, GrantError>;
}

/// Why there is no answer to a request for an artifact.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    /// Nothing came back.
    #[error("no answer to the request for artifact `{artifact}` within {waited_secs} s")]
    TimedOut { artifact: Digest, waited_secs: u64 },
    /// The attempt was told to stop.
    #[error("stopped while waiting for artifact `{0}`")]
    Stopped(Digest),
    /// The request could not be put into the spool.
    #[error("could not ask for artifact `{artifact}`: {reason}")]
    Unsent { artifact: Digest, reason: String },
}

/// Tells an attempt to stop, and why.
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<Option<StopReason>>);

/// Why an attempt must stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The control plane cancelled the job.
    Cancelled,
    /// The lease could not be renewed: another attempt may start.
    LeaseLost,
    /// The attempt's time is over, or its order's.
    TimedOut,
    /// The runner is going down and the drain period is over.
    Draining,
}

impl Stop {
    /// Returns a signal and the end that gives it.
    pub fn channel() -> (watch::Sender<Option<StopReason>>, Self) {
        let (sender, receiver) = watch::channel(None);
        (sender, Self(receiver))
    }

    /// Returns the reason to stop, if there is one already.
    pub fn reason(&self) -> Option<StopReason> {
        *self.0.borrow()
    }

    /// Waits until the lease is lost, whatever other reason to stop there is before.
    pub async fn lease_lost(&self) {
        let mut receiver = self.0.clone();
        if receiver.wait_for(|reason| *reason == Some(StopReason::LeaseLost)).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until there is a reason to stop; for ever when the sending end is gone without one.
    pub async fn stopped(&self) -> StopReason {
        let mut receiver = self.0.clone();
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
