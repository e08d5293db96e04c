//! The audit trail: hash-chained records, signed by the runner's key.
//!
//! An install has one chain, in the customer's bucket, whichever machines write to it. Each record of the chain is an
//! object that is written under the condition that its number is new, so no machine can replace or fork what another
//! one wrote. The state directory holds the events whose records the bucket does not have yet. An event that is
//! recorded before its effect also waits for the bucket ([`Audit::flush`]).
//!
//! A runner without a bucket keeps a chain of its own in its state directory.

mod author;
pub mod bucket;
mod chain;
mod error;
mod latest_head;
mod local;
#[cfg(test)]
pub(crate) mod memory;
#[cfg(test)]
mod newer_tests;
mod others;
#[cfg(test)]
mod shared_key_tests;
#[cfg(test)]
mod tests;
mod waiting_events;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use freehold_protocol::audit::{AuditEvent, AuditRecord};
use freehold_protocol::{EnvelopeError, KeyId, Timestamp};
use tracing::warn;

use crate::aws;
use crate::backoff::Backoff;
use crate::process::watchdog::Beat;
pub use author::Author;
use bucket::Bucket;
use chain::BucketChain;
pub use error::AuditError;
pub use latest_head::LatestHead;
use local::LocalChain;
pub use others::Others;
use waiting_events::Room;

/// The time limit for [`Audit::flush`] before an audited event. The flush writes the records of earlier events first.
pub const BUCKET_LIMIT: Duration = Duration::from_secs(60);
/// The maximum length of an event, in bytes. Its record, in base64 and with a signature, then fits into an envelope, so
/// that it can be read again.
const LONGEST: usize = 700 * 1024;
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

    /// Records an event durably. The bucket gets the record later, by [`Audit::carry`] or [`Audit::flush`]. If the event
    /// is about to happen, it must not happen before [`Audit::flush`] has succeeded, and [`Audit::conclude`] must follow.
    ///
    /// # Errors
    /// An [`AuditError`]; [`AuditError::Full`] while too many events wait for the bucket.
    pub fn record(&self, event: AuditEvent) -> Result<(), AuditError> {
        self.add(event, Room::Limited, true)
    }

    /// Records an event that is about to happen, like [`Audit::record`]. The next [`Audit::flush`] makes it durable: it
    /// writes the record to the disk, and then into the bucket. If the power fails before that, the event is not
    /// recorded, and it has not happened either.
    ///
    /// # Errors
    /// The errors of [`Audit::record`].
    pub fn announce(&self, event: AuditEvent) -> Result<(), AuditError> {
        self.add(event, Room::Limited, false)
    }

    /// Records the end of an event durably; [`Audit::record`] has recorded its beginning. This also works while too many
    /// records wait for the bucket.
    ///
    /// # Errors
    /// An [`AuditError`].
    pub fn conclude(&self, event: AuditEvent) -> Result<(), AuditError> {
        self.add(event, Room::Always, true)
    }

    /// Returns the last record that this machine knows to be in the customer's bucket; it is always up to date.
    pub fn latest_head(&self) -> LatestHead {
        match &self.trail {
            Trail::Local(_) => LatestHead::default(),
            Trail::Bucket(chain) => chain.latest.clone(),
        }
    }

    /// Returns what this process has noticed of other machines of the install; `None` for a runner without a bucket, which
    /// knows no other machine.
    pub fn others(&self) -> Option<Others> {
        match &self.trail {
            Trail::Local(_) => None,
            Trail::Bucket(chain) => Some(chain.others()),
        }
    }

    /// Returns the key that signs the records of this process.
    pub fn key(&self) -> &KeyId {
        self.author.identity.id()
    }

    /// Returns whether the records are in the customer's bucket, with the messages that they name.
    pub const fn is_in_bucket(&self) -> bool {
        matches!(self.trail, Trail::Bucket(_))
    }

    /// Stores a message that records name: an order, a report or a receipt. `name` is below `audit/`. Does nothing for a
    /// runner without a bucket.
    ///
    /// # Errors
    /// An [`AuditError`]; [`AuditError::Slow`] after the time limit.
    pub async fn keep(&self, name: &str, bytes: Vec<u8>, within: Duration) -> Result<(), AuditError> {
        let Trail::Bucket(chain) = &self.trail else { return Ok(()) };
        let slow = |_| Err(AuditError::Slow { secs: within.as_secs(), waiting: 1 });
        tokio::time::timeout(within, chain.keep(&self.author, name, bytes)).await.unwrap_or_else(slow)
    }

    fn add(&self, event: AuditEvent, room: Room, durably: bool) -> Result<(), AuditError> {
        let text = serde_json::to_vec(&event).map_err(|error| EnvelopeError::Unwritable(error.to_string()))?;
        if text.len() > LONGEST {
            return Err(AuditError::TooLong { bytes: text.len(), most: LONGEST });
        }
        match &self.trail {
            Trail::Local(chain) => chain.lock().unwrap_or_else(PoisonError::into_inner).append(&self.author, event),
            Trail::Bucket(chain) => chain.add(event, room, durably),
        }
    }

    /// Writes the records that nobody waits for into the bucket. Returns only [`AuditError::SharedKey`], after
    /// which no record can be written.
    pub async fn carry(&self, beat: &Beat) -> AuditError {
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
                Err(error @ AuditError::SharedKey { .. }) => return error,
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

    /// Returns the `wanted` records of all machines of the install since `from`, the newest first; `None` for a runner
    /// without a bucket, which knows no other machine. The other records do not stay in memory: a chain has no maximum
    /// length, and the sender of an order chooses how long ago it was made.
    ///
    /// # Errors
    /// An [`AuditError`]; [`AuditError::SlowRead`] after the time limit.
    pub async fn since(
        &self,
        from: Timestamp,
        within: Duration,
        wanted: impl Fn(&AuditRecord) -> bool,
    ) -> Result<Option<Vec<AuditRecord>>, AuditError> {
        let Trail::Bucket(chain) = &self.trail else { return Ok(None) };
        let read = tokio::time::timeout(within, chain.since(from, wanted)).await;
        read.unwrap_or(Err(AuditError::SlowRead { secs: within.as_secs() })).map(Some)
    }

    /// Writes all events that were recorded before this call into the bucket. What is not written within the time limit
    /// is written later.
    ///
    /// # Errors
    /// An [`AuditError`]; [`AuditError::Slow`] after the time limit.
    pub async fn flush(&self, within: Duration) -> Result<(), AuditError> {
        let Trail::Bucket(chain) = &self.trail else { return Ok(()) };
        let (_, last) = chain.progress();
        tokio::time::timeout(within, chain.place(&self.author, last)).await.unwrap_or_else(|_| {
            let (placed, added) = chain.progress();
            Err(AuditError::Slow { secs: within.as_secs(), waiting: added - placed })
        })
    }
}
