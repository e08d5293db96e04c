//! Reads blobs as streams of small chunks, checks their digest and size, and resumes on a new connection when one
//! breaks.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use freehold_protocol::Digest;
use freehold_protocol::order::Descriptor;
use futures_util::stream::{StreamExt as _, TryStreamExt as _};
use sha2::{Digest as _, Sha256};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::manifest::MAX_BYTES;
use super::retry::Retries;
use super::{BlobSource, BlobStream, RegistryError, Repository, RetryPolicy};

/// The number of bytes that must move within the idle time of the retry policy; a slower transfer counts as stalled.
const LEAST: u64 = 16 * 1024;
/// The number of bytes that a resumed transfer must move before its retry budget is reset.
const PROGRESS: u64 = 256 * 1024;
/// The largest blob, in bytes, that a registry must store within the idle time; for a larger blob the commit time
/// applies.
const SMALL: u64 = 1024 * 1024;
/// The distance in bytes between two resume points. An upload that resumes at such a point does not read the blob from
/// its start.
const POINT_EVERY: u64 = 1024 * 1024;
/// The number of resume points in memory: enough to reach back over all bytes that can be in transit.
const POINTS: usize = 16;

/// The progress of one transfer: the bytes that have been delivered, the resume points, and the error of the source.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// The number of bytes at the start of the blob that the HTTP client or another consumer has received.
    passed: AtomicU64,
    /// True while the upload waits for bytes from its source.
    waiting: AtomicBool,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// The resume points, the oldest first: an offset in bytes, and the state of the hash of all bytes before this
    /// offset.
    points: VecDeque<(u64, Sha256)>,
    fault: Option<RegistryError>,
}

impl Ledger {
    pub(crate) fn passed(&self) -> u64 {
        self.passed.load(Ordering::Relaxed)
    }

    /// Removes and returns the error of the source. The HTTP client itself reports only that the body failed.
    pub(crate) fn take_fault(&self) -> Option<RegistryError> {
        self.kept().fault.take()
    }

    /// Waits for `request`, which sends a blob of `size` bytes. Returns `None` when too few bytes move within the idle
    /// time, or when the response does not arrive in time after the last byte. The whole upload has no deadline,
    /// because its duration depends on the size of the blob.
    pub(crate) async fn watch<T>(&self, policy: RetryPolicy, size: u64, request: impl Future<Output = T>) -> Option<T> {
        let mut request = std::pin::pin!(request);
        loop {
            let before = self.passed();
            let sent = before >= size;
            let wait = if sent && size > SMALL { policy.commit } else { policy.idle };
            if let Ok(done) = tokio::time::timeout(wait, &mut request).await {
                return Some(done);
            }
            // While the upload waits for its source, only the idle time of the source applies.
            let moves = self.passed() >= size || self.passed() - before >= LEAST;
            if sent || !(moves || self.waiting.load(Ordering::Relaxed)) {
                return None;
            }
        }
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the last resume point at or before the offset `at`, or the start of the blob.
    fn point(&self, at: u64) -> (u64, Sha256) {
        let kept = self.kept();
        let point = kept.points.iter().rev().find(|(point, _)| *point <= at);
        point.cloned().unwrap_or_else(|| (0, Sha256::new()))
    }

    fn note(&self, seen: u64, hash: &Sha256) {
        let mut kept = self.kept();
        // An upload that resumed at an earlier offset reads these bytes again, so the later points are recorded again.
        while kept.points.back().is_some_and(|(point, _)| *point >= seen) {
            kept.points.pop_back();
        }
        if kept.points.back().map_or(0, |(point, _)| *point) + POINT_EVERY <= seen {
            kept.points.push_back((seen, hash.clone()));
        }
        if kept.points.len() > POINTS {
            kept.points.pop_front();
        }
    }
}

/// A chunk that the HTTP client sends. When the client drops it, its permit is released and the next chunk may be read.
struct Sent {
    chunk: Bytes,
    _permit: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Sent {
    fn as_ref(&self) -> &[u8] {
        &self.chunk
    }
}

impl BlobSource {
    /// Returns the bytes of `blob` as a stream, which resumes after a broken connection. If the digest or the size is
    /// wrong, the stream ends with an error before its last chunk.
    pub fn open(&self, blob: &Descriptor) -> BlobStream {
        Reader::new(self.clone(), blob.clone(), self.retry_policy()).into_stream()
    }
}

impl Repository {
    /// Returns the bytes of a blob that is small by nature, such as a config or a statement.
    ///
    /// # Errors
    /// [`RegistryError`]; also when the blob is larger than 4 MiB.
    pub async fn small_blob(&self, blob: &Descriptor) -> Result<Bytes, RegistryError> {
        if blob.size > MAX_BYTES as u64 {
            let detail = format!("it is larger than {MAX_BYTES} bytes");
            return Err(self.bad(&format!("blob `{}`", blob.digest), detail));
        }
        let mut reader = Reader::new(BlobSource::Repository(self.clone()), blob.clone(), self.retry_policy());
        let mut all = bytes::BytesMut::new();
        while let Some(chunk) = reader.next().await? {
            all.extend_from_slice(&chunk);
        }
        Ok(all.freeze())
    }
}

/// A reader of one blob. It hashes all bytes, returns the bytes from the offset `from` on, and resumes after a broken
/// connection.
pub(crate) struct Reader {
    source: BlobSource,
    blob: Descriptor,
    policy: RetryPolicy,
    raw: Option<BlobStream>,
    hash: Sha256,
    /// The number of bytes that were hashed.
    seen: u64,
    /// The offset of the first byte that is returned.
    from: u64,
    retries: Retries,
    /// The offset, in bytes, at which the transfer last started or resumed.
    cut: u64,
    /// The time spent waiting for the next `LEAST` bytes, and the number of these bytes that have arrived.
    waited: (Duration, u64),
    done: bool,
    ledger: Arc<Ledger>,
}

impl Reader {
    pub(crate) fn new(source: BlobSource, blob: Descriptor, policy: RetryPolicy) -> Self {
        Self::resume(source, blob, policy, 0, Arc::default())
    }

    /// Returns a reader of the bytes from the offset `from` on. The reader starts to hash at the last resume point of
    /// `ledger` before this offset. It does not return the bytes before `from`.
    pub(crate) fn resume(
        source: BlobSource,
        blob: Descriptor,
        policy: RetryPolicy,
        from: u64,
        ledger: Arc<Ledger>,
    ) -> Self {
        let (seen, hash) = ledger.point(from);
        let retries = Retries::new(policy);
        let (waited, raw) = ((Duration::ZERO, 0), None);
        ledger.passed.store(from, Ordering::Relaxed);
        Self { source, blob, policy, raw, hash, seen, from, retries, cut: seen, waited, done: false, ledger }
    }

    pub(crate) fn ledger(&self) -> Arc<Ledger> {
        Arc::clone(&self.ledger)
    }

    /// Returns the chunks as a stream.
    pub(crate) fn into_stream(self) -> BlobStream {
        futures_util::stream::try_unfold(self, |mut reader| async move {
            let chunk = reader.next().await?;
            Ok(chunk.map(|chunk| (chunk, reader)))
        })
        .boxed()
    }

    /// Returns the chunks as the body of an HTTP request. A chunk is read only when the chunk before it has been sent.
    /// Otherwise the HTTP client would queue two chunks, of up to 400 KiB each on a fast network. An error of the
    /// source is stored in the ledger.
    pub(crate) fn into_body(self) -> reqwest::Body {
        let gone = Arc::new(Semaphore::new(1));
        let stream = futures_util::stream::try_unfold((self, gone), |(mut reader, gone)| async move {
            let permit = Arc::clone(&gone).acquire_owned().await.map_err(std::io::Error::other)?;
            match reader.next().await {
                Ok(chunk) => {
                    Ok(chunk.map(|chunk| (Bytes::from_owner(Sent { chunk, _permit: permit }), (reader, gone))))
                }
                Err(error) => {
                    let text = error.to_string();
                    reader.ledger.kept().fault = Some(error);
                    Err(std::io::Error::other(text))
                }
            }
        });
        reqwest::Body::wrap_stream(stream)
    }

    /// Returns the next chunk, or `None` after the last one. The last chunk is returned only when the digest is right,
    /// so that a blob with a wrong digest is never complete.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, RegistryError> {
        while !self.done {
            if self.seen == self.blob.size {
                // The blob is empty, or the reader resumed at its end.
                self.finish()?;
                break;
            }
            let mut chunk = self.chunk().await?;
            self.seen = self.seen.saturating_add(chunk.len() as u64);
            self.hash.update(&chunk);
            if self.seen > self.blob.size {
                return Err(self.wrong_size());
            }
            if self.seen == self.blob.size {
                self.finish()?;
            }
            self.ledger.note(self.seen, &self.hash);
            let fresh = usize::try_from(self.seen.saturating_sub(self.from)).unwrap_or(usize::MAX);
            if fresh > 0 {
                let chunk = chunk.split_off(chunk.len().saturating_sub(fresh));
                self.ledger.passed.store(self.seen, Ordering::Relaxed);
                return Ok(Some(chunk));
            }
        }
        Ok(None)
    }

    fn finish(&mut self) -> Result<(), RegistryError> {
        self.done = true;
        self.raw = None;
        let found = Digest::from_sha256(self.hash.clone().finalize().as_slice());
        if found == self.blob.digest {
            return Ok(());
        }
        Err(RegistryError::WrongDigest { host: self.source.name(), expected: self.blob.digest.clone(), found })
    }

    fn wrong_size(&self) -> RegistryError {
        RegistryError::WrongSize {
            host: self.source.name(),
            digest: self.blob.digest.clone(),
            expected: self.blob.size,
            found: self.seen,
        }
    }

    /// Returns the next bytes of the source. Opens a new connection when the last one broke.
    async fn chunk(&mut self) -> Result<Bytes, RegistryError> {
        loop {
            self.ledger.waiting.store(true, Ordering::Relaxed);
            let next = self.next_raw().await;
            self.ledger.waiting.store(false, Ordering::Relaxed);
            let error = match next {
                Ok(Some(chunk)) if chunk.is_empty() => continue,
                Ok(Some(chunk)) => return Ok(chunk),
                Ok(None) => RegistryError::Short {
                    host: self.source.name(),
                    digest: self.blob.digest.clone(),
                    expected: self.blob.size,
                    found: self.seen,
                },
                Err(error) => error,
            };
            self.raw = None;
            if self.seen - self.cut >= PROGRESS {
                self.retries.progressed();
            }
            self.cut = self.seen;
            self.ledger.waiting.store(true, Ordering::Relaxed);
            self.retries.again(error).await?;
        }
    }

    async fn next_raw(&mut self) -> Result<Option<Bytes>, RegistryError> {
        let raw = match &mut self.raw {
            Some(raw) => raw,
            None => {
                self.waited = (Duration::ZERO, 0);
                let raw = self.source.raw(&self.blob, self.seen, self.policy).await?;
                self.raw.insert(raw)
            }
        };
        let (waited, got) = self.waited;
        let started = Instant::now();
        let next = tokio::time::timeout(self.policy.idle.saturating_sub(waited), raw.try_next()).await;
        let next = next.map_err(|_| RegistryError::Stalled {
            host: self.source.name(),
            what: format!("blob `{}`", self.blob.digest),
            secs: self.policy.idle.as_secs(),
        })??;
        let got = got + next.as_ref().map_or(0, |chunk| chunk.len() as u64);
        self.waited = if got >= LEAST { (Duration::ZERO, 0) } else { (waited + started.elapsed(), got) };
        Ok(next)
    }
}

/// Writes a blob to the file `path` and checks its size and digest. Replaces an existing file.
///
/// # Errors
/// [`RegistryError`]; then the file does not contain the complete blob.
pub async fn fetch(source: &BlobSource, blob: &Descriptor, path: &std::path::Path) -> Result<(), RegistryError> {
    let mut reader = Reader::new(source.clone(), blob.clone(), source.retry_policy());
    let mut file = tokio::fs::File::create(path).await.map_err(RegistryError::Local)?;
    while let Some(chunk) = reader.next().await? {
        tokio::io::AsyncWriteExt::write_all(&mut file, &chunk).await.map_err(RegistryError::Local)?;
    }
    tokio::io::AsyncWriteExt::flush(&mut file).await.map_err(RegistryError::Local)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blob(bytes: &[u8]) -> Descriptor {
        Descriptor { media_type: "x".into(), digest: Digest::of(bytes), size: bytes.len() as u64 }
    }

    async fn read(given: &'static [u8], named: &[u8]) -> Result<Vec<u8>, RegistryError> {
        let policy = RetryPolicy { pause: Duration::from_millis(1), ..RetryPolicy::default() };
        let source = BlobSource::Bytes(Bytes::from_static(given));
        let chunks: Vec<Bytes> = Reader::new(source, blob(named), policy).into_stream().try_collect().await?;
        Ok(chunks.concat())
    }

    #[tokio::test]
    async fn a_blob_with_the_right_digest_passes() {
        for bytes in [&b"hello"[..], b""] {
            let all = read(bytes, bytes).await.expect("blob");

            assert_eq!(all, bytes);
        }
    }

    #[tokio::test]
    async fn other_bytes_of_the_same_length_never_become_whole() {
        let error = read(b"jello", b"hello").await.expect_err("digest");

        assert!(matches!(error, RegistryError::WrongDigest { .. }));
        assert!(!error.is_transient());
    }

    #[tokio::test]
    async fn a_short_blob_may_be_tried_again_and_a_long_one_not() {
        let short = read(b"he", b"hello").await.expect_err("short");
        let long = read(b"hello you", b"hello").await.expect_err("long");

        assert!(short.is_transient());
        assert!(!long.is_transient());
    }

    #[tokio::test]
    async fn a_resumed_reader_hashes_the_bytes_before() {
        let bytes: Vec<u8> = (0..5_000_000_u32).map(|n| (n / 7) as u8).collect();
        let source = BlobSource::Bytes(Bytes::from(bytes.clone()));
        let ledger = Arc::new(Ledger::default());
        let file = tempfile::NamedTempFile::new().expect("file");
        std::fs::write(file.path(), &bytes).expect("write");
        let whole = Reader::resume(
            BlobSource::File(file.path().into()),
            blob(&bytes),
            RetryPolicy::default(),
            0,
            Arc::clone(&ledger),
        );
        let _: Vec<Bytes> = whole.into_stream().try_collect().await.expect("whole");

        for from in [0, 1, 1_048_575, 2_500_000, 4_999_999, 5_000_000] {
            let reader =
                Reader::resume(source.clone(), blob(&bytes), RetryPolicy::default(), from, Arc::clone(&ledger));
            let rest: Vec<Bytes> = reader.into_stream().try_collect().await.expect("rest");

            assert_eq!(rest.concat(), &bytes[usize::try_from(from).expect("small")..], "from {from}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_moves_nothing_is_given_up() {
        let ledger = Ledger::default();

        let outcome = ledger.watch(RetryPolicy::default(), 10, std::future::pending::<()>()).await;

        assert!(outcome.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_source_that_drips_is_given_up() {
        let raw = futures_util::stream::repeat(()).then(|()| async {
            tokio::time::sleep(Duration::from_secs(2)).await;
            Ok(Bytes::from_static(b"."))
        });
        let named = Descriptor { size: 1_000_000, ..blob(b"") };
        let source = BlobSource::Bytes(Bytes::new());
        let mut reader = Reader::new(source, named, RetryPolicy { attempts: 1, ..RetryPolicy::default() });
        reader.raw = Some(raw.boxed());

        let error = loop {
            if let Err(error) = reader.next().await {
                break error;
            }
        };

        assert!(matches!(error, RegistryError::Stalled { secs: 30, .. }), "{error}");
    }
}
