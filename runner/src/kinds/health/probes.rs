//! Asks the probes of an app: requests an address, opens a connection, or runs a command. Probes reach only the hosts
//! that the accepted contract names, and do not read the body of a response.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use freehold_egress::{Destination, Refusal};
use freehold_oci::client_builder;
use freehold_protocol::order::health::{Health, HealthState, MAX_PROBE_NAME, Probe, ProbeKind};
use freehold_protocol::shape::is_format;
use reqwest::Url;
use reqwest::redirect::Policy;
use tokio::io::AsyncReadExt as _;

use super::commands::Commands;
use crate::job::Job;
use crate::job::failure::Failure;
use crate::kinds::templates::Templates;
use crate::sandbox::{Outside, connect_permitted};

/// The time limit of one question.
const TIME: Duration = Duration::from_secs(5);
/// The time for which a connection must stay open: a load balancer without a target accepts a connection and closes it
/// at once.
const STAYS: Duration = Duration::from_secs(1);

/// Returns the name of a probe in a reason and in the log. The runner itself cleans and shortens the name, because it
/// does not trust the control plane: a name with a line break would forge a line of the log.
pub(super) fn name(probe: &Probe) -> String {
    let plain = |c: char| match c {
        '`' => '\'',
        c if c.is_control() || is_format(c) => ' ',
        c => c,
    };
    let name: String = probe.name.chars().take(MAX_PROBE_NAME).map(plain).collect();
    format!("probe `{name}`")
}

/// Asks one probe. An address that cannot be read is a failure, because a later check could not read it either.
pub(super) async fn ask(job: &Job, probe: &Probe, commands: &Commands) -> Result<Health, Failure> {
    let templates = Templates::of(job);
    let what = name(probe);
    let answered = match &probe.kind {
        ProbeKind::Exec { command } => return commands.ask(job, &templates, &what, command).await,
        ProbeKind::Http { url } => {
            let text = templates.text(&what, url)?;
            let url = Url::parse(&text).map_err(|error| Failure::because(&format!("{what}: `{text}`"), &error))?;
            tokio::time::timeout(TIME, request(job, &url)).await
        }
        ProbeKind::Tcp { url } => {
            let text = templates.text(&what, url)?;
            let place = text.split_once("://").map_or(text.as_str(), |(_, place)| place);
            let to = place.trim_end_matches('/').parse::<Destination>();
            let to = to.map_err(|error| Failure::because(&format!("{what}: `{text}`"), &error))?;
            tokio::time::timeout(TIME, connect(job, &to)).await
        }
    };
    let answered = answered.unwrap_or_else(|_| Err(format!("no answer within {} s", TIME.as_secs())));
    // Redacted before texts are cut: a part of a secret would not be recognized.
    Ok(match answered {
        Ok(()) => Health::new(HealthState::Healthy, ""),
        Err(why) => Health::new(HealthState::Unhealthy, &job.log.redacted(&format!("{what}: {why}"))),
    })
}

async fn request(job: &Job, url: &Url) -> Result<(), String> {
    let (host, port) = url.host_str().zip(url.port_or_known_default()).ok_or("the address has no host")?;
    let to: Destination = format!("{host}:{port}").parse().map_err(|error| format!("`{host}`: {error}"))?;
    let (outside, refusal) = outside(job, &to).await?;
    let failed = |error: reqwest::Error| freehold_aws_errors::chain(&error.without_url());
    let http = client_builder().redirect(Policy::none()).no_proxy();
    let http = match outside.at() {
        Some(at) => http.proxy(reqwest::Proxy::all(format!("http://{at}")).map_err(failed)?),
        None => http,
    };
    let answer = http.build().map_err(failed)?.get(url.clone()).send().await.map_err(failed)?;
    let status = answer.status();
    match refusal.get() {
        Some(why) => Err(why.clone()),
        None if status.is_success() || status.is_redirection() => Ok(()),
        None => Err(format!("the answer is {status}")),
    }
}

async fn connect(job: &Job, to: &Destination) -> Result<(), String> {
    let refused = |error| format!("the connection was refused: {error}");
    let mut stream = connect_permitted(job, to).await.map_err(refused)?;
    let mut byte = [0];
    match tokio::time::timeout(STAYS, stream.read(&mut byte)).await {
        // The server waits for its client to speak, or has spoken first.
        Err(_) | Ok(Ok(1..)) => Ok(()),
        Ok(Ok(0)) => Err(format!("`{to}` closes connections at once")),
        Ok(Err(error)) => Err(format!("`{to}`: {error}")),
    }
}

/// Returns a connection to `to`, and the reason if it was refused.
async fn outside(job: &Job, to: &Destination) -> Result<(Outside, Arc<OnceLock<String>>), String> {
    let refusal = Arc::new(OnceLock::new());
    let seen = Arc::clone(&refusal);
    let note = move |refused: &Refusal| {
        let _ = seen.set(format!("the connection was refused: {}", refused.reason));
    };
    let outside = Outside::permitted(job, to, note).await;
    Ok((outside.map_err(|error| format!("no port on loopback: {error}"))?, refusal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_short_line_that_cannot_leave_its_backticks() {
        let named = |text: &str| {
            let kind = ProbeKind::Tcp { url: "a.example:1".to_owned() };
            name(&Probe { name: text.to_owned(), kind })
        };

        assert_eq!(named("up"), "probe `up`");
        assert_eq!(named("a`\nb\u{202e}"), "probe `a' b `");
        assert_eq!(named(&"n".repeat(100)), format!("probe `{}`", "n".repeat(MAX_PROBE_NAME)));
    }
}
