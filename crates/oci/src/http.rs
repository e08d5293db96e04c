//! The HTTP client (rustls with ring, the system's roots, a deadline for connecting, names under `.localhost` on loopback),
//! and what is read from the headers of an answer.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::RETRY_AFTER;
use reqwest::{Client, Response};

use super::{RegistryError, is_loopback_name};

/// The longest wait for a connection. Later waits are bounded by [`RetryPolicy`](super::RetryPolicy): the HTTP client's own read
/// timeout would also count while a blob is sent.
const CONNECT: Duration = Duration::from_secs(10);

/// Returns an HTTP client for registries and pre-signed URLs. Obeys `HTTPS_PROXY` and `NO_PROXY`, and trusts what
/// `SSL_CERT_FILE` names or the system's roots. HTTP/1.1 only: one stream per connection needs the least memory.
///
/// # Errors
/// [`RegistryError::Client`] when no root certificate can be loaded.
pub fn client() -> Result<Client, RegistryError> {
    // This fails only when a provider is installed already, and this process installs no other provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .user_agent(concat!("freehold/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT)
        .pool_idle_timeout(Duration::from_secs(30))
        .http1_only()
        .dns_resolver(Arc::new(LoopbackNames))
        .build()
        .map_err(|error| RegistryError::Client(error.to_string()))
}

/// Returns the header `name` of `answer` when it is text.
pub(crate) fn header<'a>(answer: &'a Response, name: &str) -> Option<&'a str> {
    answer.headers().get(name).and_then(|value| value.to_str().ok())
}

/// Returns how long `Retry-After` asks to wait; a date there is ignored.
pub(crate) fn retry_after(answer: &Response) -> Option<Duration> {
    header(answer, RETRY_AFTER.as_str()).and_then(|value| value.trim().parse().ok()).map(Duration::from_secs)
}

/// Answers names under `.localhost` itself, since not every system's resolver does (RFC 6761 section 6.3).
#[derive(Debug)]
struct LoopbackNames;

impl Resolve for LoopbackNames {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            if is_loopback_name(name.as_str()) {
                let here: Addrs = Box::new(std::iter::once(SocketAddr::from(([127, 0, 0, 1], 0))));
                return Ok(here);
            }
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let found: Addrs = Box::new(found.into_iter());
            Ok(found)
        })
    }
}
