//! The runner's own proxy, when its environment names one: connections of jobs then go through it.

use std::fmt;

use bytes::Bytes;
use http_body_util::Empty;
use hyper::header::{HOST, HeaderValue, PROXY_AUTHORIZATION};
use hyper::{Request, Uri};
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_util::task::AbortOnDropHandle;

use crate::host::Destination;
use crate::limits::Limits;
use crate::network::{Network, dial_configured};
use crate::refusal::Reason;
use crate::rule::Protocol;

/// Decides which proxy is used for a destination. Reads HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY like curl.
pub struct Upstream(Matcher);

/// The proxy through which one destination is reached.
#[derive(Debug)]
pub(crate) struct Hop {
    pub(crate) proxy: Destination,
    pub(crate) authorization: Option<HeaderValue>,
}

impl Upstream {
    /// Reads the settings from the runner's environment.
    pub fn from_env() -> Self {
        Self(Matcher::from_env())
    }

    /// Uses the proxy at the URL `proxy` for all hosts except those in `no_proxy` (comma-separated, like NO_PROXY).
    pub fn new(proxy: &str, no_proxy: &str) -> Self {
        Self(Matcher::builder().all(proxy.to_owned()).no(no_proxy.to_owned()).build())
    }

    /// Uses no proxy: all connections are direct.
    pub fn none() -> Self {
        Self(Matcher::builder().build())
    }

    /// Returns the proxy for `to`, or `None` when the runner connects directly.
    pub(crate) fn hop(&self, to: &Destination, protocol: Protocol) -> Result<Option<Hop>, Reason> {
        let scheme = match protocol {
            Protocol::Connect => "https",
            Protocol::Http => "http",
        };
        let wrong = |detail: &str| Reason::Upstream { to: to.clone(), detail: detail.to_owned() };
        let uri: Uri =
            format!("{scheme}://{to}/").parse().map_err(|_| wrong("the destination cannot be written as a URL"))?;
        let Some(hop) = self.0.intercept(&uri) else { return Ok(None) };
        if hop.uri().scheme_str() != Some("http") {
            return Err(wrong(
                "the URL of the runner's proxy does not begin with `http://`, and no other scheme is supported",
            ));
        }
        let authority = hop.uri().authority().map_or("", |authority| authority.as_str());
        let proxy =
            Destination::parse(authority, Some(80)).map_err(|_| wrong("the URL of the runner's proxy has no host"))?;
        Ok(Some(Hop { proxy, authorization: hop.basic_auth().cloned() }))
    }
}

impl fmt::Debug for Upstream {
    /// Hides the URL, which may contain a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream").finish_non_exhaustive()
    }
}

/// Asks the proxy for a tunnel. Returns the stream, and the bytes that already arrived through it.
pub(crate) async fn connect_through(
    network: &dyn Network,
    hop: Hop,
    to: &Destination,
    limits: &Limits,
) -> Result<(TcpStream, Bytes), Reason> {
    let stream = dial_configured(network, &hop.proxy, limits).await?;
    let wrong = |detail: &str| Reason::Upstream { to: to.clone(), detail: detail.to_owned() };
    match tokio::time::timeout(limits.connect, ask(stream, hop.authorization, to, limits)).await {
        Ok(Ok(Ok(tunnel))) => Ok(tunnel),
        Ok(Ok(Err(detail))) => Err(wrong(&detail)),
        Ok(Err(_)) => Err(wrong("it closed the connection or does not speak HTTP")),
        Err(_) => Err(wrong("it did not respond in time")),
    }
}

async fn ask(
    stream: TcpStream,
    authorization: Option<HeaderValue>,
    to: &Destination,
    limits: &Limits,
) -> hyper::Result<Result<(TcpStream, Bytes), String>> {
    let mut request = Request::new(Empty::<Bytes>::new());
    *request.method_mut() = hyper::Method::CONNECT;
    let (Ok(uri), Ok(host)) = (to.to_string().parse(), HeaderValue::from_str(&to.to_string())) else {
        return Ok(Err("the destination cannot be written as a request".to_owned()));
    };
    *request.uri_mut() = uri;
    request.headers_mut().insert(HOST, host);
    authorization.and_then(|value| request.headers_mut().insert(PROXY_AUTHORIZATION, value));
    let mut client = hyper::client::conn::http1::Builder::new();
    let (mut sender, connection) = client.max_buf_size(limits.head_bytes).handshake(TokioIo::new(stream)).await?;
    let _driver = AbortOnDropHandle::new(tokio::spawn(connection.with_upgrades()));
    let answer = sender.send_request(request).await?;
    if !answer.status().is_success() {
        return Ok(Err(format!("it returned status {}", answer.status().as_u16())));
    }
    let tunnel = hyper::upgrade::on(answer).await?;
    let parts = tunnel.downcast::<TokioIo<TcpStream>>();
    Ok(parts.map(|parts| (parts.io.into_inner(), parts.read_buf)).map_err(|_| "it did not open the tunnel".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(upstream: &Upstream, to: &str) -> Option<String> {
        upstream.hop(&to.parse().unwrap(), Protocol::Connect).unwrap().map(|hop| hop.proxy.to_string())
    }

    #[test]
    fn no_proxy_names_what_the_runner_connects_to_itself() {
        let upstream = Upstream::new("http://user:secret@proxy.corp:3128", "internal.example,10.0.0.0/8");

        assert_eq!(proxy(&upstream, "example.org:443").as_deref(), Some("proxy.corp:3128"));
        assert_eq!(proxy(&upstream, "a.internal.example:443"), None);
        assert_eq!(proxy(&upstream, "10.1.2.3:5432"), None);
        assert_eq!(proxy(&Upstream::none(), "example.org:443"), None);
    }

    #[test]
    fn the_proxys_password_is_not_shown() {
        let upstream = Upstream::new("http://user:secret@proxy.corp:3128", "");

        assert!(!format!("{upstream:?}").contains("secret"));
        let hop = upstream.hop(&"example.org:443".parse().unwrap(), Protocol::Connect).unwrap().unwrap();
        assert!(!format!("{hop:?}").contains("dXNlcjpzZWNyZXQ="), "{hop:?}");
    }
}
