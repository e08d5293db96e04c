//! Blobs as streams of small chunks, checked against their digest and size on the way.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use freehold_protocol::Digest;
use freehold_protocol::order::Descriptor;
use futures_util::stream::{BoxStream, StreamExt as _, TryStreamExt as _};
use reqwest::{Client, Response};
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncReadExt as _;

use super::http::IDLE;
use super::{RegistryError, Repository, base_url};

/// The bytes of one blob, chunk by chunk.
pub type BlobStream = BoxStream<'static, Result<Bytes, RegistryError>>;

/// Where a blob's bytes come from; can be opened again for another try.
#[derive(Clone)]
pub enum BlobSource {
    /// A pre-signed URL; a secret while it lasts.
    Url {
        http: Client,
        url: String,
    },
    /// Another repository.
    Repository(Repository),
    File(PathBuf),
    Bytes(Bytes),
}

impl std::fmt::Debug for BlobSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Url { .. } => f.write_str("Url"),
            Self::Repository(repository) => write!(f, "Repository({repository:?})"),
            Self::File(path) => write!(f, "File({})", path.display()),
            Self::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
        }
    }
}

impl BlobSource {
    /// Returns a stream that yields exactly the bytes of `blob`, or ends in an error before its last chunk.
    ///
    /// # Errors
    /// [`RegistryError`] when the source cannot be opened.
    pub async fn open(&self, blob: &Descriptor) -> Result<BlobStream, RegistryError> {
        let raw = match self {
            Self::Url { http, url } => answer_stream(get(http, url).await?),
            Self::Repository(repository) => answer_stream(repository.blob_answer(&blob.digest).await?),
            Self::File(path) => file_stream(tokio::fs::File::open(path).await.map_err(RegistryError::Local)?),
            Self::Bytes(bytes) => futures_util::stream::iter([Ok(bytes.clone())]).boxed(),
        };
        Ok(checked(raw, blob.digest.clone(), blob.size))
    }
}

/// Gets a pre-signed URL. Its text appears in no error: whoever has it can read the blob.
async fn get(http: &Client, url: &str) -> Result<Response, RegistryError> {
    let what = || "a granted URL".to_owned();
    let url = base_url(url)?;
    let host = url.host_str().unwrap_or_default().to_owned();
    let stalled = |_| RegistryError::Stalled { host: host.clone(), what: what(), secs: IDLE.as_secs() };
    let answer = tokio::time::timeout(IDLE, http.get(url).send()).await.map_err(stalled)?.map_err(|source| {
        RegistryError::Transport { host: host.clone(), what: what(), source: source.without_url() }
    })?;
    match answer.status().as_u16() {
        200 => Ok(answer),
        401 | 403 => Err(RegistryError::Denied {
            host,
            repository: what(),
            detail: "it is expired or not valid; the next attempt asks for a new one".to_owned(),
        }),
        status => Err(RegistryError::Status { host, what: what(), status, detail: String::new() }),
    }
}

fn answer_stream(answer: Response) -> BlobStream {
    let host = answer.url().host_str().unwrap_or_default().to_owned();
    futures_util::stream::try_unfold((answer, host), |(mut answer, host)| async move {
        let what = || "a blob".to_owned();
        let next = tokio::time::timeout(IDLE, answer.chunk()).await.map_err(|_| RegistryError::Stalled {
            host: host.clone(),
            what: what(),
            secs: IDLE.as_secs(),
        })?;
        let next = next.map_err(|source| RegistryError::Transport {
            host: host.clone(),
            what: what(),
            source: source.without_url(),
        })?;
        Ok(next.map(|chunk| (chunk, (answer, host))))
    })
    .boxed()
}

fn file_stream(file: tokio::fs::File) -> BlobStream {
    futures_util::stream::try_unfold(file, |mut file| async move {
        let mut chunk = bytes::BytesMut::with_capacity(64 * 1024);
        let read = file.read_buf(&mut chunk).await.map_err(RegistryError::Local)?;
        Ok((read > 0).then(|| (chunk.freeze(), file)))
    })
    .boxed()
}

struct Check {
    stream: BlobStream,
    hash: Sha256,
    seen: u64,
    done: bool,
}

/// Passes chunks on; the one that completes the blob only when the digest is right, so that a wrong blob is never whole.
fn checked(stream: BlobStream, digest: Digest, size: u64) -> BlobStream {
    let check = Check { stream, hash: Sha256::new(), seen: 0, done: false };
    futures_util::stream::try_unfold((check, digest), move |(mut check, digest)| async move {
        if check.done {
            return Ok(None);
        }
        let wrong_size = |found| RegistryError::WrongSize { digest: digest.clone(), expected: size, found };
        let chunk = loop {
            match check.stream.try_next().await? {
                None if size == 0 => break Bytes::new(),
                None => return Err(wrong_size(check.seen)),
                Some(chunk) if chunk.is_empty() => {}
                Some(chunk) => break chunk,
            }
        };
        check.seen = check.seen.saturating_add(chunk.len() as u64);
        check.hash.update(&chunk);
        if check.seen > size {
            return Err(wrong_size(check.seen));
        }
        if check.seen == size {
            check.done = true;
            let found = Digest::from_sha256(check.hash.clone().finalize().as_slice());
            if found != digest {
                return Err(RegistryError::WrongDigest { expected: digest, found });
            }
        }
        Ok(Some((chunk, (check, digest))))
    })
    .boxed()
}

/// Writes a blob into a new file at `path`, checked on the way.
///
/// # Errors
/// [`RegistryError`]; what was written so far is not the blob then.
pub async fn fetch(source: &BlobSource, blob: &Descriptor, path: &std::path::Path) -> Result<(), RegistryError> {
    super::retry::transient(|| async {
        let mut stream = source.open(blob).await?;
        let mut file = tokio::fs::File::create(path).await.map_err(RegistryError::Local)?;
        while let Some(chunk) = stream.try_next().await? {
            tokio::io::AsyncWriteExt::write_all(&mut file, &chunk).await.map_err(RegistryError::Local)?;
        }
        tokio::io::AsyncWriteExt::flush(&mut file).await.map_err(RegistryError::Local)
    })
    .await
}

/// Counts what a stream passed on, for [`Moved::or_stalled`].
#[derive(Debug, Clone, Default)]
pub(super) struct Moved(Arc<AtomicU64>);

impl Moved {
    /// Returns `stream`, counted.
    pub(super) fn count(&self, stream: BlobStream) -> BlobStream {
        let moved = Arc::clone(&self.0);
        stream
            .inspect_ok(move |chunk| {
                moved.fetch_add(chunk.len() as u64, Ordering::Relaxed);
            })
            .boxed()
    }

    /// Returns what `request` returns, or [`None`] when nothing moved for the idle time: a request that sends has no
    /// deadline of its own, as its length depends on the blob.
    pub(super) async fn or_stalled<T>(&self, request: impl Future<Output = T>) -> Option<T> {
        let mut request = std::pin::pin!(request);
        loop {
            let before = self.0.load(Ordering::Relaxed);
            match tokio::time::timeout(IDLE, &mut request).await {
                Ok(done) => return Some(done),
                Err(_) if self.0.load(Ordering::Relaxed) == before => return None,
                Err(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blob(bytes: &[u8]) -> Descriptor {
        Descriptor { media_type: "x".into(), digest: Digest::of(bytes), size: bytes.len() as u64 }
    }

    async fn read(source: &BlobSource, blob: &Descriptor) -> Result<Vec<u8>, RegistryError> {
        let mut stream = source.open(blob).await?;
        let mut all = Vec::new();
        while let Some(chunk) = stream.try_next().await? {
            all.extend_from_slice(&chunk);
        }
        Ok(all)
    }

    #[tokio::test]
    async fn a_blob_with_the_right_digest_passes() {
        for bytes in [&b"hello"[..], b""] {
            let source = BlobSource::Bytes(Bytes::copy_from_slice(bytes));

            let all = read(&source, &blob(bytes)).await.expect("blob");

            assert_eq!(all, bytes);
        }
    }

    #[tokio::test]
    async fn other_bytes_of_the_same_length_never_become_whole() {
        let source = BlobSource::Bytes(Bytes::from_static(b"jello"));

        let error = read(&source, &blob(b"hello")).await.expect_err("digest");

        assert!(matches!(error, RegistryError::WrongDigest { .. }));
        assert!(!error.is_transient());
    }

    #[tokio::test]
    async fn a_short_blob_may_be_tried_again_and_a_long_one_not() {
        let short = read(&BlobSource::Bytes(Bytes::from_static(b"he")), &blob(b"hello")).await.expect_err("short");
        let long = read(&BlobSource::Bytes(Bytes::from_static(b"hello you")), &blob(b"hello")).await.expect_err("long");

        assert!(short.is_transient());
        assert!(!long.is_transient());
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_moves_nothing_is_given_up() {
        let moved = Moved::default();

        let outcome = moved.or_stalled(std::future::pending::<()>()).await;

        assert!(outcome.is_none());
    }
}
