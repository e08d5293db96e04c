//! The interface to the queues: orders come in, reports go out. `sqs.rs` implements it.

use async_trait::async_trait;
use freehold_protocol::Timestamp;
use tokio::time::Instant;

/// One delivery of a message to this runner.
#[derive(Debug, Clone)]
pub struct Delivery {
    pub body: String,
    /// The handle that renews and deletes this delivery; each delivery has its own.
    pub handle: String,
    /// How many times the message has been delivered, from 1. Second half of the attempt's fence.
    pub receive: u32,
    /// When the queue took the message, on the control plane's clock.
    pub sent_at: Timestamp,
    /// The lease began at this time or later.
    pub leased_at: Instant,
}

/// Takes messages under a lease.
#[async_trait]
pub trait Inbox: Send + Sync + std::fmt::Debug {
    /// Waits up to `wait_secs` (20 at most) for messages and returns up to 10, each leased for [`freehold_protocol::limits::LEASE_SECS`].
    ///
    /// # Errors
    /// An [`InboxError`]; nothing was taken, as far as this side can tell.
    async fn receive(&self, wait_secs: u64) -> Result<Vec<Delivery>, InboxError>;

    /// Lets the lease end `secs` from now; 0 gives the message back at once.
    ///
    /// # Errors
    /// [`InboxError::Gone`] when the lease has ended already.
    async fn lease(&self, handle: &str, secs: u64) -> Result<(), InboxError>;

    /// Removes the message for good.
    ///
    /// # Errors
    /// As [`Inbox::lease`].
    async fn delete(&self, handle: &str) -> Result<(), InboxError>;
}

/// Takes reports out of the runner.
#[async_trait]
pub trait Outbox: Send + Sync + std::fmt::Debug {
    /// Sends up to 10 messages of up to 1 MiB together and returns what became of each, in order.
    ///
    /// # Errors
    /// An [`InboxError`] when it is not known that the queue took any of them.
    async fn send(&self, bodies: &[String]) -> Result<Vec<Sent>, InboxError>;
}

/// The result for one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sent {
    /// The queue has the message.
    Taken,
    /// The queue did not take the message now.
    Later,
    /// The queue will never take the message: the message itself is wrong.
    Never(String),
}

/// Why a call to a queue failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InboxError {
    /// The runner's role may not use the queue, or the queue does not exist.
    #[error("the queue refuses this runner: {0}")]
    Denied(String),
    /// The delivery no longer belongs to this runner.
    #[error("the delivery no longer belongs to this runner: {0}")]
    Gone(String),
    /// An error that a later call may not meet.
    #[error("the queue did not answer as it should: {0}")]
    Transient(String),
}
