//! `freehold webhook call`: signs and sends a call, without AWS credentials.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use freehold_client::{ANSWER, Error as ClientError, Webhook};
use freehold_protocol::ReleaseName;
use freehold_protocol::api::CallWebhookRequest;
use url::Url;

use super::{key, text};
use crate::api::http_builder;
use crate::error::{Error, Kind, Result, chain};
use crate::inputs::{Input, texts_by_name};
use crate::output::Output;
use crate::random;

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
        let id = match self.id {
            Some(id) => id,
            None => random::hex()?,
        };
        let http = http_builder().timeout(ANSWER).redirect(reqwest::redirect::Policy::none()).build();
        let http = http.map_err(|error| Error::internal(format!("cannot make an HTTP client: {}", chain(&error))))?;
        let called = Webhook::with_http(self.url.0, http).call(&id, &request, &signer).await.map_err(explained)?;
        out.show(&called, text::called)
    }
}

/// Returns the error of a call. Who calls a webhook may have no other access to the tenant.
fn explained(error: ClientError) -> Error {
    if let ClientError::Unreachable { address, reason } = error {
        return Error::quoting(Kind::Transient, format!("no server responds at {address} ({reason})"))
            .or("compare the address with `freehold webhook list`, or check the network");
    }
    error.into()
}
