//! `freehold webhook call`: signs and sends a call, without AWS credentials.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use freehold_protocol::api::{CallWebhookRequest, WebhookCalled};
use freehold_protocol::webhook::CallHeaders;
use freehold_protocol::{ReleaseName, Timestamp};
use url::Url;

use super::{key, text};
use crate::api::{ANSWER, Failed, TRIES, http_builder, with_retries};
use crate::error::{Error, Kind, Result, chain};
use crate::inputs::{Input, texts_by_name};
use crate::output::Output;
use crate::{clock, random};

/// Call a webhook: sign the call with the webhook's key file, and start what the webhook is for. Needs no AWS
/// credentials.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  freehold webhook call https://abc.execute-api.eu-west-1.amazonaws.com/v1/webhooks/ci/calls \\
      --key-file ci.pem --release 2026.11 --id build-812
  freehold webhook call https://abc.execute-api.eu-west-1.amazonaws.com/v1/webhooks/nightly/calls \\
      --key-file nightly.pem --input snapshot=2026-11-27

A repeated call with the same `--id` starts nothing again, so in a CI pass the id of the build. Without `--id`, each run
of this command is a new call; retries within a run are not new calls.")]
pub(crate) struct Call {
    /// The address that `freehold webhook add` printed.
    url: CallUrl,
    /// File with the private key of the webhook.
    #[arg(long, value_name = "FILE")]
    key_file: PathBuf,
    /// Id of the event, 1 to 128 letters, digits, dashes or underscores.
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// The release to which a channel moves.
    #[arg(long, value_name = "RELEASE")]
    release: Option<ReleaseName>,
    /// An input of a runbook or an action: `name=text`, or `name=@FILE` for the text of a file. Can be given several times.
    #[arg(long = "input", value_name = "NAME=TEXT")]
    inputs: Vec<Input>,
}

/// The address of a webhook's calls.
#[derive(Debug, Clone)]
struct CallUrl(Url);

impl FromStr for CallUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse::<Url>() {
            Ok(url) if is_safe(&url) && url.path().ends_with("/calls") => Ok(Self(url)),
            Ok(_) | Err(_) => Err(format!(
                "`{text}` is not the address of a webhook, which begins with `https://` and ends with `/calls`; `freehold webhook add` \
                 prints it"
            )),
        }
    }
}

/// Returns whether nobody on the network path can read or change a call to `url`: the call uses TLS, or does not leave
/// this machine.
fn is_safe(url: &Url) -> bool {
    let is_here = match url.host() {
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    };
    url.scheme() == "https" || (url.scheme() == "http" && is_here)
}

impl Call {
    pub(super) async fn run(self, out: Output) -> Result<()> {
        let signer = key::private_of(&self.key_file)?;
        let request = CallWebhookRequest { inputs: texts_by_name(&self.inputs)?, release: self.release };
        let body = serde_json::to_vec(&request)
            .map_err(|error| Error::internal(format!("cannot write the call as JSON: {error}")))?;
        let id = match self.id {
            Some(id) => id,
            None => random::hex()?,
        };
        let client = http_builder().timeout(ANSWER).redirect(reqwest::redirect::Policy::none()).build();
        let client =
            client.map_err(|error| Error::internal(format!("cannot make an HTTP client: {}", chain(&error))))?;
        let answer = with_retries(TRIES, async || {
            // Each try has its own time, so that the call is not too old after many tries.
            let headers =
                signed(&id, &body, &signer, clock::now().map_err(Failed::ForGood)?).map_err(Failed::ForGood)?;
            send(&client, &self.url.0, &headers, &body).await
        })
        .await?;
        let called: WebhookCalled = serde_json::from_slice(&answer).map_err(|error| {
            Error::internal(format!("the response of the webhook cannot be read: {error}; update `freehold`"))
        })?;
        out.show(&called, text::called)
    }
}

fn signed(id: &str, body: &[u8], key: &ed25519_dalek::SigningKey, now: Timestamp) -> Result<CallHeaders> {
    let headers = CallHeaders::sign(id, body, key, now);
    let [(_, id), (_, time), (_, signature)] = headers.named();
    CallHeaders::parse(Some(&id), Some(&time), Some(&signature)).map_err(|_| {
        Error::invalid(format!("`{id}` is not an id of a call"))
            .or("pass 1 to 128 letters, digits, dashes or underscores in `--id`")
    })
}

async fn send(client: &reqwest::Client, url: &Url, headers: &CallHeaders, body: &[u8]) -> Result<Vec<u8>, Failed> {
    let mut request = client.post(url.clone()).header("content-type", "application/json");
    for (name, value) in headers.named() {
        request = request.header(name, value);
    }
    let lost = |error: reqwest::Error| {
        let message = format!("no server responds at {url} ({})", chain(&error.without_url()));
        let lost = Error::quoting(Kind::Transient, message);
        Failed::ForNow(lost.or("compare the address with `freehold webhook list`, or check the network"))
    };
    let answer = request.body(body.to_vec()).send().await.map_err(lost)?;
    let status = answer.status().as_u16();
    let bytes = answer.bytes().await.map_err(lost)?.to_vec();
    match status {
        200..=299 => Ok(bytes),
        // If the route of webhooks is missing, API Gateway requires the signature of an IAM principal.
        403 => Err(Failed::ForGood(Error::denied("the tenant takes no calls of webhooks at this address").or(
            "compare the address with `freehold webhook list`; `freehold tenant deploy --webhooks on` opens the route",
        ))),
        429 | 502..=504 => Err(Failed::ForNow(Error::from_api(status, &bytes))),
        _ => Err(Failed::ForGood(Error::from_api(status, &bytes))),
    }
}
