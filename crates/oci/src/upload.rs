//! Uploads blobs. Mounts a blob that another repository of the registry has, streams all other blobs, and resumes after
//! a broken connection.

use std::sync::Arc;

use freehold_protocol::Digest;
use freehold_protocol::order::Descriptor;
use reqwest::header::{CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, RANGE};
use reqwest::{Method, RequestBuilder, Response, Url};

use super::auth::Access;
use super::blob::{Ledger, Reader};
use super::http::header;
use super::retry::Retries;
use super::{BlobSource, RegistryError, Repository};

/// The largest blob, in bytes, that is sent in the request that ends its upload. This saves one request. A larger blob
/// is sent in a separate request, because only such an upload can be resumed.
const SINGLE: u64 = 1024 * 1024;
/// The number of bytes that a resumed upload must move before its retry budget is reset.
const PROGRESS: u64 = 256 * 1024;

/// The way in which a blob got into a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placed {
    /// The registry had the blob already.
    Held,
    /// The registry mounted the blob from another repository.
    Mounted,
    /// The blob was sent.
    Sent,
}

enum Begun {
    Mounted,
    Session(Url),
}

/// An upload in progress: its URL, and the number of bytes that the registry has received.
struct Session {
    url: Url,
    at: u64,
}

impl Repository {
    /// Pushes one blob from `source`. After a broken connection, the upload resumes at the offset that the registry
    /// reports. If the registry does not report an offset, the upload starts again.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub async fn push_blob(&self, blob: &Descriptor, source: &BlobSource) -> Result<(), RegistryError> {
        self.upload(blob, source).await.map(|_| ())
    }

    /// Puts `blob` into the repository. Sends its bytes only when the registry does not have the blob and does not
    /// mount it.
    pub(crate) async fn place_blob(&self, blob: &Descriptor, source: &BlobSource) -> Result<Placed, RegistryError> {
        if self.has_blob(&blob.digest).await? { Ok(Placed::Held) } else { self.upload(blob, source).await }
    }

    pub(crate) async fn upload(&self, blob: &Descriptor, source: &BlobSource) -> Result<Placed, RegistryError> {
        let ledger = Arc::new(Ledger::default());
        let mut retries = Retries::new(self.retry_policy());
        let (mut session, mut mount): (Option<Session>, _) = (None, self.mountable(source));
        let mut best = 0;
        loop {
            let error = match self.upload_once(blob, source, &ledger, &mut session, mount.take()).await {
                Ok(placed) => return Ok(placed),
                Err(error) => error,
            };
            // An error of the source is final: the reader of the source has retried already.
            if let Some(fault) = ledger.take_fault() {
                return Err(fault);
            }
            let begun = session.is_some();
            let resumed = session.as_ref().is_some_and(|session| session.at > 0);
            if resumed && !error.is_transient() && !matches!(error, RegistryError::WrongDigest { .. }) {
                // The registry reported an offset but refuses to resume at it, so the upload starts again.
                session = None;
                retries.anyway(error).await?;
            } else {
                retries.again(error).await?;
            }
            session = match session {
                Some(session) => self.upload_status(blob, session.url).await?.filter(|s| s.at <= ledger.passed()),
                None => None,
            };
            if let Some(at) = session.as_ref().map(|session| session.at).filter(|at| *at >= best + PROGRESS) {
                best = at;
                retries.progressed();
            }
            // The upload may be complete: perhaps only the response was lost.
            if begun && session.is_none() && self.has_blob(&blob.digest).await? {
                return Ok(Placed::Sent);
            }
        }
    }

    fn mountable(&self, source: &BlobSource) -> Option<String> {
        match source {
            BlobSource::Repository(from) if self.can_mount_from(from) => Some(from.name().to_owned()),
            BlobSource::Repository(_) | BlobSource::Url { .. } | BlobSource::File(_) | BlobSource::Bytes(_) => None,
        }
    }

    async fn upload_once(
        &self,
        blob: &Descriptor,
        source: &BlobSource,
        ledger: &Arc<Ledger>,
        session: &mut Option<Session>,
        mount: Option<String>,
    ) -> Result<Placed, RegistryError> {
        let what = format!("the upload of blob `{}`", blob.digest);
        let (url, at) = match session {
            Some(Session { url, at }) => (url.clone(), *at),
            None => match self.begin(&what, &blob.digest, mount).await? {
                Begun::Mounted => return Ok(Placed::Mounted),
                Begun::Session(url) => (url, 0),
            },
        };
        *session = Some(Session { url: url.clone(), at });
        let reader = || Reader::resume(source.clone(), blob.clone(), self.retry_policy(), at, Arc::clone(ledger));
        let rest = blob.size.saturating_sub(at);
        if at == 0 && blob.size <= SINGLE {
            let end = self.signed(Method::PUT, with_digest(url, &blob.digest));
            return self.send_body(&what, blob, end, rest, reader()).await.map(|_| Placed::Sent);
        }
        let mut url = url;
        if rest > 0 {
            let mut request = self.signed(Method::PATCH, url);
            if at > 0 {
                request = request.header(CONTENT_RANGE, format!("{at}-{}", blob.size - 1));
            }
            let answer = self.send_body(&what, blob, request, rest, reader()).await?;
            url = self.location(&answer, &what)?;
            *session = Some(Session { url: url.clone(), at });
        }
        let end = with_digest(url, &blob.digest);
        let make = || self.http().put(end.clone()).header(CONTENT_LENGTH, 0);
        let answer = self.send_within(&what, self.access_to(&end), self.retry_policy().commit, make).await?;
        self.check_stored(&what, blob, &answer)?;
        Ok(Placed::Sent)
    }

    /// Starts an upload. If `mount` names a repository, asks the registry to mount the blob from there; the registry
    /// may ignore this and start an upload.
    async fn begin(&self, what: &str, digest: &Digest, mount: Option<String>) -> Result<Begun, RegistryError> {
        let start = self.url("blobs/uploads/")?;
        if let Some(from) = mount {
            let mut url = start.clone();
            url.query_pairs_mut().append_pair("mount", digest.as_str()).append_pair("from", &from);
            let make = || self.http().post(url.clone()).header(CONTENT_LENGTH, 0);
            match self.send(what, &Access::Mount(from), make).await {
                Ok(answer) if answer.status() == 201 => return Ok(Begun::Mounted),
                Ok(answer) => return Ok(Begun::Session(self.location(&answer, what)?)),
                Err(error) if error.is_transient() => return Err(error),
                // The registry refuses or does not support mounts.
                Err(_) => {}
            }
        }
        let begun =
            self.send(what, &Access::Push, || self.http().post(start.clone()).header(CONTENT_LENGTH, 0)).await?;
        Ok(Begun::Session(self.location(&begun, what)?))
    }

    /// Asks the registry how many bytes of an upload it has received. Returns `None` when the registry does not report
    /// this or does not know the upload.
    async fn upload_status(&self, blob: &Descriptor, url: Url) -> Result<Option<Session>, RegistryError> {
        let what = format!("the status of the upload of blob `{}`", blob.digest);
        let asked = super::retry::transient(self.retry_policy(), || async {
            self.send_within(&what, self.access_to(&url), self.retry_policy().idle, || self.http().get(url.clone()))
                .await
        });
        match asked.await {
            Ok(answer) => {
                let range = header(&answer, RANGE.as_str()).unwrap_or_default();
                let last = range.trim_start_matches("bytes=").strip_prefix("0-").and_then(|last| last.parse().ok());
                // Registries write `0-0` both for one byte and for none, so this range is ignored.
                let Some(last) = last.filter(|last: &u64| (1..blob.size).contains(last)) else { return Ok(None) };
                Ok(Some(Session { url: self.location(&answer, &what).unwrap_or(url), at: last + 1 }))
            }
            Err(error) if error.is_transient() => Err(error),
            Err(error) => {
                tracing::debug!("An upload cannot be resumed: {error}");
                Ok(None)
            }
        }
    }

    /// Sends the last `rest` bytes of a blob as the body of `request`.
    async fn send_body(
        &self,
        what: &str,
        blob: &Descriptor,
        request: RequestBuilder,
        rest: u64,
        reader: Reader,
    ) -> Result<Response, RegistryError> {
        let ledger = reader.ledger();
        let request = request
            .header(CONTENT_TYPE, "application/octet-stream")
            .header(CONTENT_LENGTH, rest)
            .body(reader.into_body());
        let answer = ledger.watch(self.retry_policy(), blob.size, request.send()).await;
        let answer = answer.ok_or_else(|| self.stalled(what))?.map_err(|source| self.transport(what, source))?;
        if answer.status() == 401 && self.log_in(&answer, &Access::Push).await? {
            // The token expired during the upload. The next try has a new token.
            return Err(RegistryError::Status {
                host: self.host(),
                what: what.to_owned(),
                status: 425,
                detail: "the token expired".to_owned(),
                retry_after: None,
            });
        }
        let answer = self.accept(what, answer).await?;
        self.check_stored(what, blob, &answer)?;
        Ok(answer)
    }

    /// Checks the digest that the registry reports for a stored blob, if it reports one.
    fn check_stored(&self, what: &str, blob: &Descriptor, answer: &Response) -> Result<(), RegistryError> {
        // Before the end of an upload, the header describes only the bytes that have arrived so far.
        if answer.status() != 201 {
            return Ok(());
        }
        match self.named_digest(answer, what)? {
            Some(found) if found != blob.digest => {
                Err(RegistryError::WrongDigest { host: self.host(), expected: blob.digest.clone(), found })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Returns the access that a request to `url` needs. Returns `None` for another host, because the login is sent
    /// only to this registry.
    fn access_to(&self, url: &Url) -> Option<&'static Access> {
        (url.origin() == self.base().origin()).then_some(&Access::Push)
    }

    fn signed(&self, method: Method, url: Url) -> RequestBuilder {
        let access = self.access_to(&url);
        let request = self.http().request(method, url);
        access.into_iter().fold(request, |request, access| self.auth().sign(request, access))
    }
}

fn with_digest(mut url: Url, digest: &Digest) -> Url {
    url.query_pairs_mut().append_pair("digest", digest.as_str());
    url
}
