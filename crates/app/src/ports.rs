//! What the use cases need of the world, in our words.

use std::sync::Arc;

use async_trait::async_trait;
use ed25519_dalek::SigningKey;
use freehold_domain::workflow::WorkflowKind;
use freehold_protocol::envelope::PublicKey;
use freehold_protocol::order::Descriptor;
use freehold_protocol::provenance::Statement;
use freehold_protocol::{AccountId, Digest, Envelope, InstallId, Timestamp, WorkflowId};
use serde::{Deserialize, Serialize};

use crate::messages::{DispatchMessage, GrantMessage};

/// Why the world did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// No answer, throttled, or an error of the other side: the same call may succeed later.
    #[error("{what}: {reason}")]
    Transient { what: String, reason: String },
    /// This function's role may not do that.
    #[error("{what}: access denied: {reason}")]
    Denied { what: String, reason: String },
    /// Anything else.
    #[error("{what}: {reason}")]
    Failed { what: String, reason: String },
}

/// Where one row is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    pub pk: String,
    pub sk: String,
}

/// One row of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub key: Key,
    /// Rises by one with every write of the row, from 1.
    pub rev: u64,
    /// JSON.
    pub body: String,
}

/// What a row must be like for a write to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// There is none.
    Absent,
    /// It has this revision.
    Rev(u64),
    /// Whatever there is: the last writer wins.
    Any,
}

/// One write of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Writes a row with the revision after the expected one.
    Put { key: Key, body: String, expect: Expect, expires: Option<Timestamp> },
    /// Removes a row; one that is not there counts as removed.
    Delete { key: Key },
    /// Writes nothing, but stops the commit when the row exists.
    CheckAbsent { key: Key },
}

impl Write {
    /// Returns the row that is written or checked.
    pub const fn key(&self) -> &Key {
        match self {
            Self::Put { key, .. } | Self::Delete { key } | Self::CheckAbsent { key } => key,
        }
    }
}

/// What became of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Committed {
    /// All writes happened, now or in an earlier try of the same commit.
    Done,
    /// None happened: the row at this key was not as expected.
    Conflict(Key),
}

/// The tenant's table.
#[async_trait]
pub trait Store: Send + Sync {
    /// Returns the row at `key`, read consistently.
    async fn get(&self, key: &Key) -> Result<Option<Row>, PortError>;

    /// Returns rows of the partition `pk` whose sort key begins with `prefix` and comes after `after`, in order, at
    /// most `limit`.
    async fn query(&self, pk: &str, prefix: &str, after: Option<&str>, limit: u32) -> Result<Vec<Row>, PortError>;

    /// Performs all writes or none. A lost answer is cleared up by reading: our own earlier write counts as done.
    async fn commit(&self, writes: Vec<Write>) -> Result<Committed, PortError>;
}

/// The control plane's clock.
pub trait Clock: Send + Sync {
    /// Returns the time now.
    fn now(&self) -> Timestamp;
}

/// The tenant's internal queues.
#[async_trait]
pub trait Outbox: Send + Sync {
    /// Hands messages to `dispatch-job`.
    async fn dispatch(&self, messages: &[DispatchMessage]) -> Result<(), PortError>;

    /// Hands a request to `grant-artifact`.
    async fn request_grant(&self, message: &GrantMessage) -> Result<(), PortError>;
}

/// The orders queues of installs.
#[async_trait]
pub trait OrdersQueue: Send + Sync {
    /// Puts a message into an install's orders queue; within five minutes the same `dedup` is taken once.
    async fn send(&self, queue_url: &str, group: &str, dedup: &str, body: &str) -> Result<(), PortError>;
}

/// Makes and removes orders queues, and says who may send reports.
#[async_trait]
pub trait QueueAdmin: Send + Sync {
    /// Makes the orders queue of `install`, readable by its runner role in `account` alone; answers its URL.
    async fn create_orders_queue(&self, install: &InstallId, account: &AccountId) -> Result<String, PortError>;

    /// Lets exactly these runners send to the reports queue.
    async fn allow_reporters(&self, runners: &[(InstallId, AccountId)]) -> Result<(), PortError>;
}

/// Step Functions.
#[async_trait]
pub trait Machines: Send + Sync {
    /// Starts the execution named after the workflow; one that exists already counts as started.
    async fn start(&self, kind: WorkflowKind, workflow: &WorkflowId, install: &InstallId) -> Result<(), PortError>;
}

/// What a waiting state is told.
#[async_trait]
pub trait Callbacks: Send + Sync {
    /// Ends the waiting state that gave `token`; one that has ended already counts as told.
    async fn succeed(&self, token: &str, output: &serde_json::Value) -> Result<(), PortError>;

    /// Says that work is going on.
    async fn heartbeat(&self, token: &str) -> Result<(), PortError>;
}

/// A key that signs orders for a while, with the root key's certificate.
#[derive(Clone)]
pub struct DelegateKey {
    pub key: SigningKey,
    pub certificate: Envelope,
    pub not_after: Timestamp,
}

impl std::fmt::Debug for DelegateKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DelegateKey(until {})", self.not_after.as_millis())
    }
}

/// Signs for the tenant.
#[async_trait]
pub trait Signer: Send + Sync {
    /// Returns a delegate key whose certificate lasts at least until `until`.
    async fn delegate(&self, until: Timestamp) -> Result<Arc<DelegateKey>, PortError>;

    /// Returns `statement` under the root key's own signature, which outlasts every delegate.
    async fn attest(&self, statement: &Statement) -> Result<Envelope, PortError>;
}

/// The tenant's root of trust, readable by everyone.
#[async_trait]
pub trait RootKey: Send + Sync {
    /// Returns the public key.
    async fn public_key(&self) -> Result<PublicKey, PortError>;
}

/// The tenant registry.
#[async_trait]
pub trait Registry: Send + Sync {
    /// Returns a manifest's exact bytes.
    async fn manifest(&self, manifest: &Descriptor) -> Result<Vec<u8>, PortError>;

    /// Returns a pre-signed URL of a blob, valid for minutes.
    async fn blob_url(&self, blob: &Descriptor) -> Result<String, PortError>;
}

/// The tenant registry, for removing.
#[async_trait]
pub trait ArtifactRemover: Send + Sync {
    /// Removes manifests and their tags, in this order; those that are not there count as removed.
    async fn remove(&self, manifests: &[Digest]) -> Result<(), PortError>;
}

/// The tenant's bucket.
#[async_trait]
pub trait Objects: Send + Sync {
    /// Returns a pre-signed PUT of `sources/<hex>.tar.gz` for exactly these bytes, valid for `valid_secs`.
    async fn presign_source(&self, digest: &Digest, size: u64, valid_secs: u64) -> Result<String, PortError>;

    /// Puts the canonical bytes of the app version called `digest` at `versions/<hex>.json`; the same bytes again change
    /// nothing.
    async fn put_version(&self, digest: &Digest, bytes: &[u8]) -> Result<(), PortError>;

    /// Returns what is at `versions/<hex>.json`, whatever it is, if something is. Nothing larger than an app version may
    /// be is read.
    async fn get_version(&self, digest: &Digest) -> Result<Option<Vec<u8>>, PortError>;
}
