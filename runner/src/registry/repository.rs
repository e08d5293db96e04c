//! One repository in one registry: look, read, write (OCI distribution specification 1.1).

use std::sync::Arc;

use bytes::Bytes;
use freehold_protocol::Digest;
use freehold_protocol::order::Descriptor;
use reqwest::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, LOCATION};
use reqwest::{Body, Client, Method, RequestBuilder, Response, Url};

use super::auth::Auth;
use super::blob::Moved;
use super::http::IDLE;
use super::manifest::{ACCEPTED, MAX_BYTES};
use super::{BlobSource, Login, Manifest, RegistryError, Version, base_url, retry};

const PULL: &str = "pull";
const PUSH: &str = "pull,push";

/// One repository. Cheap to clone; clones share connections and tokens.
#[derive(Clone)]
pub struct Repository(Arc<Inner>);

struct Inner {
    http: Client,
    base: Url,
    name: String,
    auth: Auth,
}

impl std::fmt::Debug for Repository {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.address())
    }
}

impl Repository {
    /// Returns the repository `name` of the registry at `address` (`host`, `host:port` or a URL). Sends nothing.
    ///
    /// # Errors
    /// [`RegistryError::Address`].
    pub fn new(http: Client, address: &str, name: &str, login: Login) -> Result<Self, RegistryError> {
        let base = base_url(address)?;
        Ok(Self(Arc::new(Inner { http, base, name: name.to_owned(), auth: Auth::new(login) })))
    }

    /// Returns `host/name`, as image references are written.
    pub fn address(&self) -> String {
        format!("{}/{}", self.host(), self.0.name)
    }

    /// Returns the reference of the image `digest`.
    pub fn image(&self, digest: &Digest) -> String {
        format!("{}@{digest}", self.address())
    }

    /// Returns the HTTP client, for granted URLs.
    pub fn http(&self) -> &Client {
        &self.0.http
    }

    fn host(&self) -> String {
        let host = self.0.base.host_str().unwrap_or_default();
        self.0.base.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Returns whether the repository holds the blob.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub async fn has_blob(&self, digest: &Digest) -> Result<bool, RegistryError> {
        let url = self.url(&format!("blobs/{digest}"))?;
        let what = format!("blob `{digest}`");
        retry::transient(|| async { found(self.send(&what, PULL, || self.0.http.head(url.clone())).await) }).await
    }

    /// Returns the digest of the manifest that `version` names, if there is one.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub async fn manifest_digest(&self, version: &Version) -> Result<Option<Digest>, RegistryError> {
        let url = self.url(&format!("manifests/{version}"))?;
        let what = format!("manifest `{version}`");
        let answer = retry::transient(|| async {
            let make = || self.0.http.head(url.clone()).header(ACCEPT, ACCEPTED);
            match self.send(&what, PULL, make).await {
                Err(RegistryError::NotFound { .. }) => Ok(None),
                ended => ended.map(Some),
            }
        })
        .await?;
        let Some(answer) = answer else { return Ok(None) };
        let named = answer.headers().get("docker-content-digest").and_then(|value| value.to_str().ok());
        match (named.map(str::parse::<Digest>), version) {
            (Some(Ok(digest)), _) => Ok(Some(digest)),
            (_, Version::Digest(digest)) => Ok(Some(digest.clone())),
            // The header is optional: without it the bytes say which manifest the tag names.
            (_, Version::Tag(_)) => self.manifest(version).await.map(|manifest| Some(manifest.digest)),
        }
    }

    /// Returns the manifest that `version` names; its bytes have the digest that it carries.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub async fn manifest(&self, version: &Version) -> Result<Manifest, RegistryError> {
        let url = self.url(&format!("manifests/{version}"))?;
        let what = format!("manifest `{version}`");
        retry::transient(|| async {
            let make = || self.0.http.get(url.clone()).header(ACCEPT, ACCEPTED);
            let answer = self.send(&what, PULL, make).await?;
            let content_type = header(&answer, CONTENT_TYPE.as_str());
            let bytes = self.small_body(answer, &what).await?;
            let manifest = Manifest::new(content_type.as_deref(), bytes).map_err(|detail| self.bad(&what, detail))?;
            match version {
                Version::Digest(expected) if *expected != manifest.digest => {
                    Err(RegistryError::WrongDigest { expected: expected.clone(), found: manifest.digest })
                }
                Version::Digest(_) | Version::Tag(_) => Ok(manifest),
            }
        })
        .await
    }

    /// Returns the answer that carries a blob's bytes. Redirects to storage are followed, without the login.
    pub(super) async fn blob_answer(&self, digest: &Digest) -> Result<Response, RegistryError> {
        let url = self.url(&format!("blobs/{digest}"))?;
        self.send(&format!("blob `{digest}`"), PULL, || self.0.http.get(url.clone())).await
    }

    /// Pushes one blob from `source`, in one streamed request; from the start again after a transient fault.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub async fn push_blob(&self, blob: &Descriptor, source: &BlobSource) -> Result<(), RegistryError> {
        retry::transient(|| self.push_blob_once(blob, source)).await
    }

    async fn push_blob_once(&self, blob: &Descriptor, source: &BlobSource) -> Result<(), RegistryError> {
        let what = format!("the upload of blob `{}`", blob.digest);
        let start = self.url("blobs/uploads/")?;
        let begun = self.send(&what, PUSH, || self.0.http.post(start.clone()).header(CONTENT_LENGTH, 0)).await?;
        let mut session = self.location(&begun, &what)?;
        if blob.size > 0 {
            let moved = Moved::default();
            let stream = moved.count(source.open(blob).await?);
            let request = self
                .upload(Method::PATCH, session)
                .header(CONTENT_TYPE, "application/octet-stream")
                .header(CONTENT_LENGTH, blob.size)
                .body(Body::wrap_stream(stream));
            let answer = moved.or_stalled(request.send()).await.ok_or_else(|| self.stalled(&what))?;
            let answer = answer.map_err(|source| self.transport(&what, source))?;
            session = self.location(&self.accept(&what, answer).await?, &what)?;
        }
        session.query_pairs_mut().append_pair("digest", blob.digest.as_str());
        self.send(&what, PUSH, || self.upload(Method::PUT, session.clone()).header(CONTENT_LENGTH, 0)).await?;
        Ok(())
    }

    /// A session's URL may be another host's; the login goes to this registry only.
    fn upload(&self, method: Method, url: Url) -> RequestBuilder {
        let own = url.origin() == self.0.base.origin();
        let request = self.0.http.request(method, url);
        if own { self.0.auth.sign(request, PUSH) } else { request }
    }

    /// Puts one manifest under a digest or a tag.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub async fn push_manifest(&self, manifest: &Manifest, version: &Version) -> Result<(), RegistryError> {
        let url = self.url(&format!("manifests/{version}"))?;
        let what = format!("the push of manifest `{version}`");
        retry::transient(|| async {
            let make = || {
                let request = self.0.http.put(url.clone()).header(CONTENT_TYPE, manifest.media_type.as_str());
                request.body(manifest.bytes.clone())
            };
            self.send(&what, PUSH, make).await.map(|_| ())
        })
        .await
    }

    fn url(&self, path: &str) -> Result<Url, RegistryError> {
        let path = format!("v2/{}/{path}", self.0.name);
        self.0.base.join(&path).map_err(|error| self.bad(&path, error.to_string()))
    }

    fn location(&self, answer: &Response, what: &str) -> Result<Url, RegistryError> {
        let location =
            header(answer, LOCATION.as_str()).ok_or_else(|| self.bad(what, "it has no `Location`".into()))?;
        let url = self.0.base.join(&location).map_err(|error| self.bad(what, error.to_string()))?;
        Ok(base_url(url.as_str())?)
    }

    /// Sends what `make` makes, once more with a token when the registry asks for one.
    async fn send(
        &self,
        what: &str,
        access: &'static str,
        make: impl Fn() -> RequestBuilder,
    ) -> Result<Response, RegistryError> {
        let auth = &self.0.auth;
        let once = || async {
            let request = auth.sign(make(), access);
            let answer = tokio::time::timeout(IDLE, request.send()).await.map_err(|_| self.stalled(what))?;
            answer.map_err(|source| self.transport(what, source))
        };
        let mut answer = once().await?;
        if answer.status() == 401 && auth.answer(&self.0.http, answer.headers(), &self.0.name, access).await? {
            answer = once().await?;
        }
        self.accept(what, answer).await
    }

    async fn accept(&self, what: &str, answer: Response) -> Result<Response, RegistryError> {
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let body = self.small_body(answer, what).await.unwrap_or_default();
        let detail = reason(&body);
        Err(match status.as_u16() {
            401 | 403 => {
                let detail = if detail.is_empty() { format!("it answered {status}") } else { detail };
                RegistryError::Denied { host: self.host(), repository: self.0.name.clone(), detail }
            }
            404 => RegistryError::NotFound { host: self.host(), what: format!("{what} in `{}`", self.0.name) },
            status => RegistryError::Status { host: self.host(), what: what.to_owned(), status, detail },
        })
    }

    async fn small_body(&self, mut answer: Response, what: &str) -> Result<Bytes, RegistryError> {
        let mut all = bytes::BytesMut::new();
        loop {
            let next = tokio::time::timeout(IDLE, answer.chunk()).await.map_err(|_| self.stalled(what))?;
            let Some(chunk) = next.map_err(|source| self.transport(what, source))? else { return Ok(all.freeze()) };
            all.extend_from_slice(&chunk);
            if all.len() > MAX_BYTES {
                return Err(self.bad(what, format!("it is larger than {MAX_BYTES} bytes")));
            }
        }
    }

    fn stalled(&self, what: &str) -> RegistryError {
        RegistryError::Stalled { host: self.host(), what: what.to_owned(), secs: IDLE.as_secs() }
    }

    fn transport(&self, what: &str, source: reqwest::Error) -> RegistryError {
        // A blob's own fault travels through the HTTP client as the cause; it decides whether to try again.
        if let Some(own) = blob_fault(&source) {
            return own;
        }
        RegistryError::Transport { host: self.host(), what: what.to_owned(), source: source.without_url() }
    }

    fn bad(&self, what: &str, detail: String) -> RegistryError {
        RegistryError::BadAnswer { host: self.host(), what: what.to_owned(), detail }
    }
}

fn blob_fault(error: &reqwest::Error) -> Option<RegistryError> {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        match error.downcast_ref::<RegistryError>() {
            Some(RegistryError::WrongDigest { expected, found }) => {
                return Some(RegistryError::WrongDigest { expected: expected.clone(), found: found.clone() });
            }
            Some(RegistryError::WrongSize { digest, expected, found }) => {
                let (digest, expected, found) = (digest.clone(), *expected, *found);
                return Some(RegistryError::WrongSize { digest, expected, found });
            }
            Some(_) | None => cause = error.source(),
        }
    }
    None
}

fn found(ended: Result<Response, RegistryError>) -> Result<bool, RegistryError> {
    match ended {
        Ok(_) => Ok(true),
        Err(RegistryError::NotFound { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

fn header(answer: &Response, name: &str) -> Option<String> {
    answer.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

/// Returns the first message of an error body (distribution specification, "Error codes"), cut for people.
fn reason(body: &[u8]) -> String {
    #[derive(serde::Deserialize)]
    struct Errors {
        errors: Vec<One>,
    }
    #[derive(serde::Deserialize)]
    struct One {
        #[serde(default)]
        code: String,
        #[serde(default)]
        message: String,
    }
    let parsed = serde_json::from_slice::<Errors>(body).ok().and_then(|all| all.errors.into_iter().next());
    let text = match parsed {
        Some(one) if one.message.is_empty() => one.code,
        Some(one) => format!("{}: {}", one.code, one.message),
        None => String::from_utf8_lossy(body).trim().to_owned(),
    };
    text.chars().take(300).collect()
}
