//! A bucket in memory for tests, whose writes fail as the test says.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use ed25519_dalek::SigningKey;
use freehold_protocol::audit::verify::{Known, RecordsCopy, Verified, verify};
use freehold_protocol::audit::{AuditEvent, AuditRecord, MAX_OBJECT_BYTES, record_name, record_number};
use freehold_protocol::{Envelope, Timestamp};

use super::bucket::{Bucket, Created, Later, Object};
use super::{AuditError, Author};
use crate::keys::runner_key::Identity;
use crate::process::clock;

/// What happens to a write of a record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Fate {
    #[default]
    Works,
    Fails,
    /// The object is written, and the answer is lost.
    AnswerIsLost,
    Contended,
    /// There is no answer, and the object is not written.
    Hangs,
}

/// A bucket in memory.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) objects: Mutex<BTreeMap<String, Vec<u8>>>,
    /// The times at which some objects were written. All others count as written now.
    pub(crate) written_at: Mutex<BTreeMap<String, Timestamp>>,
    /// What happens to the next writes. The last element is for the first of them.
    pub(crate) fates: Mutex<Vec<Fate>>,
    /// What happens to the writes after those of `fates`.
    pub(crate) always: Mutex<Fate>,
    /// Whether the next write of a key is contended.
    pub(crate) contends_for_a_key: AtomicBool,
    /// What happens to the writes of messages that records name, such as orders.
    pub(crate) messages: Mutex<Fate>,
    pub(crate) calls: AtomicUsize,
    open_reads: AtomicUsize,
    /// The most reads that were open at the same time.
    pub(crate) most_reads: AtomicUsize,
}

impl Memory {
    fn next_fate(&self) -> Fate {
        let next = self.fates.lock().unwrap().pop();
        next.unwrap_or_else(|| *self.always.lock().unwrap())
    }

    fn trouble() -> AuditError {
        AuditError::Bucket { bucket: "b".into(), action: "s3:PutObject", reason: "closed".into() }
    }

    pub(crate) fn verified(&self) -> Verified {
        let mut copy = RecordsCopy::default();
        for (name, bytes) in self.objects.lock().unwrap().iter() {
            assert!(copy.add(name, bytes.clone()), "{name}");
        }
        verify(&copy, Known::default())
    }

    /// Returns the results of all attempts whose end is recorded.
    pub(crate) fn results(&self) -> Vec<String> {
        let objects = self.objects.lock().unwrap();
        let records = objects.iter().filter(|(name, _)| record_number(name).is_some());
        let events = records.map(|(_, bytes)| Envelope::parse(bytes).unwrap().peek::<AuditRecord>().unwrap().event);
        events
            .filter_map(|event| if let AuditEvent::Ended { result, .. } = event { Some(result) } else { None })
            .collect()
    }

    /// Returns the events in the order of the chain, which must be whole: the host that joins, the number of the job that
    /// ended, or a few words.
    pub(crate) fn events(&self) -> Vec<String> {
        assert_eq!(self.verified().problems, []);
        let objects = self.objects.lock().unwrap();
        let records = objects.iter().filter(|(name, _)| record_number(name).is_some());
        let event = |bytes: &[u8]| match Envelope::parse(bytes).unwrap().peek::<AuditRecord>().unwrap().event {
            AuditEvent::Joined { host, .. } => host,
            AuditEvent::Ended { job, result, .. } if result == "succeeded" || result.starts_with("xx") => {
                job.to_string().trim_start_matches("job_").trim_start_matches('0').into()
            }
            AuditEvent::Ended { result, .. } => result,
            AuditEvent::Started { .. } => "started".into(),
            AuditEvent::Sent { reports } => format!("sent {}", reports.len()),
            AuditEvent::IamChange { action, stage, detail, .. } => format!("{action} {stage} {detail}"),
            AuditEvent::Newer(event) => event.event,
            other => panic!("{other:?}"),
        };
        records.map(|(_, bytes)| event(bytes)).collect()
    }
}

#[async_trait]
impl Bucket for Memory {
    async fn create(&self, name: &str, bytes: Vec<u8>) -> Result<Created, AuditError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if name.ends_with(".pub") && self.contends_for_a_key.swap(false, Ordering::Relaxed) {
            return Ok(Created::Contended);
        }
        let fate = match (record_number(name), name.contains('/')) {
            (Some(_), _) => self.next_fate(),
            (None, true) => *self.messages.lock().unwrap(),
            (None, false) => Fate::Works,
        };
        match fate {
            Fate::Fails => return Err(Self::trouble()),
            Fate::Contended => return Ok(Created::Contended),
            Fate::Hangs => std::future::pending().await,
            Fate::Works | Fate::AnswerIsLost => {}
        }
        let mut objects = self.objects.lock().unwrap();
        let created = if objects.contains_key(name) { Created::Exists } else { Created::New };
        objects.entry(name.to_owned()).or_insert(bytes);
        if fate == Fate::AnswerIsLost { Err(Self::trouble()) } else { Ok(created) }
    }

    async fn replace(&self, name: &str, bytes: Vec<u8>) -> Result<(), AuditError> {
        assert!(name.ends_with(".pub"), "the role may not replace a record");
        self.objects.lock().unwrap().insert(name.to_owned(), bytes);
        Ok(())
    }

    async fn read(&self, name: &str) -> Result<Object, AuditError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let open = self.open_reads.fetch_add(1, Ordering::Relaxed) + 1;
        self.most_reads.fetch_max(open, Ordering::Relaxed);
        tokio::task::yield_now().await;
        self.open_reads.fetch_sub(1, Ordering::Relaxed);
        let written_at = self.written_at.lock().unwrap().get(name).copied().or_else(|| Some(clock::local()));
        let bytes = self.objects.lock().unwrap().get(name).cloned().ok_or_else(Self::trouble)?;
        if bytes.len() > MAX_OBJECT_BYTES {
            let (bucket, object) = ("b".to_owned(), format!("audit/{name}"));
            return Err(AuditError::TooLarge { bucket, object, most: MAX_OBJECT_BYTES, written_at });
        }
        Ok(Object { bytes, written_at })
    }

    async fn later(&self, seq: u64, page: u16) -> Result<Later, AuditError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let objects = self.objects.lock().unwrap();
        let mut after = objects.range(record_name(seq)..).filter_map(|(name, _)| record_number(name));
        let numbers: Vec<u64> = after.by_ref().filter(|number| *number > seq).take(page.into()).collect();
        Ok(Later { highest: numbers.last().copied(), more: after.next().is_some() })
    }
}

/// Returns the runner with the key of this seed.
pub(crate) fn author(seed: u8) -> Author {
    Author {
        identity: Arc::new(Identity::from_key(SigningKey::from_bytes(&[seed; 32]))),
        tenant: "acme".parse().unwrap(),
        install: "globex-prod".parse().unwrap(),
        host: format!("i-{seed}"),
    }
}
