//! Creates the HTTP client and reads headers of responses. The client uses rustls with ring, the root certificates of
//! the system, a connect timeout, and a resolver that resolves names under `.localhost` to the loopback address.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::RETRY_AFTER;
use reqwest::{Client, ClientBuilder, Response};

use super::{RegistryError, is_loopback_name};

/// The connect timeout. [`RetryPolicy`](super::RetryPolicy) bounds the waits after that, because the HTTP client's own
/// read timeout would also run while a blob is sent.
const CONNECT: Duration = Duration::from_secs(10);

/// Returns an HTTP client for registries and pre-signed URLs. It obeys `HTTPS_PROXY` and `NO_PROXY`. It trusts the root
/// certificates in `SSL_CERT_FILE`, or else those of the system. It speaks HTTP/1.1 only, because one stream per
/// connection needs the least memory.
///
/// # Errors
/// [`RegistryError::Client`] when no root certificate can be loaded.
pub fn client() -> Result<Client, RegistryError> {
    client_builder().build().map_err(|error| RegistryError::Client(error.to_string()))
}

/// Returns the settings of [`client`], for a client that differs in some of them.
pub fn client_builder() -> ClientBuilder {
    // The call fails only when a crypto provider is installed already, and this process installs no other provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .user_agent(concat!("freehold/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT)
        .pool_idle_timeout(Duration::from_secs(30))
        .http1_only()
        .dns_resolver(Arc::new(LoopbackNames))
}

/// Returns the value of the header `name`; `None` when it is absent or not text.
pub(crate) fn header<'a>(answer: &'a Response, name: &str) -> Option<&'a str> {
    answer.headers().get(name).and_then(|value| value.to_str().ok())
}

/// Returns the wait that the header `Retry-After` asks for. Ignores a header with a date.
pub(crate) fn retry_after(answer: &Response) -> Option<Duration> {
    header(answer, RETRY_AFTER.as_str()).and_then(|value| value.trim().parse().ok()).map(Duration::from_secs)
}

/// A resolver that resolves names under `.localhost` to 127.0.0.1, because not every system's resolver does (RFC 6761
/// section 6.3).
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
