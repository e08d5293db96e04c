//! The audit trail: hash-chained records, signed by the runner key. The state directory holds them. For an install, the
//! customer's bucket holds them too, and gets a record before the effect that it announces.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_s3::primitives::ByteStream;
use freehold_protocol::audit::{AuditEvent, AuditRecord};
use freehold_protocol::envelope::PublicKey;
use freehold_protocol::{Digest, Envelope, InstallId, TenantName};

use crate::aws;
use crate::files;
use crate::identity::runner_key::Identity;
use crate::wire::clock;

const FILE: &str = "audit.jsonl";
/// The file with a record's number. The bucket has every record up to this one.
const SENT: &str = "audit.sent";
/// The maximum length of a record, in bytes.
const LONGEST: u64 = 64 * 1024;
/// The time limit for writing one record into the bucket.
const PUT_DEADLINE: Duration = Duration::from_secs(20);

/// The audit trail of one state directory.
#[derive(Debug)]
pub struct Audit {
    identity: Arc<Identity>,
    tenant: TenantName,
    install: InstallId,
    path: PathBuf,
    chain: Mutex<Chain>,
    bucket: Option<Arc<dyn Bucket>>,
    /// The keys that this runner had before. They have signed the older records.
    former: Vec<PublicKey>,
}

#[derive(Debug)]
struct Chain {
    file: File,
    seq: u64,
    head: Digest,
    /// The records that are not in the bucket yet, with their sequence numbers.
    pending: Vec<(u64, Vec<u8>)>,
    /// Whether this process has put the public key into the bucket.
    key_is_sent: bool,
}

/// The part of the customer's bucket in which the records are.
#[async_trait]
trait Bucket: std::fmt::Debug + Send + Sync {
    /// Puts an object; the same object may be put again.
    async fn put(&self, key: String, bytes: Vec<u8>) -> Result<(), AuditError>;
}

#[derive(Debug)]
struct S3Bucket {
    client: aws_sdk_s3::Client,
    name: String,
}

#[async_trait]
impl Bucket for S3Bucket {
    async fn put(&self, key: String, bytes: Vec<u8>) -> Result<(), AuditError> {
        let call = self.client.put_object().bucket(&self.name).key(key).body(ByteStream::from(bytes));
        let reason = match tokio::time::timeout(PUT_DEADLINE, call.send()).await {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(error)) => aws::explain(&error),
            Err(_) => format!("no answer within {} s", PUT_DEADLINE.as_secs()),
        };
        Err(AuditError::Bucket { bucket: self.name.clone(), reason })
    }
}

/// The reason why an audit record was not written.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The local file cannot be used.
    #[error("cannot use the audit file `{path}`; check permissions and free space of `state_dir`")]
    Io { path: PathBuf, source: std::io::Error },
    /// The last line of the file is not an audit record.
    #[error("the last record of `{path}` cannot be read; move the file away and keep it: it is evidence")]
    Damaged { path: PathBuf },
    /// The record cannot be signed.
    #[error("cannot sign an audit record: {0}")]
    Seal(#[from] freehold_protocol::EnvelopeError),
    /// The customer's bucket does not accept the record.
    #[error("cannot write the audit record to bucket `{bucket}`: {reason}; allow `s3:PutObject` on `audit/*`")]
    Bucket { bucket: String, reason: String },
}

impl Audit {
    /// Opens the chain in `state_dir`. Drops an incomplete last line, which a crash left.
    ///
    /// # Errors
    /// An [`AuditError`].
    pub fn open(
        state_dir: &Path,
        identity: Arc<Identity>,
        tenant: TenantName,
        install: InstallId,
    ) -> Result<Self, AuditError> {
        let path = state_dir.join(FILE);
        let io = |source| AuditError::Io { path: path.clone(), source };
        let mut options = OpenOptions::new();
        let mut file = options.read(true).create(true).append(true).mode(0o600).open(&path).map_err(io)?;
        let last = last_line(&mut file).map_err(io)?;
        let (seq, head) = match last {
            None => (0, Digest::of(b"")),
            Some(line) => {
                let record = Envelope::parse(&line).and_then(|envelope| envelope.peek::<AuditRecord>());
                (record.map_err(|_| AuditError::Damaged { path: path.clone() })?.seq, Digest::of(&line))
            }
        };
        let chain = Mutex::new(Chain { file, seq, head, pending: Vec::new(), key_is_sent: false });
        Ok(Self { identity, tenant, install, path, chain, bucket: None, former: Vec::new() })
    }

    /// Returns the trail with the former public keys of this runner. The trail puts them into the bucket too.
    #[must_use]
    pub fn after(self, former: Vec<PublicKey>) -> Self {
        Self { former, ..self }
    }

    /// Returns the trail with the bucket `name`. It then writes each record to this bucket, at the latest with the next
    /// [`Audit::announce`], including records that an earlier process did not write there.
    ///
    /// # Errors
    /// An [`AuditError`] when the file cannot be read.
    pub fn with_bucket(self, client: aws_sdk_s3::Client, name: &str) -> Result<Self, AuditError> {
        self.copied_to(Arc::new(S3Bucket { client, name: name.to_owned() }))
    }

    fn copied_to(mut self, bucket: Arc<dyn Bucket>) -> Result<Self, AuditError> {
        let io = |source| AuditError::Io { path: self.path.clone(), source };
        let sent: u64 = match std::fs::read_to_string(self.sent_file()) {
            // The bucket accepts a record a second time, so a damaged number only costs time.
            Ok(text) => text.trim().parse().unwrap_or(0),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
            Err(error) => return Err(io(error)),
        };
        let lines = BufReader::new(File::open(&self.path).map_err(io)?).split(b'\n');
        // A chain counts its records from 1.
        let unsent = (1..).zip(lines).skip_while(|(seq, _)| *seq <= sent);
        self.chain().pending =
            unsent.map(|(seq, line)| Ok((seq, line?))).collect::<std::io::Result<_>>().map_err(io)?;
        self.bucket = Some(bucket);
        Ok(self)
    }

    fn sent_file(&self) -> PathBuf {
        self.path.with_file_name(SENT)
    }

    /// Records an event that has happened. The bucket gets this record together with the next announced one.
    ///
    /// # Errors
    /// An [`AuditError`].
    pub fn record(&self, event: AuditEvent) -> Result<(), AuditError> {
        self.append(event)
    }

    /// Records an event that is about to happen, also in the customer's bucket. If this fails, the event must not
    /// happen.
    ///
    /// # Errors
    /// An [`AuditError`].
    pub async fn announce(&self, event: AuditEvent) -> Result<(), AuditError> {
        self.append(event)?;
        let Some(bucket) = &self.bucket else { return Ok(()) };
        if !self.chain().key_is_sent {
            for key in self.former.iter().chain([&self.identity.public_key()]) {
                bucket.put(format!("audit/{}.pub", key.key_id()), format!("{key}\n").into_bytes()).await?;
            }
            self.chain().key_is_sent = true;
        }
        // Earlier records go first, so that the chain in the bucket has no gap.
        let due = self.chain().pending.clone();
        for (seq, line) in due {
            bucket.put(key_of(seq, &line)?, line).await?;
            self.chain().pending.retain(|(pending, _)| *pending != seq);
        }
        self.note_sent()
    }

    /// Stores the number of the last record up to which the bucket has all records, so that the next process continues
    /// there.
    fn note_sent(&self) -> Result<(), AuditError> {
        let chain = self.chain();
        let sent = chain.pending.first().map_or(chain.seq, |(seq, _)| seq.saturating_sub(1));
        files::write_atomic_relaxed(&self.sent_file(), sent.to_string().as_bytes()).map_err(|source| self.io(source))
    }

    fn chain(&self) -> MutexGuard<'_, Chain> {
        self.chain.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append(&self, event: AuditEvent) -> Result<(), AuditError> {
        let mut chain = self.chain();
        let record = AuditRecord {
            tenant: self.tenant.clone(),
            install: self.install.clone(),
            runner: self.identity.id().clone(),
            seq: chain.seq + 1,
            previous: chain.head.clone(),
            at: clock::local(),
            event,
        };
        let line = Envelope::seal(&record, &[self.identity.key()])?.to_json()?.into_bytes();
        let mut bytes = line.clone();
        bytes.push(b'\n');
        let before = chain.file.seek(SeekFrom::End(0)).map_err(|source| self.io(source))?;
        if let Err(source) = chain.file.write_all(&bytes) {
            // Cuts off an incomplete record. If this fails too, the next open drops it.
            let _ = chain.file.set_len(before);
            return Err(self.io(source));
        }
        chain.seq = record.seq;
        chain.head = Digest::of(&line);
        if self.bucket.is_some() {
            chain.pending.push((record.seq, line));
        }
        Ok(())
    }

    fn io(&self, source: std::io::Error) -> AuditError {
        AuditError::Io { path: self.path.clone(), source }
    }
}

/// Returns the key of a record in the bucket. A former key of this runner may have signed the record.
fn key_of(seq: u64, line: &[u8]) -> Result<String, AuditError> {
    let runner = Envelope::parse(line)?.peek::<AuditRecord>()?.runner;
    let hash = Digest::of(line);
    Ok(format!("audit/{runner}/{seq:012}-{}.json", hash.hex().get(..12).unwrap_or_default()))
}

/// Returns the last complete line without its line feed. Cuts off the bytes after it.
fn last_line(file: &mut File) -> std::io::Result<Option<Vec<u8>>> {
    let length = file.seek(SeekFrom::End(0))?;
    let from = length.saturating_sub(2 * LONGEST);
    file.seek(SeekFrom::Start(from))?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail)?;
    let Some(end) = tail.iter().rposition(|byte| *byte == b'\n') else {
        file.set_len(from)?;
        return Ok(None);
    };
    file.set_len(from + u64::try_from(end).unwrap_or(0) + 1)?;
    let whole = tail.get(..end).unwrap_or_default();
    let begin = whole.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    Ok(whole.get(begin..).map(<[u8]>::to_vec))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicBool, Ordering};

    use ed25519_dalek::SigningKey;
    use freehold_protocol::report::Fence;

    use super::*;
    use crate::testing::job_id;

    fn open(directory: &Path) -> Audit {
        let identity = Arc::new(Identity::from_key(SigningKey::from_bytes(&[3; 32])));
        Audit::open(directory, identity, "acme".parse().unwrap(), "globex-prod".parse().unwrap()).unwrap()
    }

    fn ended(n: u32) -> AuditEvent {
        AuditEvent::Ended { job: job_id(n), fence: Fence { dispatch: 1, receive: 1 }, result: "succeeded".into() }
    }

    /// Checks the chain and returns how many records it has.
    fn verified(directory: &Path) -> u64 {
        let key = SigningKey::from_bytes(&[3; 32]).verifying_key().into();
        let text = std::fs::read_to_string(directory.join(FILE)).unwrap();
        let mut head = Digest::of(b"");
        let mut seq = 0;
        for line in text.lines() {
            let record: AuditRecord = Envelope::parse(line.as_bytes()).unwrap().open(&key).unwrap();
            assert_eq!((record.seq, &record.previous), (seq + 1, &head));
            (head, seq) = (Digest::of(line.as_bytes()), record.seq);
        }
        seq
    }

    #[test]
    fn the_chain_continues_after_a_restart_and_a_torn_line() {
        let directory = tempfile::tempdir().unwrap();
        let first = open(directory.path());
        first.record(ended(1)).unwrap();
        first.record(ended(2)).unwrap();
        drop(first);
        let path = directory.path().join(FILE);
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.extend_from_slice(b"{\"payloadType\":\"appl");
        std::fs::write(&path, bytes).unwrap();

        open(directory.path()).record(ended(3)).unwrap();

        assert_eq!(verified(directory.path()), 3);
    }

    /// A bucket in memory. It refuses everything while it is closed.
    #[derive(Debug, Default)]
    struct Memory {
        objects: Mutex<BTreeMap<String, Vec<u8>>>,
        closed: AtomicBool,
    }

    #[async_trait]
    impl Bucket for Memory {
        async fn put(&self, key: String, bytes: Vec<u8>) -> Result<(), AuditError> {
            if self.closed.load(Ordering::SeqCst) {
                return Err(AuditError::Bucket { bucket: "b".into(), reason: "closed".into() });
            }
            self.objects.lock().unwrap().insert(key, bytes);
            Ok(())
        }
    }

    impl Memory {
        /// Returns the numbers of the records that it has.
        fn numbers(&self) -> Vec<u64> {
            let objects = self.objects.lock().unwrap();
            let names =
                objects.keys().filter_map(|key| key.rsplit('/').next()?.strip_suffix(".json").map(str::to_owned));
            names.map(|name| name.split('-').next().unwrap().parse().unwrap()).collect()
        }
    }

    #[tokio::test]
    async fn records_that_a_process_did_not_put_into_the_bucket_are_put_by_the_next_process() {
        let directory = tempfile::tempdir().unwrap();
        let bucket = Arc::new(Memory::default());
        let first = open(directory.path()).copied_to(bucket.clone()).unwrap();
        first.announce(ended(1)).await.unwrap();
        first.record(ended(2)).unwrap();
        drop(first);

        let second = open(directory.path()).copied_to(bucket.clone()).unwrap();
        second.announce(ended(3)).await.unwrap();

        assert_eq!(bucket.numbers(), [1, 2, 3]);
    }

    #[tokio::test]
    async fn a_record_that_the_bucket_refused_is_put_with_the_next_one() {
        let directory = tempfile::tempdir().unwrap();
        let bucket = Arc::new(Memory::default());
        let audit = open(directory.path()).copied_to(bucket.clone()).unwrap();
        audit.announce(ended(1)).await.unwrap();
        bucket.closed.store(true, Ordering::SeqCst);

        let refused = audit.announce(ended(2)).await;
        bucket.closed.store(false, Ordering::SeqCst);
        audit.announce(ended(3)).await.unwrap();

        assert!(matches!(refused, Err(AuditError::Bucket { .. })));
        assert_eq!(bucket.numbers(), [1, 2, 3]);
    }

    #[tokio::test]
    async fn the_bucket_has_the_public_key_that_verifies_the_records() {
        let directory = tempfile::tempdir().unwrap();
        let bucket = Arc::new(Memory::default());

        open(directory.path()).copied_to(bucket.clone()).unwrap().announce(ended(1)).await.unwrap();

        let identity = Identity::from_key(SigningKey::from_bytes(&[3; 32]));
        let objects = bucket.objects.lock().unwrap();
        let key = objects.get(&format!("audit/{}.pub", identity.id())).unwrap();
        assert_eq!(std::str::from_utf8(key).unwrap().trim(), identity.public_key().to_string());
    }

    #[test]
    fn a_last_line_that_is_not_a_record_stops_the_runner() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(FILE), "nonsense\n").unwrap();
        let identity = Arc::new(Identity::from_key(SigningKey::from_bytes(&[3; 32])));

        let error = Audit::open(directory.path(), identity, "acme".parse().unwrap(), "globex-prod".parse().unwrap())
            .unwrap_err();

        assert!(error.to_string().contains("move the file away"), "{error}");
    }
}
