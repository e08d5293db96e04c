//! The audit trail: hash-chained records, signed by the runner's key.
//!
//! An install has one chain, in the customer's bucket, whichever machines write to it. A record of it is an object that
//! is written under the condition that its number is new, so no machine can replace or fork what another one wrote. The
//! state directory holds the events whose records the bucket does not have yet. What must be announced before its effect
//! waits for the bucket.
//!
//! A runner without a bucket keeps a chain of its own in its state directory.

mod author;
pub mod bucket;
mod chain;
mod error;
mod local;
mod spool;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use freehold_protocol::audit::AuditEvent;
use tracing::warn;

use crate::aws;
use crate::backoff::Backoff;
use crate::operate::watchdog::Beat;
pub use author::Author;
use bucket::Bucket;
use chain::BucketChain;
pub use error::AuditError;
use local::LocalChain;

/// The longest pause between two signs of progress ([`Beat::alive`]).
const IDLE: Duration = Duration::from_secs(60);

/// The audit trail of one runner.
#[derive(Debug)]
pub struct Audit {
    author: Author,
    trail: Trail,
}

#[derive(Debug)]
enum Trail {
    Local(Mutex<LocalChain>),
    Bucket(Box<BucketChain>),
}

impl Audit {
    /// Opens the trail whose files are in `state_dir`: the chain of the install in `bucket`, or a chain in the directory.
    /// Drops an incomplete last line of the file, which a crash left.
    ///
    /// # Errors
    /// An [`AuditError`].
    pub fn open(state_dir: &Path, author: Author, bucket: Option<Arc<dyn Bucket>>) -> Result<Self, AuditError> {
        let trail = match bucket {
            Some(bucket) => Trail::Bucket(Box::new(BucketChain::open(state_dir, bucket)?)),
            None => Trail::Local(Mutex::new(LocalChain::open(state_dir)?)),
        };
        Ok(Self { author, trail })
    }

    /// Records durably an event that has happened. The bucket gets the record later, by [`Audit::carry`] or with the next
    /// announced one.
    ///
    /// # Errors
    /// An [`AuditError`].
    pub fn record(&self, event: AuditEvent) -> Result<(), AuditError> {
        match &self.trail {
            Trail::Local(chain) => chain.lock().unwrap_or_else(PoisonError::into_inner).append(&self.author, event),
            Trail::Bucket(chain) => chain.add(event).map(|_| ()),
        }
    }

    /// Records an event that is about to happen, also in the customer's bucket. If this fails, the event must not happen.
    ///
    /// # Errors
    /// An [`AuditError`].
    pub async fn announce(&self, event: AuditEvent) -> Result<(), AuditError> {
        match &self.trail {
            Trail::Local(_) => self.record(event),
            Trail::Bucket(chain) => {
                let entry = chain.add(event)?;
                chain.place(&self.author, entry).await
            }
        }
    }

    /// Writes records into the bucket that nobody waits for. Never returns.
    pub async fn carry(&self, beat: &Beat) {
        let mut backoff = Backoff::new(Duration::from_secs(1), IDLE);
        let mut is_failing = false;
        loop {
            beat.alive();
            let Trail::Bucket(chain) = &self.trail else {
                tokio::time::sleep(IDLE).await;
                continue;
            };
            let (placed, added) = chain.progress();
            if placed == added {
                let _ = tokio::time::timeout(IDLE, chain.added.notified()).await;
                continue;
            }
            match chain.place(&self.author, placed + 1).await {
                Ok(()) => {
                    is_failing = false;
                    backoff.succeeded();
                }
                Err(error) => {
                    if !is_failing {
                        warn!("Audit records wait in the state directory: {}", aws::explain(&error));
                    }
                    is_failing = true;
                    tokio::time::sleep(backoff.failed()).await;
                }
            }
        }
    }

    /// Writes into the bucket what it does not have yet.
    ///
    /// # Errors
    /// An [`AuditError`].
    pub async fn flush(&self) -> Result<(), AuditError> {
        match &self.trail {
            Trail::Local(_) => Ok(()),
            Trail::Bucket(chain) => chain.place(&self.author, chain.progress().1).await,
        }
    }
}
