//! The messages that the control plane's functions send to each other over the internal queues: mostly ids.

use freehold_protocol::order::Artifact;
use freehold_protocol::provenance::BuildFacts;
use freehold_protocol::report::Fence;
use freehold_protocol::{AppName, Digest, GrantId, InstallId, JobId, KeyId};
use serde::{Deserialize, Serialize};

/// Asks `dispatch-job` to send something to a runner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "send", rename_all = "snake_case")]
pub enum DispatchMessage {
    /// The order of a queued job.
    Order {
        job: JobId,
        dispatch: u32,
        /// Whether this is the second copy, which `sweep` sends. It is only sent while SQS still drops duplicates.
        #[serde(default)]
        resend: bool,
    },
    /// A request to stop a job, or one attempt of it.
    Cancel {
        job: JobId,
        dispatch: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        receive: Option<u32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        runner: Option<KeyId>,
    },
    /// Asks for no message to a runner: `dispatch-job` signs and stores the contract of a version.
    Contract { app: AppName, version: Digest },
}

/// Asks `grant-artifact` for an artifact, or for the statement about an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantMessage {
    pub install: InstallId,
    pub job: JobId,
    pub fence: Fence,
    pub grant: GrantId,
    /// The sequence number of the report that asked; it distinguishes a redelivery from a second use.
    pub seq: u64,
    pub artifact: Digest,
    pub wants: Wants,
}

/// What a runner asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "wants", rename_all = "snake_case")]
pub enum Wants {
    /// Access to the manifests of the artifact and to the missing blobs.
    Blobs {
        missing: Vec<Digest>,
        #[serde(default)]
        round: u32,
    },
    /// The tenant's signed statement about the artifact, which the build runner has pushed.
    Statement { artifact: Box<Artifact>, facts: BuildFacts },
}
