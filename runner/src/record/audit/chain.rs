//! Writes the records of this machine into the chain of the install, in the customer's bucket.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use freehold_protocol::audit::{AuditEvent, AuditRecord, record_name};
use freehold_protocol::{Digest, Envelope, Timestamp};
use futures_util::future::join_all;

use tokio::sync::Notify;
use tokio::time::Instant;
use tracing::warn;

use super::author::Author;
use super::bucket::{Bucket, Created, Later, Object};
use super::error::AuditError;
use super::latest_head::LatestHead;
use super::others::Others;
use super::waiting_events::{Entry, Head, Room, Spool, Trying};
use crate::process::clock;

/// The maximum number of consecutive writes that fail because another machine wrote a record first.
const MOST_CONFLICTS: u32 = 100;
/// The pause before a contended write of an object that is not a record is tried again.
const CONTENDED: Duration = Duration::from_millis(100);
/// The number of records that are read at the same time.
const READS: u64 = 16;
/// The maximum number of records in one response of S3.
const PAGE: u16 = 1000;

/// The chain of the install, as one of its machines sees it.
#[derive(Debug)]
pub(super) struct BucketChain {
    bucket: Arc<dyn Bucket>,
    spool: Mutex<Spool>,
    /// Held while records are written.
    placing: tokio::sync::Mutex<()>,
    /// Whether this process knows that the bucket has the public key.
    has_key: AtomicBool,
    /// Notified of each new event.
    pub(super) added: Notify,
    pub(super) latest: LatestHead,
    others: Mutex<Others>,
}

impl BucketChain {
    pub(super) fn open(state_dir: &Path, bucket: Arc<dyn Bucket>) -> Result<Self, AuditError> {
        let spool = Spool::open(state_dir)?;
        let latest = LatestHead::default();
        latest.set(spool.last_record());
        let others = Mutex::new(Others { noticed: 0, until: spool.has_others().then(Instant::now) });
        let spool = Mutex::new(spool);
        let (placing, has_key) = (tokio::sync::Mutex::default(), AtomicBool::default());
        Ok(Self { bucket, spool, placing, has_key, added: Notify::new(), latest, others })
    }

    /// Puts an object that records name, unless an object of this name exists. The author's public key comes first, so
    /// that nobody finds a report there whose key is missing.
    pub(super) async fn keep(&self, author: &Author, name: &str, bytes: Vec<u8>) -> Result<(), AuditError> {
        for _ in 0..MOST_CONFLICTS {
            if !self.bring_key(author).await? {
                tokio::time::sleep(CONTENDED).await;
                continue;
            }
            match self.bucket.create(name, bytes.clone()).await? {
                // The name is the digest of a message, or the number of a receipt, so it does not matter which machine
                // was first.
                Created::New | Created::Exists => return Ok(()),
                Created::Contended => tokio::time::sleep(CONTENDED).await,
            }
        }
        Err(AuditError::Contended(MOST_CONFLICTS))
    }

    /// Returns what this process has noticed of other machines.
    pub(super) fn others(&self) -> Others {
        *self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Continues the chain after `head`, a record of another machine or the beginning of the chain.
    fn continue_after(&self, head: Head) -> Result<(), AuditError> {
        let is_record = head.seq > 0;
        self.spool().continues_after(head)?;
        self.learn_head();
        if !is_record {
            return Ok(());
        }
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        *others = Others { noticed: others.noticed + 1, until: Some(Instant::now()) };
        Ok(())
    }

    fn learn_head(&self) {
        self.latest.set(self.spool().last_record());
    }

    /// Adds an event to the spool; if not `durably`, the next durable write to the spool makes it durable.
    pub(super) fn add(&self, event: AuditEvent, room: Room, durably: bool) -> Result<(), AuditError> {
        self.spool().add(Entry { at: clock::local(), event }, room, durably)?;
        self.added.notify_one();
        Ok(())
    }

    /// Returns the number of the last event whose record is in the bucket, and the number of the last event that was added.
    /// [`Self::place`] takes such a number.
    pub(super) fn progress(&self) -> (u64, u64) {
        let spool = self.spool();
        (spool.placed(), spool.added())
    }

    /// Writes the records of the spool into the bucket, oldest first, up to that of `entry`.
    ///
    /// A record is stored before it is written. After a crash or a lost response, the same bytes are written again
    /// under the same number, until the bucket has an object of this number. If that object is the record of another
    /// machine, the event gets a later number. So no event is lost or recorded twice, and no number is left out. The
    /// same holds when the caller drops this future.
    pub(super) async fn place(&self, author: &Author, entry: u64) -> Result<(), AuditError> {
        let _placing = self.placing.lock().await;
        let mut conflicts = 0;
        while self.spool().placed() < entry {
            if conflicts == MOST_CONFLICTS {
                return Err(AuditError::Contended(conflicts));
            }
            if !self.bring_key(author).await? {
                conflicts += 1;
                continue;
            }
            let trying = self.trying(author).await?;
            let (name, record) = (record_name(trying.seq), trying.record);
            let is_ours = match self.bucket.create(&name, record.clone().into_bytes()).await? {
                Created::New => true,
                Created::Exists => {
                    let found = self.bucket.read(&name).await?.bytes;
                    let is_ours = found == record.as_bytes();
                    if !is_ours {
                        refuse_shared_key(author, trying.seq, &record, &found)?;
                        let head = self.end(Head { seq: trying.seq, digest: Digest::of(&found) }).await?;
                        self.continue_after(head)?;
                    }
                    is_ours
                }
                Created::Contended => false,
            };
            if is_ours {
                self.spool().succeeded()?;
                self.learn_head();
                conflicts = 0;
            } else {
                conflicts += 1;
            }
        }
        Ok(())
    }

    /// Writes the author's public key, unless this process knows that the bucket has it. Returns whether the bucket has
    /// it now.
    async fn bring_key(&self, author: &Author) -> Result<bool, AuditError> {
        let has_key = self.has_key.load(Ordering::Relaxed) || self.write_key(author).await?;
        self.has_key.store(has_key, Ordering::Relaxed);
        Ok(has_key)
    }

    /// Writes the author's public key, unless the bucket has it. Returns whether the bucket has it now.
    async fn write_key(&self, author: &Author) -> Result<bool, AuditError> {
        let key = author.identity.public_key();
        let (name, text) = (format!("{}.pub", key.key_id()), format!("{key}\n").into_bytes());
        match self.bucket.create(&name, text.clone()).await? {
            Created::New => Ok(true),
            Created::Contended => Ok(false),
            Created::Exists => {
                // The name is the beginning of the key's digest, so no other key belongs there.
                let is_there = match self.bucket.read(&name).await {
                    Ok(object) => object.bytes == text,
                    Err(AuditError::TooLarge { .. }) => false,
                    Err(error) => return Err(error),
                };
                if !is_there {
                    self.bucket.replace(&name, text).await?;
                    warn!("Object `audit/{name}` was not the public key of this runner, and was written again");
                }
                Ok(true)
            }
        }
    }

    /// Returns the record to write next, which is in the spool.
    async fn trying(&self, author: &Author) -> Result<Trying, AuditError> {
        let (trying, head) = {
            let spool = self.spool();
            (spool.trying().cloned(), spool.head().cloned())
        };
        if let Some(trying) = trying {
            return Ok(trying);
        }
        let head = match head {
            Some(head) => head,
            // A new machine: the chain continues where the last machine ended.
            None => {
                let end = self.end(Head { seq: 0, digest: Digest::of(b"") }).await?;
                self.continue_after(end.clone())?;
                end
            }
        };
        let mut spool = self.spool();
        let joins = spool.joined() != Some(author.identity.id());
        let next = if joins { None } else { spool.first().cloned() };
        let Entry { at, event } = next.unwrap_or_else(|| Entry {
            at: clock::local(),
            event: AuditEvent::Joined { host: author.host.clone(), version: env!("CARGO_PKG_VERSION").to_owned() },
        });
        spool.tries(author.record(head.seq + 1, head.digest, at, event)?, joins)
    }

    /// Returns the `wanted` records of all machines that were written since `from`, by the clock of the bucket, the
    /// newest first. The times in the records are those of each machine's clock, and a record may wait on its machine
    /// for long.
    pub(super) async fn since(
        &self,
        from: Timestamp,
        wanted: impl Fn(&AuditRecord) -> bool,
    ) -> Result<Vec<AuditRecord>, AuditError> {
        let known = self.spool().head().cloned();
        let end = self.end(known.unwrap_or_else(|| Head { seq: 0, digest: Digest::of(b"") })).await?;
        let mut found = Vec::new();
        let mut highest = end.seq;
        while highest > 0 {
            let lowest = highest.saturating_sub(READS - 1).max(1);
            let mut reads = Vec::new();
            for seq in (lowest..=highest).rev() {
                reads.push(self.object(seq));
            }
            // A record before `from` that cannot be read does not matter, so the results are checked one after the
            // other.
            for (seq, read) in (lowest..=highest).rev().zip(join_all(reads).await) {
                let written_at = match &read {
                    Ok(Object { written_at, .. }) | Err(AuditError::TooLarge { written_at, .. }) => *written_at,
                    Err(_) => None,
                };
                if written_at.is_some_and(|written_at| written_at < from) {
                    return Ok(found);
                }
                let bytes = read?.bytes;
                let record = Envelope::parse(&bytes).and_then(|envelope| envelope.peek::<AuditRecord>());
                let record = record.map_err(|_| AuditError::Unreadable { seq })?;
                if wanted(&record) {
                    found.push(record);
                }
            }
            highest = lowest - 1;
        }
        Ok(found)
    }

    async fn object(&self, seq: u64) -> Result<Object, AuditError> {
        self.bucket.read(&record_name(seq)).await
    }

    /// Returns the end of the chain in the bucket, which has `known`. Takes few calls, however long the chain is: the
    /// numbers have no gap, so the steps double until a page is the last one, and are halved after that.
    async fn end(&self, known: Head) -> Result<Head, AuditError> {
        let (mut highest, mut step) = (known.seq, 0);
        // Whether a step went beyond the end. From then on, the steps get smaller.
        let mut is_beyond = false;
        loop {
            let from = highest + step;
            let Later { highest: found, more } = self.bucket.later(from, PAGE).await?;
            match found {
                Some(found) if !more => {
                    highest = found;
                    break;
                }
                Some(found) => {
                    highest = found;
                    step = if is_beyond { step / 2 } else { (step * 2).max(u64::from(PAGE)) };
                }
                // Nothing is later than the last number of an earlier page.
                None if step == 0 => break,
                None => {
                    is_beyond = true;
                    step /= 2;
                }
            }
        }
        if highest == known.seq {
            return Ok(known);
        }
        let digest = Digest::of(&self.object(highest).await?.bytes);
        Ok(Head { seq: highest, digest })
    }

    fn spool(&self) -> MutexGuard<'_, Spool> {
        self.spool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns an error if the key of `author` signed both records with this number: that of this machine, and the one in
/// the bucket. A machine stores a record before it writes it, and never writes another one with the same number. So
/// another machine has the key.
fn refuse_shared_key(author: &Author, seq: u64, own: &str, found: &[u8]) -> Result<(), AuditError> {
    let key = author.identity.public_key();
    let is_signed = |bytes: &[u8]| {
        let record = Envelope::parse(bytes).and_then(|envelope| envelope.open::<AuditRecord>(&key));
        record.is_ok_and(|record| record.seq == seq)
    };
    if is_signed(own.as_bytes()) && is_signed(found) {
        return Err(AuditError::SharedKey { seq, key: key.key_id() });
    }
    Ok(())
}
