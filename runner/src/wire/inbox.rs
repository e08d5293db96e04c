//! The seam through which orders come in and reports go out. SQS now (`sqs.rs`); a push wake-up or a file later.

use async_trait::async_trait;
use freehold_protocol::Timestamp;
use tokio::time::Instant;

/// One message as it was handed to this runner.
#[derive(Debug, Clone)]
pub struct Delivery {
    pub body: String,
    /// What renews and deletes this delivery; a redelivery has another one.
    pub handle: String,
    /// How many times the message has been handed out, from 1. Second half of the attempt's fence.
    pub receive: u32,
    /// When the queue took the message, on the control plane's clock.
    pub sent_at: Timestamp,
    /// A time at or before which the lease began.
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
    /// An [`InboxError`] when nothing is known to have been taken.
    async fn send(&self, bodies: &[String]) -> Result<Vec<Sent>, InboxError>;
}

/// What became of one message that was sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sent {
    /// The queue has it.
    Taken,
    /// Not now.
    Later,
    /// Never: the queue says that the message itself is wrong.
    Never(String),
}

/// Why a queue did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InboxError {
    /// The runner's role may not use the queue, or there is no such queue (any more).
    #[error("the queue refuses this runner: {0}")]
    Denied(String),
    /// The delivery is not this runner's any more.
    #[error("the delivery is not ours any more: {0}")]
    Gone(String),
    /// Anything that may pass.
    #[error("the queue did not answer as it should: {0}")]
    Transient(String),
}
