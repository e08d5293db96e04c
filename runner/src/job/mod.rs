//! The interface between a job and the code of its kind: the order, an empty workspace, a log, a stop signal and
//! grants.

pub mod bucket;
pub mod failure;
pub mod first_box;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_types::SdkConfig;
pub use freehold_egress::Refusal;
pub use freehold_iam_proxy::{Change, Recorder, Used};
use freehold_protocol::approval::ApproveChanges;
use freehold_protocol::audit::AuditEvent;
use freehold_protocol::grant::GrantAnswer;
use freehold_protocol::order::{Artifact, Order};
use freehold_protocol::policy::PolicyResult;
use freehold_protocol::provenance::BuildFacts;
use freehold_protocol::report::{Fence, Outcome};
use freehold_protocol::succession::Roots;
use freehold_protocol::{Digest, Timestamp};
use tokio::sync::watch;

use crate::config::Config;
use crate::record::log::JobLog;
use crate::secrets::sensitive_outputs::SensitiveOutputs;
use crate::tool_image::ToolImage;
use first_box::FirstBox;

/// The time that a job has to end after [`Stop::stopped`]. Then the job's future is dropped; this must end all
/// processes that the job has started. After [`StopReason::LeaseLost`], a job has only about 7 s.
pub const STOP_GRACE: Duration = Duration::from_secs(20);

/// Everything that one attempt needs. The caller creates the workspace and removes it after the attempt.
#[derive(Debug, Clone)]
pub struct Job {
    pub order: Arc<Order>,
    pub fence: Fence,
    /// An empty directory that only this attempt uses.
    pub workspace: PathBuf,
    /// The log for people. It is redacted and limited in size.
    pub log: JobLog,
    pub stop: Stop,
    pub config: Arc<Config>,
    /// The tenant's root keys at the start of the job. One of them must have signed the statement of a build.
    pub roots: Roots,
    /// Credentials of the role that the order names, or else of the mode's role, refreshed while the job runs. The name
    /// of the AWS session is the job's id. A build has the runner's own credentials.
    pub credentials: SharedCredentialsProvider,
    /// Requests artifacts that are missing in the install registry.
    pub grants: Arc<dyn Grants>,
    /// A box that was made in advance for the job's first program, or empty.
    pub first_box: FirstBox,
    /// The image whose root file system the job's programs see. It is set when the image is unpacked; without one, the
    /// programs see the file system of the machine.
    pub image: Arc<OnceLock<ToolImage>>,
    /// Records the connections that were refused to the job.
    pub connections: Arc<dyn Connections>,
    /// Records the IAM actions of the job's programs.
    pub iam: Arc<dyn Recorder>,
    /// Records the results of the policies about the job's plan.
    pub policies: Arc<dyn PolicyRecorder>,
    /// Stores the job's plan while the plan waits for an approval.
    pub plans: Arc<dyn Plans>,
    /// Stores the sensitive outputs of the job for later jobs, with the runner's own role.
    pub sensitive_outputs: SensitiveOutputs,
    /// Lets another program take the place of this one.
    pub hand_over: Arc<dyn HandOver>,
}

impl Job {
    /// Returns the end of the time limit of an attempt that began at `started`, without the time that is `reserved` for its
    /// last steps.
    pub fn deadline(&self, started: Instant, reserved: Duration) -> Instant {
        started + Duration::from_secs(u64::from(self.order.timeout_secs)).saturating_sub(reserved)
    }
}

/// Returns the SDK config for AWS clients under the role of the job's mode.
pub async fn sdk_config(job: &Job) -> SdkConfig {
    crate::aws::sdk_config(&job.config.region, Some(job.credentials.clone())).await
}

/// Runs the kinds of job that a program supports.
#[async_trait]
pub trait Execute: Send + Sync + std::fmt::Debug {
    /// Runs `job` and returns its outcome.
    async fn execute(&self, job: &Job) -> Outcome;
}

/// Records connections that were refused to a job.
pub trait Connections: Send + Sync + std::fmt::Debug {
    /// Records one refusal. Must not block.
    fn refused(&self, refusal: &Refusal);
}

/// Records the results of policies about a job, before its plan is applied.
#[async_trait]
pub trait PolicyRecorder: Send + Sync + std::fmt::Debug {
    /// Records the results durably. The job must not continue without this.
    ///
    /// # Errors
    /// The reason, when they cannot be recorded.
    async fn record(&self, results: Vec<PolicyResult>) -> Result<(), String>;

    /// Returns the results that were recorded last.
    fn results(&self) -> Vec<PolicyResult>;
}

/// Knows which plans wait for the customer, and stores plans that wait for an approval.
#[async_trait]
pub trait Plans: Send + Sync + std::fmt::Debug {
    /// Returns which plans of the order wait for the customer's approval.
    ///
    /// # Errors
    /// The reason, when the customer's stack cannot be read.
    async fn customer_asks(&self, order: &Order) -> Result<ApproveChanges, String>;

    /// Returns an object of the install's bucket. No role of a mode can write the object.
    ///
    /// # Errors
    /// The reason, when it cannot be read.
    async fn get(&self, object: &str) -> Result<Option<Vec<u8>>, String>;

    /// Writes an object of the install's bucket. No role of a mode can write the object.
    ///
    /// # Errors
    /// The reason, when it cannot be written.
    async fn put(&self, object: &str, bytes: Vec<u8>) -> Result<(), String>;

    /// Records durably what happens to a plan. The job must not continue without this.
    ///
    /// # Errors
    /// The reason, when it cannot be recorded.
    async fn record(&self, event: AuditEvent) -> Result<(), String>;

    /// Returns the present time, as the responses of AWS show it.
    fn now(&self) -> Timestamp;
}

/// Hands the runner over to another program.
#[async_trait]
pub trait HandOver: Send + Sync + std::fmt::Debug {
    /// Lets the other jobs end, then stops the calling job so that its order goes back to the queue, and ends the process.
    fn begin(&self);

    /// Waits until the reports queue has taken a hello of this process.
    async fn announced(&self);
}

/// Requests grants for artifacts, and statements about artifacts, from the control plane.
#[async_trait]
pub trait Grants: Send + Sync + std::fmt::Debug {
    /// Requests `artifact`. `missing` lists the digests of its parts that the install registry does not have. `round`
    /// is the number of earlier requests with URLs that expired.
    ///
    /// # Errors
    /// When the request cannot be put into the spool, the answer does not come in time, or the attempt is stopped
    /// meanwhile.
    async fn request(
        &self,
        job: &Job,
        artifact: &Digest,
        missing: Vec<Digest>,
        round: u32,
    ) -> Result<GrantAnswer, GrantError>;

    /// Requests the tenant's signed statement about `artifact`, which this attempt has pushed.
    ///
    /// # Errors
    /// The errors of [`Grants::request`].
    async fn attest(&self, job: &Job, artifact: &Artifact, facts: BuildFacts) -> Result<GrantAnswer, GrantError>;
}

/// The reason why a request for an artifact has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    /// No answer came in time.
    #[error("no answer to the request for artifact `{artifact}` within {waited_secs} s")]
    TimedOut { artifact: Digest, waited_secs: u64 },
    /// The attempt was asked to stop.
    #[error("stopped while waiting for artifact `{0}`")]
    Stopped(Digest),
    /// The request could not be put into the spool.
    #[error("could not request artifact `{artifact}`: {reason}")]
    Unsent { artifact: Digest, reason: String },
}

/// The stop signal of an attempt, with the reason to stop and the time until which it may run.
#[derive(Debug, Clone)]
pub struct Stop {
    reason: watch::Receiver<Option<StopReason>>,
    lease: Lease,
}

/// The time until which an attempt may run (`CLOCK_BOOTTIME`, in nanoseconds). Its processes then end by themselves,
/// even if the runner cannot end them.
#[derive(Debug, Clone)]
pub struct Lease(watch::Receiver<u64>);

/// The reason why an attempt must stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The control plane cancelled the job.
    Cancelled,
    /// The lease could not be renewed, so another attempt may start.
    LeaseLost,
    /// The time limit of the attempt has passed, or its order has expired.
    TimedOut,
    /// The runner is shutting down, and the drain period is over.
    Draining,
    /// The customer has switched the runner off. The roles of the runner and of the job have lost their permissions.
    SwitchedOff,
}

impl Stop {
    /// Returns a sender and its signal. The time of the attempt is not limited.
    pub fn channel() -> (watch::Sender<Option<StopReason>>, Self) {
        let (sender, reason) = watch::channel(None);
        (sender, Self { reason, lease: Lease(watch::channel(u64::MAX).1) })
    }

    /// Returns the same signal, but the attempt may run only until the time in `lease`.
    #[must_use]
    pub fn bounded_by(self, lease: watch::Receiver<u64>) -> Self {
        Self { lease: Lease(lease), ..self }
    }

    /// Returns the time until which the attempt may run (`CLOCK_BOOTTIME`, in nanoseconds).
    pub fn may_run_until(&self) -> u64 {
        *self.lease.0.borrow()
    }

    /// Returns the lease. The caller can wait for its renewals.
    pub fn lease(&self) -> Lease {
        self.lease.clone()
    }

    /// Returns the reason to stop, if there is one.
    pub fn reason(&self) -> Option<StopReason> {
        *self.reason.borrow()
    }

    /// Waits until the lease is lost, even if the attempt already has another reason to stop.
    pub async fn lease_lost(&self) {
        let mut receiver = self.reason.clone();
        if receiver.wait_for(|reason| *reason == Some(StopReason::LeaseLost)).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until there is a reason to stop. Waits for ever if the sender is dropped without a reason.
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
    /// Waits until the lease is renewed, and returns its new end. Dropping the future loses no renewal.
    pub async fn renewed(&mut self) -> u64 {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        *self.0.borrow_and_update()
    }
}
