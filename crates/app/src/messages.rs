//! The messages that the control plane's functions send to each other over the internal queues: mostly ids.

use freehold_protocol::order::Artifact;
use freehold_protocol::provenance::BuildFacts;
use freehold_protocol::report::Fence;
use freehold_protocol::{AppName, Digest, GrantId, InstallId, JobId, KeyId, Timestamp};
use serde::{Deserialize, Serialize};

/// A request to `dispatch-job`, either to send a message to a runner or to sign a contract.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "send", rename_all = "snake_case")]
pub enum DispatchMessage {
    /// The order of a queued job.
    Order { job: JobId, dispatch: u32 },
    /// A request to stop a job, or only one attempt of the job.
    Cancel {
        job: JobId,
        dispatch: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        receive: Option<u32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        runner: Option<KeyId>,
    },
    /// The notice that another key has replaced the key of this runner. `at` is the time of the decision to send it,
    /// and the same for each copy of the notice.
    Retired { install: InstallId, runner: KeyId, at: Timestamp },
    /// A version whose contract `dispatch-job` signs and stores. No message is sent to a runner.
    Contract { app: AppName, version: Digest },
}

/// A request to `grant-artifact` for an artifact, or for the signed statement about an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantMessage {
    pub install: InstallId,
    pub job: JobId,
    pub fence: Fence,
    pub grant: GrantId,
    /// The sequence number of the report that contains the request. A redelivery has the same number; a second use of
    /// the grant has another number.
    pub seq: u64,
    pub artifact: Digest,
    pub wants: Wants,
}

/// The content of a runner's request to `grant-artifact`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "wants", rename_all = "snake_case")]
pub enum Wants {
    /// Access to the manifests of the artifact and to the missing blobs.
    Blobs {
        missing: Vec<Digest>,
        #[serde(default)]
        round: u32,
    },
    /// The tenant's signed statement about an artifact that the build runner has pushed.
    Statement { artifact: Box<Artifact>, facts: BuildFacts },
}
