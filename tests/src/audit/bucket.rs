//! A bucket in memory that fails as S3 and the network do, and at which a machine may crash.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use fastrand::Rng;
use freehold_protocol::audit::verify::RecordsCopy;
use freehold_protocol::audit::{AuditEvent, AuditRecord, record_name, record_number};
use freehold_protocol::{Envelope, JobId};
use freehold_runner::record::audit::AuditError;
use freehold_runner::record::audit::bucket::{Bucket, Created, Later, Object};
use tokio::sync::Notify;

/// The objects, and what goes wrong.
#[derive(Debug)]
pub(super) struct Store {
    rng: Rng,
    pub(super) objects: BTreeMap<String, Vec<u8>>,
    /// Writes that were given up by who sent them, and that may still arrive.
    late: Vec<(String, Vec<u8>)>,
    /// Whether calls fail.
    pub(super) fails: bool,
    /// The number of faults so far, by their kind.
    pub(super) faults: BTreeMap<&'static str, u64>,
    /// The numbers of the records of each event, by its job.
    pub(super) events: BTreeMap<JobId, Vec<u64>>,
}

impl Store {
    pub(super) fn new(rng: Rng) -> Self {
        Self {
            rng,
            objects: BTreeMap::new(),
            late: Vec::new(),
            fails: true,
            faults: BTreeMap::new(),
            events: BTreeMap::new(),
        }
    }

    pub(super) fn count(&mut self, fault: &'static str) {
        *self.faults.entry(fault).or_default() += 1;
    }

    fn write(&mut self, name: &str, bytes: Vec<u8>) -> Created {
        if let Some(there) = self.objects.get(name) {
            // Receipts for one record differ in their times.
            if *there != bytes && record_number(name).is_some() {
                self.count("another machine was first");
            }
            return Created::Exists;
        }
        let record = Envelope::parse(&bytes).and_then(|envelope| envelope.peek::<AuditRecord>());
        if let Ok(AuditRecord { seq, event: AuditEvent::Ended { job, .. }, .. }) = record {
            self.events.entry(job).or_default().push(seq);
        }
        self.objects.insert(name.to_owned(), bytes);
        Created::New
    }

    /// Returns the copy that a customer makes.
    pub(super) fn copy(&self) -> RecordsCopy {
        let mut copy = RecordsCopy::default();
        for (name, bytes) in &self.objects {
            copy.add(name, bytes.clone());
        }
        copy
    }

    /// Lets a late write arrive, sometimes.
    fn land(&mut self) {
        let at = self.rng.usize(0..=self.late.len() * 2);
        if at < self.late.len() {
            let (name, bytes) = self.late.swap_remove(at);
            self.write(&name, bytes);
        }
    }
}

/// The bucket as one machine reaches it.
#[derive(Debug, Clone)]
pub(super) struct Door {
    pub(super) store: Arc<Mutex<Store>>,
    /// Told when the machine crashes; its call never ends.
    pub(super) crashed: Arc<Notify>,
}

/// What happens at a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Answered,
    Refused,
    Lost,
    Late,
    Contended,
    CrashedBefore,
    CrashedAfter,
}

impl Door {
    pub(super) fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fate(&self) -> Fate {
        let mut store = self.store();
        store.land();
        if !store.fails {
            return Fate::Answered;
        }
        let (fate, fault) = match store.rng.u8(0..30) {
            0 | 1 => (Fate::Refused, "the call failed"),
            2 | 3 => (Fate::Lost, "the answer was lost"),
            4 | 5 => (Fate::Late, "the call arrived after it was given up"),
            6 => (Fate::Contended, "another write was under way"),
            7 | 8 => (Fate::CrashedBefore, "a crash before the call"),
            9 | 10 => (Fate::CrashedAfter, "a crash after the call"),
            _ => return Fate::Answered,
        };
        store.count(fault);
        fate
    }

    fn trouble(&self) -> AuditError {
        AuditError::Bucket { bucket: "b".to_owned(), action: "s3:PutObject", reason: "on purpose".to_owned() }
    }

    async fn crash<T>(&self) -> T {
        self.crashed.notify_one();
        std::future::pending().await
    }

    /// Lets other machines continue, sometimes.
    async fn pause(&self) {
        let times = self.store().rng.u8(0..3);
        for _ in 0..times {
            tokio::task::yield_now().await;
        }
    }

    /// Decides about a call that changes nothing.
    async fn reading(&self) -> Result<(), AuditError> {
        self.pause().await;
        match self.fate() {
            Fate::Answered | Fate::Contended => Ok(()),
            Fate::Refused | Fate::Lost | Fate::Late => Err(self.trouble()),
            Fate::CrashedBefore | Fate::CrashedAfter => self.crash().await,
        }
    }
}

#[async_trait]
impl Bucket for Door {
    async fn create(&self, name: &str, bytes: Vec<u8>) -> Result<Created, AuditError> {
        self.pause().await;
        match self.fate() {
            Fate::Answered => {
                let created = self.store().write(name, bytes);
                Ok(created)
            }
            Fate::Refused => Err(self.trouble()),
            Fate::Lost => {
                self.store().write(name, bytes);
                Err(self.trouble())
            }
            Fate::Late => {
                self.store().late.push((name.to_owned(), bytes));
                Err(self.trouble())
            }
            Fate::Contended => Ok(Created::Contended),
            Fate::CrashedBefore => self.crash().await,
            Fate::CrashedAfter => {
                self.store().write(name, bytes);
                self.crash().await
            }
        }
    }

    async fn replace(&self, _: &str, _: Vec<u8>) -> Result<(), AuditError> {
        // No fault damages a key.
        Err(self.trouble())
    }

    async fn read(&self, name: &str) -> Result<Object, AuditError> {
        self.reading().await?;
        let bytes = self.store().objects.get(name).cloned().ok_or_else(|| self.trouble())?;
        Ok(Object { bytes, written_at: None })
    }

    async fn later(&self, seq: u64, page: u16) -> Result<Later, AuditError> {
        self.reading().await?;
        let store = self.store();
        let mut after = store.objects.range(record_name(seq)..).filter_map(|(name, _)| record_number(name));
        let numbers: Vec<u64> = after.by_ref().filter(|number| *number > seq).take(page.into()).collect();
        Ok(Later { highest: numbers.last().copied(), more: after.next().is_some() })
    }
}
