//! The way out of a box: what its program may reach, served by the runner.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use super::program::Program;
use super::service::{Forward, Service};
use crate::work::job::Job;

/// Where a box's HTTP proxy listens.
pub(super) const PROXY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 3128);

/// Returns what leads out of the box of `program`.
pub(super) fn services(_job: &Job, _program: &Program<'_>) -> Vec<Service> {
    own_endpoint().into_iter().collect()
}

/// An AWS endpoint on the machine's loopback, which the runner uses itself, is at the same address inside the box.
fn own_endpoint() -> Option<Service> {
    let address = loopback(&std::env::var("AWS_ENDPOINT_URL").ok()?)?;
    Some(Service { at: address, name: None, serve: Arc::new(Forward { to: address }) })
}

/// Returns the address of a URL whose host is a loopback address.
fn loopback(url: &str) -> Option<SocketAddr> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let default = if scheme == "https" { 443 } else { 80 };
    let address = authority.parse().ok().or_else(|| {
        let (host, port) =
            authority.rsplit_once(':').map_or((authority, None), |(host, port)| (host, port.parse().ok()));
        let ip = if host == "localhost" { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { host.parse().ok()? };
        Some(SocketAddr::new(ip, port.unwrap_or(default)))
    });
    address.filter(|address: &SocketAddr| address.ip().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_endpoints_of_the_machine_itself_are_forwarded() {
        let found = |url: &str| loopback(url).map(|address| address.to_string());

        assert_eq!(found("http://127.0.0.1:4566").as_deref(), Some("127.0.0.1:4566"));
        assert_eq!(found("http://localhost:4566/").as_deref(), Some("127.0.0.1:4566"));
        assert_eq!(found("http://[::1]:4566/x").as_deref(), Some("[::1]:4566"));
        assert_eq!(found("https://vpce-1.sqs.eu-west-1.vpce.amazonaws.com"), None);
        assert_eq!(found("http://10.0.0.9:80"), None);
    }
}
