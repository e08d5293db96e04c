//! The client of the tenant API. It signs requests, retries after transient errors, and turns error responses into
//! [`Error`]s.

mod discover;
mod retry;
mod runner_wait;
mod short_reason;
mod sign;
mod suggestion;
mod watch;

use std::time::Duration;

use aws_config::SdkConfig;
use freehold_protocol::api::{IDEMPOTENCY_KEY, InstallView, Page};
use freehold_protocol::{AppName, InstallId};
use reqwest::{Method, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use url::Url;

pub(crate) use discover::{Profile, stack_name, tenant_stack};
use retry::until_performed;
pub(crate) use retry::{Failed, poll_until, until_ready, with_retries};
pub(crate) use runner_wait::describe_wait;
pub(crate) use short_reason::{IN_A_SENTENCE, IN_A_TABLE, IN_A_WIDE_TABLE, brief};
pub(crate) use watch::{POLL_INTERVAL, follow, has_ended, verdict, watch};

use crate::error::{Error, Kind, Result, chain};
use sign::Signer;

/// The maximum length of an idempotency key, in characters. The API accepts 128, and requests add a suffix to the key.
const LONGEST_KEY: usize = 96;
/// The maximum number of tries for one request.
pub(crate) const TRIES: u32 = 5;
/// The time limit of one try, except for an upload.
pub(crate) const ANSWER: Duration = Duration::from_secs(35);
/// The maximum time for one try of an upload.
const UPLOAD: Duration = Duration::from_secs(600);
const CONNECT: Duration = Duration::from_secs(10);

/// A client of one tenant's API.
#[derive(Debug)]
pub(crate) struct Api {
    base: Url,
    http: reqwest::Client,
    signer: Signer,
    /// The advice to the user when no server responds.
    way_out: &'static str,
    /// The key of this invocation of the command. All retries of a request carry the same key.
    idempotency_key: String,
}

/// The idempotency key and the body of a POST request.
#[derive(Debug)]
struct Post {
    key: String,
    bytes: Vec<u8>,
}

impl Api {
    /// Returns a client of the API that `profile` names. It signs requests with the credentials of `config`.
    pub(crate) async fn connect(profile: &Profile, config: &SdkConfig) -> Result<Self> {
        let base = profile.api_url(config).await?;
        let idempotency_key = match &profile.idempotency_key {
            Some(key) => checked_key(key)?,
            None => crate::random::hex()?,
        };
        let way_out = if profile.api.is_some() {
            "correct the address in `--api` or FREEHOLD_API, or check the network"
        } else {
            "check the network"
        };
        Ok(Self { signer: Signer::new(config, &base)?, base, http: http_client()?, way_out, idempotency_key })
    }

    /// Returns the address of the API.
    pub(crate) const fn base(&self) -> &Url {
        &self.base
    }

    /// Gets the resource at `path`.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &[&str]) -> Result<T> {
        match self.request(Method::GET, self.url(path, &[])?, None).await {
            Err(error) => Err(self.with_nearest(error).await),
            read => read,
        }
    }

    /// Gets the page after `cursor` of the resource at `path`, or the first page if `cursor` is absent.
    pub(crate) async fn get_after<T: DeserializeOwned>(&self, path: &[&str], cursor: Option<&str>) -> Result<T> {
        self.get_after_with(path, &[], cursor).await
    }

    /// Gets the page after `cursor` of the resource at `path` with the query parameters `query`.
    pub(crate) async fn get_after_with<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        cursor: Option<&str>,
    ) -> Result<T> {
        let after = cursor.filter(|c| !c.is_empty()).map(|c| ("after", c));
        let query: Vec<(&str, &str)> = query.iter().copied().chain(after).collect();
        match self.request(Method::GET, self.url(path, &query)?, None).await {
            Err(error) => Err(self.with_nearest(error).await),
            read => read,
        }
    }

    /// Reads all pages of the list at `path`.
    pub(crate) async fn list<T: DeserializeOwned>(&self, path: &[&str]) -> Result<Vec<T>> {
        self.list_while(path, |_| true).await
    }

    /// Reads the list at `path` up to the first item that `is_wanted` refuses.
    pub(crate) async fn list_while<T: DeserializeOwned>(
        &self,
        path: &[&str],
        is_wanted: impl Fn(&T) -> bool,
    ) -> Result<Vec<T>> {
        let mut items = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let page: Page<T> = self.get_after(path, cursor.as_deref()).await?;
            for item in page.items {
                if !is_wanted(&item) {
                    return Ok(items);
                }
                items.push(item);
            }
            cursor = next_cursor(page.next, cursor.as_deref())?;
            if cursor.is_none() {
                return Ok(items);
            }
        }
    }

    /// Reads an install with all of its components.
    pub(crate) async fn install(&self, install: &InstallId) -> Result<InstallView> {
        let path = ["v1", "installs", install.as_str()];
        let mut view: InstallView = self.get(&path).await?;
        while let Some(place) = view.next.take() {
            let more: InstallView = self.get_after(&path, Some(&place)).await?;
            view.components.extend(more.components);
            view.next = next_cursor(more.next, Some(&place))?;
        }
        Ok(view)
    }

    /// Posts `body` to `path`. A second request with the same idempotency key gets the answer of the first one, if the API
    /// has kept it. Values in `body` are sealed only once, so that all tries have the same ciphertexts.
    pub(crate) async fn post<B: Serialize, T: DeserializeOwned>(&self, path: &[&str], body: &B) -> Result<T> {
        let body = Post { key: self.idempotency_key.clone(), bytes: written(body)? };
        match self.request(Method::POST, self.url(path, &[])?, Some(body)).await {
            Err(error) => Err(self.with_nearest(error).await),
            done => done,
        }
    }

    /// Posts one of several bodies of the same invocation. `part` makes the idempotency key of each body unique.
    pub(crate) async fn post_part<B: Serialize, T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &B,
        part: &str,
    ) -> Result<T> {
        let body = Post { key: format!("{}.{part}", self.idempotency_key), bytes: written(body)? };
        self.request(Method::POST, self.url(path, &[])?, Some(body)).await
    }

    /// Uploads `bytes` to a presigned address in S3.
    pub(crate) async fn upload(&self, address: &str, bytes: &[u8]) -> Result<()> {
        let address: Url = address.parse().map_err(|e| {
            Error::internal(format!("the tenant API returned an upload address that is not valid: {e}"))
        })?;
        with_retries(TRIES, async || self.upload_once(&address, bytes).await).await
    }

    async fn upload_once(&self, address: &Url, bytes: &[u8]) -> Result<(), Failed> {
        let sent = self.http.put(address.clone()).body(bytes.to_vec()).timeout(UPLOAD).send().await;
        // The message does not contain the address, because the address contains a signature that permits the upload.
        let answer = sent.map_err(|error| {
            let why = chain(&error.without_url());
            let lost = Error::quoting(Kind::Transient, format!("the upload was interrupted: {why}"));
            Failed::ForNow(lost.or("check the network and run the command again"))
        })?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            status if status.is_server_error() => {
                let message = format!("S3 returned {status} for the upload; run the command again");
                Err(Failed::ForNow(Error::transient(message)))
            }
            status => {
                let message = format!("S3 refused the upload with {status}; run the command again");
                Err(Failed::ForGood(Error::denied(message)))
            }
        }
    }

    fn url(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Url> {
        let mut url = self.base.clone();
        url.path_segments_mut()
            .map_err(|()| {
                Error::invalid(format!(
                    "`{}` is not the address of an API; pass one such as \
                     `https://abc.execute-api.eu-west-1.amazonaws.com`",
                    self.base
                ))
            })?
            .pop_if_empty()
            .extend(path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Ok(url)
    }

    async fn request<T: DeserializeOwned>(&self, method: Method, url: Url, body: Option<Post>) -> Result<T> {
        let answer = until_performed(TRIES, async || self.once(&method, &url, body.as_ref()).await).await;
        let answer = answer.map_err(|error| if body.is_some() { self.with_key(error) } else { error })?;
        serde_json::from_slice(&answer).map_err(|e| {
            Error::internal(format!("the response to {method} {} cannot be read: {e}; update `freehold`", url.path()))
        })
    }

    /// Adds the idempotency key to the error of a request that may have been carried out. Without the same key, the next
    /// invocation of the command could start the same work once more.
    fn with_key(&self, error: Error) -> Error {
        if error.kind() != Kind::Transient {
            return error;
        }
        let key = &self.idempotency_key;
        let before = error.way_out().filter(|_| !error.is_being_performed());
        let way_out = match before {
            Some(before) => {
                format!("{before}, and use `--idempotency-key {key}` in the next try, so that nothing is started twice")
            }
            None => format!("run the command again with `--idempotency-key {key}`, so that nothing is started twice"),
        };
        error.or(way_out)
    }

    async fn once(&self, method: &Method, url: &Url, body: Option<&Post>) -> Result<Vec<u8>, Failed> {
        let mut headers: Vec<(&str, &str)> = vec![("accept", "application/json")];
        if let Some(post) = body {
            headers.extend([("content-type", "application/json"), (IDEMPOTENCY_KEY, post.key.as_str())]);
        }
        let bytes = body.map(|post| post.bytes.as_slice()).unwrap_or_default();
        let signed = self.signer.sign(method.as_str(), url, &headers, bytes).await;
        let signed = signed.map_err(Failed::ForGood)?;
        let mut request = self.http.request(method.clone(), url.clone());
        for (name, value) in headers {
            request = request.header(name, value);
        }
        for (name, value) in signed {
            request = request.header(name, value);
        }
        if let Some(post) = body {
            request = request.body(post.bytes.clone());
        }
        let lost = |e: reqwest::Error| {
            let message = format!("no server responds at {}, the address of the tenant API ({})", self.base, root(&e));
            Failed::ForNow(Error::transient(message).or(self.way_out))
        };
        let answer = request.send().await.map_err(lost)?;
        let status = answer.status();
        let bytes = answer.bytes().await.map_err(lost)?.to_vec();
        if status.is_success() {
            return Ok(bytes);
        }
        let error = Error::from_api(status.as_u16(), &bytes);
        Err(if is_transient(status, &bytes) { Failed::ForNow(error) } else { Failed::ForGood(error) })
    }
}

/// Returns the text of the root cause. The other texts describe the library that made the request.
fn root(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.last().map(ToString::to_string).unwrap_or_default()
}

/// Returns the cursor of the next page of a list. Refuses a next cursor that equals `cursor`, the cursor of this page,
/// because the list would never end.
pub(crate) fn next_cursor(next: Option<String>, cursor: Option<&str>) -> Result<Option<String>> {
    if next.is_some() && next.as_deref() == cursor {
        return Err(Error::internal(
            "the tenant API returned the same page of a list twice; try again, or update `freehold` and the tenant",
        ));
    }
    Ok(next)
}

fn written<B: Serialize>(body: &B) -> Result<Vec<u8>> {
    serde_json::to_vec(body).map_err(|e| Error::internal(format!("cannot write a request as JSON: {e}")))
}

/// Returns whether a retry can help. A `500` from the API's own function is a defect, and a retry does not help. A
/// `500` from the gateway means that the function was stopped before it responded.
fn is_transient(status: StatusCode, body: &[u8]) -> bool {
    matches!(status.as_u16(), 429 | 502 | 503 | 504)
        || (status.as_u16() == 500 && serde_json::from_slice::<freehold_protocol::api::ErrorBody>(body).is_err())
}

/// Returns a builder with the settings that all HTTP clients of the command share.
pub(crate) fn http_builder() -> reqwest::ClientBuilder {
    let provider = rustls::crypto::ring::default_provider();
    let _ = provider.install_default();
    reqwest::Client::builder()
        .connect_timeout(CONNECT)
        .user_agent(concat!("freehold/", env!("CARGO_PKG_VERSION")))
        .dns_resolver(std::sync::Arc::new(crate::aws::Resolver))
}

fn http_client() -> Result<reqwest::Client> {
    http_builder()
        .timeout(ANSWER)
        .build()
        .map_err(|e| Error::internal(format!("cannot make an HTTP client: {}", chain(&e))))
}

fn checked_key(key: &str) -> Result<String> {
    let valid = (1..=LONGEST_KEY).contains(&key.len()) && key.bytes().all(|b| b.is_ascii_graphic());
    if valid {
        return Ok(key.to_owned());
    }
    Err(Error::invalid(format!("an idempotency key must have 1 to {LONGEST_KEY} visible ASCII characters")))
}

#[cfg(test)]
mod tests;

/// Returns the app of an install. Returns an error for the build runner, which is an install without an app.
pub(crate) fn app_of(view: &InstallView) -> Result<AppName> {
    view.app.clone().ok_or_else(|| {
        Error::invalid(format!("`{}` is the build runner, not an install of an app", view.install))
            .or("`freehold install list` shows the installs")
    })
}
