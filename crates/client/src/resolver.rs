//! Resolves host names, also those below `.localhost`, which not every system's resolver knows.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// The resolver of the HTTP clients, which asks [`lookup_host`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resolver;

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = lookup_host(name.as_str()).await?;
            let addresses: Addrs = Box::new(found.into_iter().map(|ip| SocketAddr::from((ip, 0))));
            Ok(addresses)
        })
    }
}

/// Returns the addresses of a host as the system resolves it. Names that end with `.localhost` are always loopback (RFC
/// 6761, section 6.3).
///
/// # Errors
/// That of the system's resolver.
pub async fn lookup_host(name: &str) -> io::Result<Vec<IpAddr>> {
    if is_loopback_name(name) {
        return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
    }
    Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
}

fn is_loopback_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || name.to_ascii_lowercase().ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_below_localhost_are_loopback_and_no_others() {
        for name in ["localhost", "api.execute-api.localhost", "A.LOCALHOST", "x.localhost."] {
            assert!(is_loopback_name(name), "{name}");
        }
        for name in ["localhost.example.com", "notlocalhost", "amazonaws.com"] {
            assert!(!is_loopback_name(name), "{name}");
        }
    }

    #[tokio::test]
    async fn a_name_below_localhost_is_not_asked_of_the_system() {
        let found = lookup_host("api.execute-api.localhost").await.unwrap();

        assert_eq!(found, [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)]);
    }
}
