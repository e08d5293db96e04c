//! The client of the tenant API as commands use it: each invocation has one idempotency key, waits show their progress,
//! and errors become [`Error`]s with a way out.

mod discover;
mod retry;
mod runner_wait;
mod short_reason;
mod suggestion;
mod watch;

use std::sync::Arc;

use aws_config::SdkConfig;
use freehold_client::{ANSWER, Call, Client, Error as ClientError, Paged, TokenKind, TokenSource, calls};
use freehold_protocol::api::{InstallView, Page};
use freehold_protocol::{AppName, InstallId};
use serde::de::DeserializeOwned;
use url::Url;

pub(crate) use discover::{PEOPLE_CLIENT_ID, PEOPLE_ISSUER, Profile, api_url_of, stack_name, tenant_stack};
pub(crate) use retry::{Failed, poll_until, until_ready, with_retries};
pub(crate) use runner_wait::describe_wait;
pub(crate) use short_reason::{IN_A_SENTENCE, IN_A_TABLE, IN_A_WIDE_TABLE, brief};
pub(crate) use watch::{POLL_INTERVAL, follow, has_ended, verdict, watch};

use crate::error::{Error, Kind, Result, chain};
use crate::progress::Progress;

/// The maximum length of an idempotency key, in characters. The API accepts 128, and requests add a suffix to the key.
const LONGEST_KEY: usize = 96;

/// A client of one tenant's API.
#[derive(Debug)]
pub(crate) struct Api {
    client: Client,
    /// The advice to the user when no server responds.
    way_out: &'static str,
    /// The key of this invocation of the command. All retries of a request carry the same key.
    idempotency_key: String,
}

impl Api {
    /// Returns a client of the API that `profile` names. It signs requests with the credentials of `config`.
    pub(crate) async fn connect(profile: &Profile, config: &SdkConfig) -> Result<Self> {
        let base = profile.api_url(config).await?;
        Self::of(profile, Client::with_http(config, base, http_client()?)?)
    }

    /// Returns a client of the API at `base` that calls it with the tokens of `source`.
    pub(crate) fn with_token(
        profile: &Profile,
        base: Url,
        kind: TokenKind,
        source: Arc<dyn TokenSource>,
    ) -> Result<Self> {
        Self::of(profile, Client::with_token_and_http(base, kind, source, http_client()?))
    }

    fn of(profile: &Profile, client: Client) -> Result<Self> {
        let idempotency_key = match &profile.idempotency_key {
            Some(key) => checked_key(key)?,
            None => crate::random::hex()?,
        };
        let way_out = if profile.api.is_some() {
            "correct the address in `--api` or FREEHOLD_API, or check the network"
        } else {
            "check the network"
        };
        Ok(Self { client, way_out, idempotency_key })
    }

    /// Returns the address of the API.
    pub(crate) const fn base(&self) -> &Url {
        self.client.base()
    }

    /// Sends a call. A call that changes something has the key of this invocation: when it is sent again with the same
    /// key, it gets the answer of the first one, if the API has kept it.
    pub(crate) async fn send<T: DeserializeOwned>(&self, call: Call<T>) -> Result<T> {
        self.send_with(call.with_key(&self.idempotency_key)).await
    }

    /// Sends one of several calls of the same invocation to the same path. `part` makes the idempotency key of each call
    /// unique.
    pub(crate) async fn send_part<T: DeserializeOwned>(&self, call: Call<T>, part: &str) -> Result<T> {
        self.send_with(call.with_key(format!("{}.{part}", self.idempotency_key))).await
    }

    async fn send_with<T: DeserializeOwned>(&self, call: Call<T>) -> Result<T> {
        let mut progress: Option<Progress> = None;
        let answer = self.client.send_noting(&call, || {
            let progress = progress.get_or_insert_with(Progress::start);
            progress.now("waiting until an earlier try of this request has ended");
        });
        match answer.await {
            Ok(answer) => Ok(answer),
            Err(error) => Err(self.explained(error, call.is_post()).await),
        }
    }

    /// Reads all pages of a list, as if it had one page.
    pub(crate) async fn all<P: Paged>(&self, call: Call<P>) -> Result<P> {
        match self.client.all(call).await {
            Ok(all) => Ok(all),
            Err(error) => Err(self.explained(error, false).await),
        }
    }

    /// Reads the items of all pages of a list.
    pub(crate) async fn list<T: DeserializeOwned>(&self, call: Call<Page<T>>) -> Result<Vec<T>> {
        Ok(self.all(call).await?.items)
    }

    /// Reads the items of a list up to the first one that `is_wanted` refuses.
    pub(crate) async fn list_while<T: DeserializeOwned>(
        &self,
        call: Call<Page<T>>,
        is_wanted: impl Fn(&T) -> bool,
    ) -> Result<Vec<T>> {
        let (mut items, mut pages) = (Vec::new(), self.client.pages(call));
        loop {
            let page = match pages.next().await {
                Ok(Some(page)) => page,
                Ok(None) => return Ok(items),
                Err(error) => return Err(self.explained(error, false).await),
            };
            for item in page.items {
                if !is_wanted(&item) {
                    return Ok(items);
                }
                items.push(item);
            }
        }
    }

    /// Returns the list that begins with the page `first`. `call` reads the other pages.
    pub(crate) async fn complete<P: Paged>(&self, first: P, call: Call<P>) -> Result<P> {
        match self.client.complete(first, call).await {
            Ok(all) => Ok(all),
            Err(error) => Err(self.explained(error, false).await),
        }
    }

    /// Reads an install with all of its components.
    pub(crate) async fn install(&self, install: &InstallId) -> Result<InstallView> {
        self.all(calls::show_install(install)).await
    }

    /// Uploads `bytes` to a presigned address in S3.
    pub(crate) async fn upload(&self, address: &str, bytes: &[u8]) -> Result<()> {
        Ok(self.client.upload(address, bytes).await?)
    }

    /// Returns the error of a call with its way out.
    async fn explained(&self, error: ClientError, is_post: bool) -> Error {
        let is_unreachable = matches!(error, ClientError::Unreachable { .. });
        let error = Error::from(error);
        let error = if is_unreachable { error.or(self.way_out) } else { error };
        let error = if is_post { self.with_key(error) } else { error };
        self.with_nearest(error).await
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
}

/// Returns a builder with the settings that all HTTP clients of the command share.
pub(crate) fn http_builder() -> reqwest::ClientBuilder {
    freehold_client::http_builder().user_agent(concat!("freehold/", env!("CARGO_PKG_VERSION")))
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

/// Returns the app of an install. Returns an error for the build runner, which is an install without an app.
pub(crate) fn app_of(view: &InstallView) -> Result<AppName> {
    view.app.clone().ok_or_else(|| {
        Error::invalid(format!("`{}` is the build runner, not an install of an app", view.install))
            .or("`freehold install list` shows the installs")
    })
}

#[cfg(test)]
mod tests;
