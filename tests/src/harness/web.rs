//! Raw HTTP requests as an attacker sends them: unsigned, signed by anyone, or with a registry login.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use serde_json::Value;

use super::clients::REGION;

/// An answer, read whole.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub location: Option<String>,
    pub body: String,
}

impl Answer {
    /// Returns kind and message of an error answer of the tenant API.
    ///
    /// # Errors
    /// When the answer is not an error.
    pub fn error(&self) -> anyhow::Result<(String, String)> {
        let value: Value = serde_json::from_str(&self.body).with_context(|| format!("not JSON: {}", self.body))?;
        let word = |name: &str| value["error"][name].as_str().map(str::to_owned);
        let found = word("kind").zip(word("message"));
        found.with_context(|| format!("not the API's error: {}", self.body))
    }
}

/// Sends a request as it is.
///
/// # Errors
/// When there is no answer.
pub async fn send(method: &str, url: &str, headers: &[(&str, &str)], body: &[u8]) -> anyhow::Result<Answer> {
    let url: reqwest::Url = url.parse()?;
    let host = url.host_str().context("an address without a host")?.to_owned();
    // A redirect is an answer too: a test reads where it leads.
    let mut client =
        reqwest::Client::builder().timeout(Duration::from_secs(60)).redirect(reqwest::redirect::Policy::none());
    if host.ends_with(".localhost") {
        // RFC 6761: loopback, whether the system's resolver knows it or not.
        client = client.resolve(&host, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    }
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut request = client.build()?.request(method.parse()?, url).body(body.to_vec());
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = request.send().await?;
    let location = answer.headers().get("location").and_then(|value| value.to_str().ok()).map(str::to_owned);
    Ok(Answer { status: answer.status().as_u16(), location, body: answer.text().await? })
}

/// Sends a request to the tenant API, signed (Signature Version 4, service `execute-api`).
///
/// # Errors
/// When there is no answer.
pub async fn send_signed(
    credentials: &Credentials,
    method: &str,
    url: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> anyhow::Result<Answer> {
    send_signed_for("execute-api", credentials, method, url, headers, body).await
}

/// Sends a request to an API of AWS, signed for its `service`.
///
/// # Errors
/// When there is no answer.
pub async fn send_signed_for(
    service: &str,
    credentials: &Credentials,
    method: &str,
    url: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> anyhow::Result<Answer> {
    let identity = credentials.clone().into();
    let params = v4::SigningParams::builder()
        .identity(&identity)
        .region(REGION)
        .name(service)
        .time(SystemTime::now())
        .settings(SigningSettings::default())
        .build()?
        .into();
    let request = SignableRequest::new(method, url, headers.iter().copied(), SignableBody::Bytes(body))?;
    let (instructions, _) = sign(request, &params)?.into_parts();
    let mut all = headers.to_vec();
    all.extend(instructions.headers());
    send(method, url, &all, body).await
}
