//! The sources of a blob's bytes. Each source can be opened at any offset, so that a transfer can resume after a broken
//! connection.

use std::io::SeekFrom;
use std::path::PathBuf;

use bytes::Bytes;
use freehold_protocol::order::Descriptor;
use futures_util::stream::{BoxStream, StreamExt as _, TryStreamExt as _};
use reqwest::header::{CONTENT_RANGE, RANGE};
use reqwest::{Client, Response};
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};

use super::{RegistryError, Repository, RetryPolicy, base_url};

/// A stream of the bytes of one blob, in chunks.
pub type BlobStream = BoxStream<'static, Result<Bytes, RegistryError>>;

/// The size of a chunk that is read from a file or from memory, in bytes.
const CHUNK: usize = 64 * 1024;

/// A source of a blob's bytes. It can be opened again for another try.
#[derive(Clone)]
pub enum BlobSource {
    /// A pre-signed URL, which is a secret until it expires.
    Url {
        http: Client,
        url: String,
    },
    /// A repository that has the blob.
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
    /// Returns the bytes of `blob` from the offset `at` on. Does not check their digest.
    pub(crate) async fn raw(
        &self,
        blob: &Descriptor,
        at: u64,
        policy: RetryPolicy,
    ) -> Result<BlobStream, RegistryError> {
        match self {
            Self::Url { http, url } => {
                let (host, answer) = get(http, url, at, policy).await?;
                body(answer, host, "a granted URL", blob, at)
            }
            Self::Repository(repository) => {
                let answer = repository.blob_answer(&blob.digest, at).await?;
                body(answer, repository.host(), &format!("blob `{}`", blob.digest), blob, at)
            }
            Self::File(path) => {
                let mut file = tokio::fs::File::open(path).await.map_err(RegistryError::Local)?;
                file.seek(SeekFrom::Start(at)).await.map_err(RegistryError::Local)?;
                Ok(file_stream(file))
            }
            Self::Bytes(bytes) => {
                let at = usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
                Ok(bytes_stream(bytes.slice(at..)))
            }
        }
    }

    /// Returns the retry policy of the source's repository, or the default policy for other sources.
    pub(crate) fn retry_policy(&self) -> RetryPolicy {
        match self {
            Self::Repository(repository) => repository.retry_policy(),
            Self::Url { .. } | Self::File(_) | Self::Bytes(_) => RetryPolicy::default(),
        }
    }

    /// Returns the name of the source for error messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Url { url, .. } => {
                let url = base_url(url).ok();
                url.and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_else(|| "a granted URL".to_owned())
            }
            Self::Repository(repository) => repository.host(),
            Self::File(path) => path.display().to_string(),
            Self::Bytes(_) => "this machine".to_owned(),
        }
    }
}

/// Requests a pre-signed URL. No error contains the URL, because anyone who has it can read the blob.
async fn get(http: &Client, url: &str, at: u64, policy: RetryPolicy) -> Result<(String, Response), RegistryError> {
    let what = || "a granted URL".to_owned();
    let url = base_url(url)?;
    let host = url.host_str().unwrap_or_default().to_owned();
    let stalled = |_| RegistryError::Stalled { host: host.clone(), what: what(), secs: policy.idle.as_secs() };
    let mut request = http.get(url);
    if at > 0 {
        request = request.header(RANGE, format!("bytes={at}-"));
    }
    let answer = tokio::time::timeout(policy.idle, request.send()).await.map_err(stalled)?.map_err(|source| {
        RegistryError::Transport { host: host.clone(), what: what(), source: source.without_url() }
    })?;
    match answer.status().as_u16() {
        200 | 206 => Ok((host, answer)),
        401 | 403 => Err(RegistryError::Expired { host }),
        status => {
            let retry_after = super::http::retry_after(&answer);
            Err(RegistryError::Status { host, what: what(), status, detail: String::new(), retry_after })
        }
    }
}

/// Returns the bytes of the body from the offset `at` on. If the server does not support ranges, the bytes before `at`
/// are read and dropped.
fn body(answer: Response, host: String, what: &str, blob: &Descriptor, at: u64) -> Result<BlobStream, RegistryError> {
    let begins = if answer.status() == 206 { at } else { 0 };
    let wrong_size = |found| {
        Err(RegistryError::WrongSize { host: host.clone(), digest: blob.digest.clone(), expected: blob.size, found })
    };
    if answer.status() == 206 {
        let range = answer.headers().get(CONTENT_RANGE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let Some((first, total)) = content_range(range).filter(|(first, _)| *first == at) else {
            let detail = format!("it should contain the bytes from {at} to the end, but contains `{range}`");
            return Err(RegistryError::BadAnswer { host, what: what.to_owned(), detail });
        };
        if let Some(total) = total.filter(|total| *total != blob.size) {
            tracing::debug!(first, "The registry sent a range of a blob that does not have the expected size");
            return wrong_size(total);
        }
    }
    if let Some(length) = answer.content_length()
        && begins.saturating_add(length) != blob.size
    {
        return wrong_size(begins.saturating_add(length));
    }
    let stream = answer_stream(answer, host);
    Ok(if begins < at { skip(stream, at - begins) } else { stream })
}

/// Parses `bytes 5-9/10` and `bytes 5-9/*` (RFC 9110 section 14.4).
fn content_range(text: &str) -> Option<(u64, Option<u64>)> {
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (first, _) = range.split_once('-')?;
    Some((first.parse().ok()?, total.parse().ok()))
}

fn answer_stream(answer: Response, host: String) -> BlobStream {
    futures_util::stream::try_unfold((answer, host), |(mut answer, host)| async move {
        let next = answer.chunk().await.map_err(|source| RegistryError::Transport {
            host: host.clone(),
            what: "a blob".to_owned(),
            source: source.without_url(),
        })?;
        Ok(next.map(|chunk| (chunk, (answer, host))))
    })
    .boxed()
}

fn file_stream(file: tokio::fs::File) -> BlobStream {
    futures_util::stream::try_unfold(file, |mut file| async move {
        let mut chunk = bytes::BytesMut::with_capacity(CHUNK);
        let read = file.read_buf(&mut chunk).await.map_err(RegistryError::Local)?;
        Ok((read > 0).then(|| (chunk.freeze(), file)))
    })
    .boxed()
}

/// Yields the bytes in small pieces, because each piece that is taken counts as progress of the transfer.
fn bytes_stream(bytes: Bytes) -> BlobStream {
    futures_util::stream::try_unfold(bytes, |mut rest| async move {
        let piece = rest.split_to(rest.len().min(CHUNK));
        Ok((!piece.is_empty()).then_some((piece, rest)))
    })
    .boxed()
}

fn skip(stream: BlobStream, mut left: u64) -> BlobStream {
    stream
        .map_ok(move |mut chunk| {
            let drop = usize::try_from(left).unwrap_or(usize::MAX).min(chunk.len());
            left -= drop as u64;
            chunk.split_off(drop)
        })
        .boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_and_the_size_are_read_from_a_content_range() {
        assert_eq!(content_range("bytes 5-9/10"), Some((5, Some(10))));
        assert_eq!(content_range("bytes 5-9/*"), Some((5, None)));
        assert_eq!(content_range("5-9"), None);
    }

    #[tokio::test]
    async fn bytes_that_were_sent_already_are_left_out() {
        let chunks = [b"ab", b"cd", b"ef"].map(|chunk| Ok(Bytes::from_static(chunk)));
        let stream = skip(futures_util::stream::iter(chunks).boxed(), 3);

        let left: Vec<Bytes> = stream.try_collect().await.expect("stream");

        assert_eq!(left.concat(), b"def");
    }
}
