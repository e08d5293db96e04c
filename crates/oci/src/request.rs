//! Sends one request to a registry, with a login and a deadline. A response that is not a success becomes an error.

use std::time::Duration;

use bytes::Bytes;
use reqwest::header::LOCATION;
use reqwest::{RequestBuilder, Response, Url};

use super::auth::Access;
use super::http::{header, retry_after};
use super::manifest::MAX_BYTES;
use super::{RegistryError, Repository, base_url};

impl Repository {
    /// Sends the request that `make` builds. Sends it again with a token when the registry asks for a token.
    pub(crate) async fn send(
        &self,
        what: &str,
        access: &Access,
        make: impl Fn() -> RequestBuilder,
    ) -> Result<Response, RegistryError> {
        self.send_within(what, Some(access), self.retry_policy().idle, make).await
    }

    /// Sends the request and waits at most `wait` for the response. Sends no login when `access` is `None`.
    pub(crate) async fn send_within(
        &self,
        what: &str,
        access: Option<&Access>,
        wait: Duration,
        make: impl Fn() -> RequestBuilder,
    ) -> Result<Response, RegistryError> {
        let once = || async {
            let request = access.iter().fold(make(), |request, access| self.auth().sign(request, access));
            let answer = tokio::time::timeout(wait, request.send()).await.map_err(|_| self.stalled(what))?;
            answer.map_err(|source| self.transport(what, source))
        };
        let mut answer = once().await?;
        if let Some(access) = access
            && answer.status() == 401
            && self.log_in(&answer, access).await?
        {
            answer = once().await?;
        }
        self.accept(what, answer).await
    }

    /// Gets a token when `answer`, a response with status 401, asks for a token. Returns true if the request should be
    /// sent again.
    pub(crate) async fn log_in(&self, answer: &Response, access: &Access) -> Result<bool, RegistryError> {
        self.auth().answer((self.http(), self.base()), answer.headers(), self.name(), access).await
    }

    /// Returns `answer` when its status is a success, and an error otherwise.
    pub(crate) async fn accept(&self, what: &str, answer: Response) -> Result<Response, RegistryError> {
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let retry_after = retry_after(&answer);
        let body = self.small_body(answer, what).await.unwrap_or_default();
        let detail = reason(&body);
        Err(match status.as_u16() {
            401 | 403 => {
                let detail = if detail.is_empty() { format!("it returned status {status}") } else { detail };
                RegistryError::Denied { host: self.host(), repository: self.name().to_owned(), detail }
            }
            404 => RegistryError::NotFound { host: self.host(), what: format!("{what} in `{}`", self.name()) },
            status => RegistryError::Status { host: self.host(), what: what.to_owned(), status, detail, retry_after },
        })
    }

    /// Returns the body of a response. A body of more than [`MAX_BYTES`] bytes is an error.
    pub(crate) async fn small_body(&self, mut answer: Response, what: &str) -> Result<Bytes, RegistryError> {
        let mut all = bytes::BytesMut::new();
        let ends = tokio::time::Instant::now() + self.retry_policy().idle;
        loop {
            let next = tokio::time::timeout_at(ends, answer.chunk()).await.map_err(|_| self.stalled(what))?;
            let Some(chunk) = next.map_err(|source| self.transport(what, source))? else { return Ok(all.freeze()) };
            all.extend_from_slice(&chunk);
            if all.len() > MAX_BYTES {
                return Err(self.bad(what, format!("it is larger than {MAX_BYTES} bytes")));
            }
        }
    }

    /// Returns the URL in the header `Location` of `answer`.
    pub(crate) fn location(&self, answer: &Response, what: &str) -> Result<Url, RegistryError> {
        let location =
            header(answer, LOCATION.as_str()).ok_or_else(|| self.bad(what, "it has no `Location`".into()))?;
        let url = self.base().join(location).map_err(|error| self.bad(what, error.to_string()))?;
        Ok(base_url(url.as_str())?)
    }

    pub(crate) fn stalled(&self, what: &str) -> RegistryError {
        RegistryError::Stalled { host: self.host(), what: what.to_owned(), secs: self.retry_policy().idle.as_secs() }
    }

    pub(crate) fn transport(&self, what: &str, source: reqwest::Error) -> RegistryError {
        RegistryError::Transport { host: self.host(), what: what.to_owned(), source: source.without_url() }
    }

    pub(crate) fn bad(&self, what: &str, detail: String) -> RegistryError {
        RegistryError::BadAnswer { host: self.host(), what: what.to_owned(), detail }
    }
}

/// Returns the first message of an error body (distribution specification, "Error codes"), or the text of any other
/// body. Cuts it after 300 characters.
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
