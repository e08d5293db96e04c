//! Looks for blobs in a repository of a registry, and reads and pushes manifests.

use std::sync::Arc;

use freehold_protocol::Digest;
use reqwest::header::{ACCEPT, CONTENT_TYPE, RANGE};
use reqwest::{Client, Response, Url};

use super::auth::{Access, Auth};
use super::http::header;
use super::manifest::ACCEPTED;
use super::retry::transient;
use super::{Login, Manifest, RegistryError, RetryPolicy, Version, base_url};

/// One repository of one registry; clones share connections and tokens.
#[derive(Clone)]
pub struct Repository(Arc<Inner>);

struct Inner {
    http: Client,
    base: Url,
    name: String,
    auth: Auth,
    policy: RetryPolicy,
}

impl std::fmt::Debug for Repository {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.address())
    }
}

impl Repository {
    /// Returns the repository `name` of the registry at `address` (`host`, `host:port` or a URL). Does not send a
    /// request.
    ///
    /// # Errors
    /// [`RegistryError::Address`].
    pub fn new(http: Client, address: &str, name: &str, login: Login) -> Result<Self, RegistryError> {
        Self::with_retry_policy(http, address, name, login, RetryPolicy::default())
    }

    /// Returns the repository, with `policy` instead of the default retry policy.
    ///
    /// # Errors
    /// [`RegistryError::Address`].
    pub fn with_retry_policy(
        http: Client,
        address: &str,
        name: &str,
        login: Login,
        policy: RetryPolicy,
    ) -> Result<Self, RegistryError> {
        let base = base_url(address)?;
        Ok(Self(Arc::new(Inner { http, base, name: name.to_owned(), auth: Auth::new(login), policy })))
    }

    /// Returns `host/name`, the first part of an image reference.
    pub fn address(&self) -> String {
        format!("{}/{}", self.host(), self.0.name)
    }

    /// Returns the reference of the image `digest`: `host/name@digest`.
    pub fn image(&self, digest: &Digest) -> String {
        format!("{}@{digest}", self.address())
    }

    /// Returns the HTTP client of this repository, for requests to granted URLs.
    pub fn http(&self) -> &Client {
        &self.0.http
    }

    pub(crate) fn host(&self) -> String {
        let host = self.0.base.host_str().unwrap_or_default();
        self.0.base.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    pub(crate) fn name(&self) -> &str {
        &self.0.name
    }

    pub(crate) fn base(&self) -> &Url {
        &self.0.base
    }

    pub(crate) fn auth(&self) -> &Auth {
        &self.0.auth
    }

    pub(crate) fn retry_policy(&self) -> RetryPolicy {
        self.0.policy
    }

    /// Returns whether this repository can mount blobs of `other`, which is another repository of the same registry.
    pub(crate) fn can_mount_from(&self, other: &Self) -> bool {
        self.0.base.origin() == other.0.base.origin() && self.0.name != other.0.name
    }

    pub(crate) fn url(&self, path: &str) -> Result<Url, RegistryError> {
        let path = format!("v2/{}/{path}", self.0.name);
        self.0.base.join(&path).map_err(|error| self.bad(&path, error.to_string()))
    }

    /// Returns whether the repository holds the blob.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub async fn has_blob(&self, digest: &Digest) -> Result<bool, RegistryError> {
        let url = self.url(&format!("blobs/{digest}"))?;
        let what = format!("blob `{digest}`");
        let answer = transient(self.retry_policy(), || async {
            found(self.send(&what, &Access::Pull, || self.0.http.head(url.clone())).await)
        });
        Ok(answer.await?.is_some())
    }

    /// Returns the digest of the manifest that `version` names, if there is one.
    ///
    /// # Errors
    /// [`RegistryError`]; also when the registry returns another digest than the requested one.
    pub async fn manifest_digest(&self, version: &Version) -> Result<Option<Digest>, RegistryError> {
        let url = self.url(&format!("manifests/{version}"))?;
        let what = format!("manifest `{version}`");
        let answer = transient(self.retry_policy(), || async {
            let make = || self.0.http.head(url.clone()).header(ACCEPT, ACCEPTED);
            found(self.send(&what, &Access::Pull, make).await)
        });
        let Some(answer) = answer.await? else { return Ok(None) };
        match (self.named_digest(&answer, &what)?, version) {
            (Some(found), Version::Digest(expected)) if found != *expected => {
                Err(RegistryError::WrongDigest { host: self.host(), expected: expected.clone(), found })
            }
            (Some(digest), _) => Ok(Some(digest)),
            (None, Version::Digest(digest)) => Ok(Some(digest.clone())),
            // The header is optional. Without it, the digest is computed from the bytes of the manifest.
            (None, Version::Tag(_)) => self.manifest(version).await.map(|manifest| Some(manifest.digest)),
        }
    }

    /// Returns the digest in the header `Docker-Content-Digest`; `None` when it is absent or not a SHA-256 digest.
    pub(crate) fn named_digest(&self, answer: &Response, what: &str) -> Result<Option<Digest>, RegistryError> {
        let Some(text) = header(answer, "docker-content-digest") else { return Ok(None) };
        // A registry may use another hash. This client computes SHA-256 digests itself.
        if !text.starts_with("sha256:") {
            return Ok(None);
        }
        text.parse().map(Some).map_err(|_| self.bad(what, "its `Docker-Content-Digest` is not a digest".to_owned()))
    }

    /// Returns the manifest that `version` names. Checks the digest of its bytes: against `version`, or for a tag
    /// against the header of the response.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub async fn manifest(&self, version: &Version) -> Result<Manifest, RegistryError> {
        let url = self.url(&format!("manifests/{version}"))?;
        let what = format!("manifest `{version}`");
        transient(self.retry_policy(), || async {
            let make = || self.0.http.get(url.clone()).header(ACCEPT, ACCEPTED);
            let answer = self.send(&what, &Access::Pull, make).await?;
            let content_type = header(&answer, CONTENT_TYPE.as_str()).map(str::to_owned);
            let named = self.named_digest(&answer, &what)?;
            let bytes = self.small_body(answer, &what).await?;
            let found = Digest::of(&bytes);
            let expected = match version {
                Version::Digest(expected) => Some(expected.clone()),
                Version::Tag(_) => named,
            };
            if let Some(expected) = expected.filter(|expected| *expected != found) {
                return Err(RegistryError::WrongDigest { host: self.host(), expected, found });
            }
            Manifest::new(content_type.as_deref(), bytes).map_err(|detail| self.bad(&what, detail))
        })
        .await
    }

    /// Requests a blob from the offset `at` on, and returns the response. A registry that does not support ranges sends
    /// the blob from its start. Redirects to storage are followed without the login.
    pub(crate) async fn blob_answer(&self, digest: &Digest, at: u64) -> Result<Response, RegistryError> {
        let url = self.url(&format!("blobs/{digest}"))?;
        let make = || {
            let request = self.0.http.get(url.clone());
            if at > 0 { request.header(RANGE, format!("bytes={at}-")) } else { request }
        };
        self.send(&format!("blob `{digest}`"), &Access::Pull, make).await
    }

    /// Pushes one manifest under a digest or a tag.
    ///
    /// # Errors
    /// [`RegistryError`]; also when the response states that the registry stored another manifest.
    pub async fn push_manifest(&self, manifest: &Manifest, version: &Version) -> Result<(), RegistryError> {
        self.put_manifest(manifest, version).await.map(|_| ())
    }

    /// Pushes one manifest. Returns true when the response states that the registry lists the manifest as a referrer of
    /// its subject.
    pub(crate) async fn put_manifest(&self, manifest: &Manifest, version: &Version) -> Result<bool, RegistryError> {
        let url = self.url(&format!("manifests/{version}"))?;
        let what = format!("the push of manifest `{version}`");
        let answer = transient(self.retry_policy(), || async {
            let make = || {
                let request = self.0.http.put(url.clone()).header(CONTENT_TYPE, manifest.media_type.as_str());
                request.body(manifest.bytes.clone())
            };
            self.send(&what, &Access::Push, make).await
        })
        .await?;
        match self.named_digest(&answer, &what)? {
            Some(found) if found != manifest.digest => {
                Err(RegistryError::WrongDigest { host: self.host(), expected: manifest.digest.clone(), found })
            }
            Some(_) | None => Ok(header(&answer, "oci-subject").is_some()),
        }
    }
}

/// Turns [`RegistryError::NotFound`] into `None`.
pub(crate) fn found<T>(ended: Result<T, RegistryError>) -> Result<Option<T>, RegistryError> {
    match ended {
        Ok(found) => Ok(Some(found)),
        Err(RegistryError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
