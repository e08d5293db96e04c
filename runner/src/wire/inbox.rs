//! The interface to the queues: orders come in, and reports go out. `sqs.rs` implements it.

use async_trait::async_trait;
use freehold_protocol::Timestamp;
use tokio::time::Instant;

/// One delivery of a message to this runner.
#[derive(Debug, Clone)]
pub struct Delivery {
    pub body: String,
    /// The handle for renewing and deleting this delivery. Each delivery has its own handle.
    pub handle: String,
    /// How many times the message has been delivered, counted from 1. It is the second half of the attempt's fence.
    pub receive: u32,
    /// The time when the queue accepted the message, on the control plane's clock.
    pub sent_at: Timestamp,
    /// The message group in which the message was sent; `None` if the queue did not name it.
    pub group: Option<String>,
    /// The earliest possible start of the lease.
    pub leased_at: Instant,
}

impl Delivery {
    /// Returns the time when the queue accepted the message, unless the queue did not name it.
    pub fn known_sent_at(&self) -> Option<Timestamp> {
        (self.sent_at != Timestamp::default()).then_some(self.sent_at)
    }
}

/// Receives messages under a lease.
#[async_trait]
pub trait Inbox: Send + Sync + std::fmt::Debug {
    /// Waits up to `wait_secs` (at most 20) for messages, and returns up to 10. Each is leased for
    /// [`freehold_protocol::limits::LEASE_SECS`].
    ///
    /// # Errors
    /// An [`InboxError`]. As far as the runner knows, no message was received.
    async fn receive(&self, wait_secs: u64) -> Result<Vec<Delivery>, InboxError>;

    /// Sets the end of the lease to `secs` from now. With 0, the message returns to the queue at once.
    ///
    /// # Errors
    /// [`InboxError::Gone`] when the lease has already ended.
    async fn lease(&self, handle: &str, secs: u64) -> Result<(), InboxError>;

    /// Removes the message for good.
    ///
    /// # Errors
    /// The errors of [`Inbox::lease`].
    async fn delete(&self, handle: &str) -> Result<(), InboxError>;
}

/// Sends reports.
#[async_trait]
pub trait Outbox: Send + Sync + std::fmt::Debug {
    /// Sends up to 10 messages of at most 1 MiB together, and returns the result for each, in order.
    ///
    /// # Errors
    /// An [`InboxError`] when it is unknown whether the queue accepted any of them.
    async fn send(&self, bodies: &[String]) -> Result<Vec<Sent>, InboxError>;
}

/// The result of sending one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sent {
    /// The queue accepted the message.
    Taken,
    /// The queue did not accept the message; a retry may succeed.
    Later,
    /// The queue will never accept the message, because the message itself is wrong.
    Never(String),
}

/// The reason why a call to a queue failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InboxError {
    /// The runner's role may not use the queue, or the queue does not exist.
    #[error("the queue refuses this runner: {0}")]
    Denied(String),
    /// The delivery no longer belongs to this runner.
    #[error("the delivery no longer belongs to this runner: {0}")]
    Gone(String),
    /// A failure that a retry may overcome.
    #[error("the call to the queue failed: {0}")]
    Transient(String),
}
