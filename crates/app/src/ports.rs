//! The ports: the traits through which the use cases reach the table, queues, keys, the registry, the bucket and the
//! clock.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use ed25519_dalek::SigningKey;
use freehold_domain::workflow::WorkflowKind;
use freehold_protocol::envelope::PublicKey;
use freehold_protocol::limits::DELEGATE_SPARE_SECS;
use freehold_protocol::notification::{Endpoint, Notification, NotificationFilter};
use freehold_protocol::order::Descriptor;
use freehold_protocol::provenance::Statement;
use freehold_protocol::report::{CallerRequest, RoleProof};
use freehold_protocol::{AccountId, Digest, Envelope, InstallId, Timestamp, WorkflowId};
use serde::{Deserialize, Serialize};

use crate::messages::{DispatchMessage, GrantMessage};

/// The reason why a call to a port failed.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// The service did not answer, throttled the call or failed. The same call may succeed later.
    #[error("{what}: {reason}")]
    Transient { what: String, reason: String },
    /// This function's role does not permit the call.
    #[error("{what}: access denied: {reason}")]
    Denied { what: String, reason: String },
    /// Any other failure.
    #[error("{what}: {reason}")]
    Failed { what: String, reason: String },
}

/// The key of one row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    pub pk: String,
    pub sk: String,
}

/// One row of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub key: Key,
    /// The revision: 1 for a new row, and increased by 1 with every write.
    pub rev: u64,
    /// The contents of the row, as JSON.
    pub body: String,
}

/// The condition under which a row is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// The row does not exist.
    Absent,
    /// The row has this revision.
    Rev(u64),
    /// No condition: the last writer wins.
    Any,
}

/// One write of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Writes a row with the next revision.
    Put { key: Key, body: String, expect: Expect, expires: Option<Timestamp> },
    /// Removes a row; a missing row counts as removed.
    Delete { key: Key },
    /// Removes a row that has the revision `rev`; the commit fails when the row is missing, because another call has handled it.
    DeleteAt { key: Key, rev: u64 },
    /// Writes nothing; the commit fails when the row exists.
    CheckAbsent { key: Key },
}

impl Write {
    /// Returns the key that is written or checked.
    pub const fn key(&self) -> &Key {
        match self {
            Self::Put { key, .. } | Self::Delete { key } | Self::DeleteAt { key, .. } | Self::CheckAbsent { key } => {
                key
            }
        }
    }

    /// Returns whether `current`, the row at the key, is the result of this write. If it is, an earlier try of the
    /// write succeeded but its response was lost, and the condition now fails because of that try. Equal rows of two
    /// writers count as one write, so a row that counts or claims something names its writer.
    pub fn has_happened(&self, current: Option<&Row>) -> bool {
        let Self::Put { body, expect, .. } = self else { return false };
        let rev = match expect {
            Expect::Absent => 1,
            Expect::Rev(rev) => rev + 1,
            Expect::Any => return false,
        };
        current.is_some_and(|row| row.rev == rev && row.body == *body)
    }
}

/// The result of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Committed {
    /// All writes happened, now or in an earlier try of the same commit.
    Done,
    /// No write happened: the row at this key did not meet its condition.
    Conflict(Key),
}

/// The tenant's table.
#[async_trait]
pub trait Store: Send + Sync {
    /// Returns the row at `key` by a consistent read.
    async fn get(&self, key: &Key) -> Result<Option<Row>, PortError>;

    /// Returns at most `limit` rows of the partition `pk`, in the order of their sort keys. Their sort keys begin with
    /// `prefix` and come after `after`.
    async fn query(&self, pk: &str, prefix: &str, after: Option<&str>, limit: u32) -> Result<Vec<Row>, PortError>;

    /// Performs all writes or none. If the answer to a commit is lost, the store reads the rows again; the commit
    /// counts as done when the rows show that it was performed.
    async fn commit(&self, writes: Vec<Write>) -> Result<Committed, PortError>;
}

/// The answer of AWS STS to a request of a runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// The request is signed with credentials of this account and this principal.
    Known { account: String, arn: String },
    /// The credentials have expired.
    Expired,
    /// AWS did not issue the credentials that signed the request, or the request was changed after it was signed.
    Refused(String),
}

/// AWS STS, which determines whose credentials signed a request.
#[async_trait]
pub trait CallerIdentity: Send + Sync {
    /// Sends `request` with the signature of `proof` to STS. A response that does not come from STS is a transient
    /// error.
    async fn caller(&self, request: &CallerRequest, proof: &RoleProof) -> Result<Caller, PortError>;
}

/// The control plane's clock.
pub trait Clock: Send + Sync {
    /// Returns the current time.
    fn now(&self) -> Timestamp;
}

/// The tenant's internal queues.
#[async_trait]
pub trait Outbox: Send + Sync {
    /// Sends messages to `dispatch-job`.
    async fn dispatch(&self, messages: &[DispatchMessage]) -> Result<(), PortError>;

    /// Sends a request to `grant-artifact`.
    async fn request_grant(&self, message: &GrantMessage) -> Result<(), PortError>;
}

/// The orders queues of installs.
#[async_trait]
pub trait OrdersQueue: Send + Sync {
    /// Sends a message to an install's orders queue. Within five minutes, the queue drops a second message with the
    /// same `dedup`.
    async fn send(&self, queue_url: &str, group: &str, dedup: &str, body: &str) -> Result<(), PortError>;
}

/// Returns the unique id of the role in the sender's id of an SQS message; `None` for a sender that is not a role. The
/// ids of roles begin with `AROA` (IAM User Guide, "IAM identifiers").
pub fn role_of(sender_id: &str) -> Option<&str> {
    sender_id.split(':').next().filter(|id| id.starts_with("AROA"))
}

/// A message that a function sends to the dead-letter queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    pub body: String,
    /// The name of the queue that the message was in, to which it returns.
    pub source: String,
    /// The unique id of the role that sent the first copy of the message.
    pub sender: Option<String>,
    /// The time at which the function's queue took the first copy of the message.
    pub sent_at: Timestamp,
    /// How often the message was put back before.
    pub put_back: u32,
    /// The owner of the budget in which the message was counted when it began to wait, as JSON; absent without one.
    pub charged: Option<String>,
    /// The reason why the function can never handle the message; absent for a message that `sweep` puts back later.
    pub reason: Option<String>,
}

impl DeadLetter {
    /// The message attribute with the reason why a function refused the message.
    pub const REASON: &str = "freehold-reason";
    /// The message attribute with the name of the queue to which a message without a reason returns. It counts only for
    /// messages that a function sent to the dead-letter queue: a message that SQS moved has the attributes that its
    /// sender chose.
    pub const SOURCE: &str = "freehold-source";
    /// The message attribute with the time at which a queue took the first copy of a message, in milliseconds. It counts
    /// only in a message that a function sent to the dead-letter queue, and in a copy that `sweep` sent.
    pub const SENT_AT: &str = "freehold-sent-at";
    /// The message attribute with the unique id of the role that sent the first copy of a message. It counts only in a copy
    /// that `sweep` sent.
    pub const SENDER: &str = "freehold-sender";
    /// The message attribute that counts how often a message was put back. It counts as [`Self::SENT_AT`] does.
    pub const PUT_BACK: &str = "freehold-put-back";
    /// The message attribute with the owner of the budget in which a message was counted when it began to wait. It
    /// counts as [`Self::SENT_AT`] does.
    pub const CHARGED: &str = "freehold-charged";
}

/// The maximum size of the body of a message that returns to its queue later, in bytes. Such a body is not cut. SQS
/// accepts at most 1 MiB for the body and the attributes together (Amazon SQS quotas, "Messages").
pub const MAX_WHOLE_BYTES: usize = 1024 * 1024 - 1024;

/// The queues that trigger a function.
#[async_trait]
pub trait SourceQueue: Send + Sync {
    /// Hides the received message with this receipt handle for `secs` seconds from now. The message is in the queue
    /// with the name `source`, because several queues can trigger a function.
    async fn pause(&self, source: &str, receipt: &str, secs: u32) -> Result<(), PortError>;

    /// Sends a message to the dead-letter queue.
    async fn send_to_dead_letters(&self, letter: &DeadLetter) -> Result<(), PortError>;
}

/// A message that was received from the dead-letter queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedDeadLetter {
    pub receipt: String,
    pub body: String,
    /// The name of the queue to which the message returns.
    pub source: Option<String>,
    /// The unique id of the role that sent the first copy of the message.
    pub sender: Option<String>,
    pub sent_at: Timestamp,
    /// How often the message was put back before.
    pub put_back: u32,
    /// The owner of the budget in which the message was counted when it began to wait, as JSON; absent without one.
    pub charged: Option<String>,
    /// The reason why a function refused the message. A message that SQS moved, or that a function set aside, has none.
    pub reason: Option<String>,
}

/// The time for which [`DeadLetters::look`] hides messages from the next call, in seconds. `sweep` runs every minute
/// for at most 50 seconds, so a message that one sweep has hidden is visible to the next sweep.
pub const LOOK_HIDES_SECS: u32 = 10;

/// A dead-letter queue: of the functions' queues, or of the orders queues.
#[async_trait]
pub trait DeadLetters: Send + Sync {
    /// Returns up to ten messages, and hides them for [`LOOK_HIDES_SECS`]. With `waits`, an empty answer means that no
    /// message is visible. Without it, the answer comes sooner, and may be empty although messages are there.
    async fn look(&self, waits: bool) -> Result<Vec<ReceivedDeadLetter>, PortError>;

    /// Sends the message to the queue it came from, and deletes it here. Returns false when that queue is not known.
    async fn put_back(&self, message: &ReceivedDeadLetter) -> Result<bool, PortError>;

    /// Deletes the message.
    async fn remove(&self, message: &ReceivedDeadLetter) -> Result<(), PortError>;
}

/// The machine of the build runner, which exists while there is something to build.
#[async_trait]
pub trait BuildMachine: Send + Sync {
    /// Asks for the machine. A machine that exists or is being started stays as it is.
    async fn wake(&self) -> Result<(), PortError>;

    /// Asks for no machine. A machine that has started stays until it ends by itself, and is not replaced then. A
    /// machine that is still starting may be ended.
    async fn rest(&self) -> Result<(), PortError>;
}

/// Creates and removes the queues that vendor and customer share, and sets whose runners may send reports.
#[async_trait]
pub trait QueueAdmin: Send + Sync {
    /// Creates the orders queue of `install`, and returns its URL. Only the install's runner role in `account` can read
    /// the queue.
    async fn create_orders_queue(&self, install: &InstallId, account: &AccountId) -> Result<String, PortError>;

    /// Lets the install's runner role in `account` receive from the orders queue if `open` is true, and nobody
    /// otherwise. Nothing happens if the queue does not exist.
    async fn turn_orders_queue(&self, install: &InstallId, account: &AccountId, open: bool) -> Result<(), PortError>;

    /// Removes the orders queue of `install` with its messages. A missing queue counts as removed.
    async fn remove_orders_queue(&self, install: &InstallId) -> Result<(), PortError>;

    /// Creates the reports queue with the number `shard`, and lets `accept-report` receive its messages. Returns its URL.
    /// The tenant stack has created the first one.
    async fn create_reports_queue(&self, shard: u32) -> Result<String, PortError>;

    /// Allows exactly the runners of these accounts to send to the reports queue with the number `shard`.
    async fn allow_reporters(&self, shard: u32, accounts: &BTreeSet<AccountId>) -> Result<(), PortError>;
}

/// The state machines in Step Functions.
#[async_trait]
pub trait Machines: Send + Sync {
    /// Starts the execution that is named after the workflow and, once the workflow was continued, after the `attempt`,
    /// which counts from 0. An execution that exists already counts as started.
    async fn start(
        &self,
        kind: WorkflowKind,
        workflow: &WorkflowId,
        install: &InstallId,
        attempt: u32,
    ) -> Result<(), PortError>;
}

/// Callbacks to the waiting states of the state machines.
#[async_trait]
pub trait Callbacks: Send + Sync {
    /// Ends the waiting state that issued `token`. A state that has ended already is not an error.
    async fn succeed(&self, token: &str, output: &serde_json::Value) -> Result<(), PortError>;

    /// Sends a heartbeat to the waiting state that issued `token`: the work is still running.
    async fn heartbeat(&self, token: &str) -> Result<(), PortError>;
}

/// A key that signs orders for a limited time, with the root key's certificate.
#[derive(Clone)]
pub struct DelegateKey {
    pub key: SigningKey,
    pub certificate: Envelope,
    pub not_after: Timestamp,
    /// The time until which the key's messages may be sent.
    pub send_until: Timestamp,
}

impl DelegateKey {
    /// Returns whether the key may sign, at `now`, a message that is valid until `until`: the message can then be sent
    /// again for a while.
    pub fn lasts(&self, now: Timestamp, until: Timestamp) -> bool {
        self.not_after >= until && self.send_until >= now.plus_secs(DELEGATE_SPARE_SECS)
    }
}

impl std::fmt::Debug for DelegateKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DelegateKey(until {})", self.not_after.as_millis())
    }
}

/// Signs messages and statements for the tenant.
#[async_trait]
pub trait Signer: Send + Sync {
    /// Returns a delegate key whose certificate lasts at least until `until`.
    async fn delegate(&self, until: Timestamp) -> Result<Arc<DelegateKey>, PortError>;

    /// Returns `statement`, signed by the root key itself. This signature is valid longer than the signature of any
    /// delegate key.
    async fn attest(&self, statement: &Statement) -> Result<Envelope, PortError>;
}

/// The tenant's public root key.
#[async_trait]
pub trait RootKey: Send + Sync {
    /// Returns the public key.
    async fn public_key(&self) -> Result<PublicKey, PortError>;

    /// Returns the successions of root keys that lead to this key, oldest first.
    fn succession(&self) -> Vec<Envelope>;

    /// Returns the only root key that may follow this one, if one was announced.
    fn second(&self) -> Option<PublicKey>;
}

/// The tenant registry.
#[async_trait]
pub trait Registry: Send + Sync {
    /// Returns a manifest's exact bytes.
    async fn manifest(&self, manifest: &Descriptor) -> Result<Vec<u8>, PortError>;

    /// Returns a pre-signed URL of a blob, valid for minutes.
    async fn blob_url(&self, blob: &Descriptor) -> Result<String, PortError>;
}

/// Removes artifacts from the tenant registry.
#[async_trait]
pub trait ArtifactRemover: Send + Sync {
    /// Removes manifests and their tags, in the order of `manifests`. Missing manifests count as removed.
    async fn remove(&self, manifests: &[Digest]) -> Result<(), PortError>;
}

/// The tenant's bucket.
#[async_trait]
pub trait Objects: Send + Sync {
    /// Returns a pre-signed URL that uploads `sources/<hex>.tar.gz`, valid for `valid_secs` seconds. It accepts only
    /// bytes with this digest and this size in bytes.
    async fn presign_source(&self, digest: &Digest, size: u64, valid_secs: u64) -> Result<String, PortError>;

    /// Returns a pre-signed URL that reads `sources/<hex>.tar.gz`, valid for `valid_secs` seconds.
    async fn source_url(&self, digest: &Digest, valid_secs: u64) -> Result<String, PortError>;

    /// Writes the canonical bytes of the app version with this digest to `versions/<hex>.json`. A repeated write of the
    /// same bytes changes nothing.
    async fn put_version(&self, digest: &Digest, bytes: &[u8]) -> Result<(), PortError>;

    /// Returns the unverified bytes at `versions/<hex>.json`, if the object exists. Does not read an object that is
    /// larger than an app version may be.
    async fn get_version(&self, digest: &Digest) -> Result<Option<Vec<u8>>, PortError>;
}

/// The topic through which people get notifications.
#[async_trait]
pub trait NotificationTopic: Send + Sync {
    /// Sends a notification to the subscribers that chose it. A notification that is sent again reaches them again.
    async fn publish(&self, notification: &Notification) -> Result<(), PortError>;
}

/// A subscription to the notifications, as SNS knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// The address that gets the notifications.
    pub endpoint: String,
    /// The protocol, as SNS names it.
    pub protocol: String,
    /// The ARN of a subscription that is confirmed; absent until then.
    pub arn: Option<String>,
    /// The notifications that the subscriber chose; absent while they are not known.
    pub filter: Option<NotificationFilter>,
}

/// The subscriptions to the notifications.
#[async_trait]
pub trait Subscriptions: Send + Sync {
    /// Subscribes an endpoint, and lets SNS ask its owner to confirm. Asks again if nobody has confirmed yet.
    async fn subscribe(&self, endpoint: &Endpoint, filter: &NotificationFilter) -> Result<(), PortError>;

    /// Returns all subscriptions, in the order of SNS.
    async fn subscriptions(&self) -> Result<Vec<Subscription>, PortError>;

    /// Removes the confirmed subscription with this ARN. A missing one counts as removed.
    async fn unsubscribe(&self, arn: &str) -> Result<(), PortError>;
}
