//! Downloads files and documents over HTTPS, with limits on their size and on the time without a received byte.

use std::path::Path;
use std::time::Duration;

use freehold_oci::is_loopback_name;
use freehold_protocol::Digest;
use freehold_runner::aws::explain;
use freehold_runner::job::failure::Failure;
use reqwest::{Client, Response, StatusCode, Url};
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncWriteExt as _;

/// The maximum time without a received byte.
const IDLE: Duration = Duration::from_secs(60);

/// Returns the text at `url`, of at most `max` bytes.
pub(crate) async fn text(http: &Client, url: &Url, max: u64) -> Result<String, Failure> {
    read(get(http, url).await?, url, max).await
}

/// Returns the text at `url`, of at most `max` bytes. Returns `None` when the server responds with status 404 or 410.
pub(crate) async fn text_if_found(http: &Client, url: &Url, max: u64) -> Result<Option<String>, Failure> {
    let answer = ask(http, url).await?;
    if [StatusCode::NOT_FOUND, StatusCode::GONE].contains(&answer.status()) {
        return Ok(None);
    }
    read(successful(answer, url)?, url, max).await.map(Some)
}

/// Downloads the content of `url`, of at most `max` bytes, into a new file at `path`. Returns its digest.
pub(crate) async fn file(http: &Client, url: &Url, path: &Path, max: u64) -> Result<Digest, Failure> {
    let local = |error: std::io::Error| Failure::because("could not write into the workspace", &error);
    let mut answer = get(http, url).await?;
    let mut file = tokio::fs::File::create(path).await.map_err(local)?;
    let (mut hash, mut size) = (Sha256::new(), 0);
    while let Some(chunk) = chunk(&mut answer, url, &mut size, max).await? {
        hash.update(&chunk);
        file.write_all(&chunk).await.map_err(local)?;
    }
    file.flush().await.map_err(local)?;
    Ok(Digest::from_sha256(hash.finalize().as_slice()))
}

/// Refuses an address without TLS, because others could change the content, and an address with a login, because the
/// login would appear in logs.
pub(crate) fn checked(url: Url) -> Result<Url, String> {
    if !url.username().is_empty() || url.password().is_some() {
        return Err("has a login in its address; only repositories that anyone may read can be used".to_owned());
    }
    match (url.scheme(), url.host_str()) {
        ("https", Some(_)) => Ok(url),
        ("http", Some(host)) if is_loopback_name(host) => Ok(url),
        _ => Err("is not reached over HTTPS".to_owned()),
    }
}

/// Returns the base address of a repository's files. It ends with `/`.
pub(crate) fn base(address: &str) -> Result<Url, Failure> {
    let url = Url::parse(address).map_err(|_| {
        Failure::new(format!("`{address}` is not the address of a repository; expected one like `https://host/path`"))
    })?;
    let mut url = checked(url).map_err(|why| Failure::new(format!("repository `{address}` {why}")))?;
    if !url.path().ends_with('/') {
        url.set_path(&format!("{}/", url.path()));
    }
    Ok(url)
}

async fn read(mut answer: Response, url: &Url, max: u64) -> Result<String, Failure> {
    let (mut bytes, mut size) = (Vec::new(), 0);
    while let Some(chunk) = chunk(&mut answer, url, &mut size, max).await? {
        bytes.extend_from_slice(&chunk);
    }
    String::from_utf8(bytes).map_err(|_| Failure::new(format!("`{url}` is not UTF-8")))
}

async fn get(http: &Client, url: &Url) -> Result<Response, Failure> {
    successful(ask(http, url).await?, url)
}

async fn ask(http: &Client, url: &Url) -> Result<Response, Failure> {
    let asked = tokio::time::timeout(IDLE, http.get(url.clone()).send()).await.map_err(|_| stalled(url))?;
    let answer = asked.map_err(|error| {
        let why = explain(&error.without_url());
        Failure::new(format!("no response from `{url}`: {why}; check the network, and build again"))
    })?;
    // A redirect must not end at an address without TLS, because anybody on the network could respond there.
    checked(answer.url().clone())
        .map_err(|why| Failure::new(format!("`{url}` redirects to another address, which {why}")))?;
    Ok(answer)
}

fn successful(answer: Response, url: &Url) -> Result<Response, Failure> {
    let status = answer.status();
    if status.is_success() {
        return Ok(answer);
    }
    let passes = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
    let way_out = if passes { "build again" } else { "check the address, and that anybody may read it" };
    Err(Failure::new(format!("`{url}` answered {}; {way_out}", status.as_u16())))
}

async fn chunk(answer: &mut Response, url: &Url, size: &mut u64, max: u64) -> Result<Option<bytes::Bytes>, Failure> {
    let next = tokio::time::timeout(IDLE, answer.chunk()).await.map_err(|_| stalled(url))?;
    let next = next.map_err(|error| {
        let why = explain(&error.without_url());
        Failure::new(format!("the response of `{url}` ended too early: {why}; build again"))
    })?;
    *size += next.as_ref().map_or(0, |chunk| chunk.len() as u64);
    if *size > max { Err(Failure::new(format!("`{url}` is larger than {max} bytes"))) } else { Ok(next) }
}

fn stalled(url: &Url) -> Failure {
    Failure::new(format!("`{url}` sent nothing for {} s; build again", IDLE.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_cannot_be_trusted_is_refused() {
        for address in ["http://charts.example.com", "https://user:word@charts.example.com", "charts", "file:///charts"]
        {
            assert!(base(address).is_err(), "{address}");
        }
        assert_eq!(base("http://127.0.0.1:8080/charts").unwrap().as_str(), "http://127.0.0.1:8080/charts/");
    }
}
