//! The client: sends calls to the API of one tenant, signed or with a token, and as often as needed.

use std::sync::Arc;
use std::time::Duration;

use aws_config::SdkConfig;
use freehold_aws_errors::chain;
use freehold_protocol::TenantName;
use freehold_protocol::api::IDEMPOTENCY_KEY;
use reqwest::Method;
use serde::de::DeserializeOwned;
use url::Url;

use crate::call::{Call, Post};
use crate::discover::api_url;
use crate::error::Error;
use crate::http::{ANSWER, answer_to, http_builder};
use crate::retry::Tries;
use crate::sign::Signer;
use crate::token::TokenSource;
use crate::token_kind::TokenKind;

/// The maximum time for one try of an upload.
const UPLOAD: Duration = Duration::from_secs(600);

/// A client of one tenant's API. It has a method for each operation, in [`calls`](crate::calls).
#[derive(Debug)]
pub struct Client {
    base: Url,
    http: reqwest::Client,
    authority: Authority,
}

/// What shows the API who calls.
#[derive(Debug)]
enum Authority {
    /// The signature of AWS credentials.
    Signature(Signer),
    /// A token of a person or a pipeline.
    Token(TokenKind, Arc<dyn TokenSource>),
}

impl Client {
    /// Returns a client of the API of `tenant`, whose address it reads from the tenant's stack in the account and
    /// region of `config`.
    ///
    /// # Errors
    /// NoTenant, NoAddress or Lookup, and the errors of [`Client::new`].
    pub async fn of_tenant(config: &SdkConfig, tenant: &TenantName) -> Result<Self, Error> {
        Self::new(config, api_url(config, tenant).await?)
    }

    /// Returns a client of the API at `base`. It signs requests with the credentials of `config`.
    ///
    /// # Errors
    /// Credentials or Http.
    pub fn new(config: &SdkConfig, base: Url) -> Result<Self, Error> {
        let http = http_builder().timeout(ANSWER).build().map_err(|error| Error::Http(chain(&error)))?;
        Self::with_http(config, base, http)
    }

    /// Does the same as [`Client::new`], with an HTTP client of the caller.
    ///
    /// # Errors
    /// Credentials.
    pub fn with_http(config: &SdkConfig, base: Url, http: reqwest::Client) -> Result<Self, Error> {
        Ok(Self { authority: Authority::Signature(Signer::new(config, &base)?), base, http })
    }

    /// Returns a client of the API at `base` that calls it with the tokens of `source` instead of with AWS credentials.
    ///
    /// # Errors
    /// Http.
    pub fn with_token(base: Url, kind: TokenKind, source: Arc<dyn TokenSource>) -> Result<Self, Error> {
        let http = http_builder().timeout(ANSWER).build().map_err(|error| Error::Http(chain(&error)))?;
        Ok(Self::with_token_and_http(base, kind, source, http))
    }

    /// Does the same as [`Client::with_token`], with an HTTP client of the caller.
    pub fn with_token_and_http(
        base: Url,
        kind: TokenKind,
        source: Arc<dyn TokenSource>,
        http: reqwest::Client,
    ) -> Self {
        Self { authority: Authority::Token(kind, source), base, http }
    }

    /// Returns the address of the API.
    pub const fn base(&self) -> &Url {
        &self.base
    }

    /// Sends a call, and returns its answer. Sends it again after an error that may pass, with the same idempotency
    /// key.
    ///
    /// # Errors
    /// The last error. If [`Error::may_succeed_later`], the API may have performed the call: send it again only with
    /// the same key ([`Call::with_key`]), so that nothing is started twice.
    pub async fn send<T: DeserializeOwned>(&self, call: &Call<T>) -> Result<T, Error> {
        self.send_noting(call, || {}).await
    }

    /// Does the same as [`Client::send`]. Calls `is_waiting` before each pause in which the API still performs an
    /// earlier try of the call.
    ///
    /// # Errors
    /// Those of [`Client::send`].
    pub async fn send_noting<T: DeserializeOwned>(
        &self,
        call: &Call<T>,
        mut is_waiting: impl FnMut(),
    ) -> Result<T, Error> {
        let (url, post, mut tries) = (self.url(call)?, call.post()?, Tries::new());
        loop {
            match self.once(call.method(), &url, post.as_ref()).await {
                Ok(answer) => {
                    let (method, path) = (call.method(), url.path().to_owned());
                    return serde_json::from_slice(&answer).map_err(|source| Error::Unreadable {
                        method,
                        path,
                        source,
                    });
                }
                Err(error) => tries.pause_after(error, &mut is_waiting).await?,
            }
        }
    }

    /// Uploads `bytes` to the address that [`Client::upload_source`] returned.
    ///
    /// # Errors
    /// UploadAddress, UploadInterrupted, UploadFailed or UploadRefused.
    pub async fn upload(&self, address: &str, bytes: &[u8]) -> Result<(), Error> {
        let address: Url = address.parse().map_err(|error: url::ParseError| Error::UploadAddress(error.to_string()))?;
        let mut tries = Tries::new();
        loop {
            match self.upload_once(&address, bytes).await {
                Ok(()) => return Ok(()),
                Err(error) => tries.pause_after(error, &mut || {}).await?,
            }
        }
    }

    async fn upload_once(&self, address: &Url, bytes: &[u8]) -> Result<(), Error> {
        let sent = self.http.put(address.clone()).body(bytes.to_vec()).timeout(UPLOAD).send().await;
        // The message does not contain the address, because the address contains a signature that permits the upload.
        let answer = sent.map_err(|error| Error::UploadInterrupted(chain(&error.without_url())))?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            status if status.is_server_error() => Err(Error::UploadFailed(status)),
            status => Err(Error::UploadRefused(status)),
        }
    }

    fn url<T>(&self, call: &Call<T>) -> Result<Url, Error> {
        let mut url = self.base.clone();
        let route = match &self.authority {
            Authority::Signature(_) => None,
            Authority::Token(kind, _) => Some(kind.route()),
        };
        let mut parts = url.path_segments_mut().map_err(|()| Error::Address(self.base.to_string()))?;
        parts.pop_if_empty().extend(route).extend(call.path());
        drop(parts);
        if !call.query().is_empty() {
            url.query_pairs_mut().extend_pairs(call.query());
        }
        Ok(url)
    }

    async fn once(&self, method: &str, url: &Url, post: Option<&Post<'_>>) -> Result<Vec<u8>, Error> {
        let mut headers: Vec<(&str, &str)> = vec![("accept", "application/json")];
        if let Some(post) = post {
            headers.extend([("content-type", "application/json"), (IDEMPOTENCY_KEY, post.key.as_str())]);
        }
        let body = post.map(|post| post.body).unwrap_or_default();
        let kind = if post.is_some() { Method::POST } else { Method::GET };
        let mut request = self.http.request(kind, url.clone());
        for (name, value) in &headers {
            request = request.header(*name, *value);
        }
        match &self.authority {
            Authority::Signature(signer) => {
                for (name, value) in signer.sign(method, url, &headers, body).await? {
                    request = request.header(name, value);
                }
            }
            Authority::Token(_, source) => request = request.bearer_auth(source.token().await?.expose()),
        }
        if post.is_some() {
            request = request.body(body.to_vec());
        }
        let answer = answer_to(request, self.base.as_str()).await;
        match &self.authority {
            Authority::Signature(_) => answer,
            Authority::Token(kind, _) => answer.map_err(|error| error.with_token(*kind)),
        }
    }
}
