//! The HTTP client for the URLs of blobs that a grant contains. The vendor's account chooses these URLs. So the
//! client refuses a URL that leads to this machine, or to a private network, except to an endpoint of AWS there.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

use freehold_egress::{Scope, check_address};
use freehold_iam_proxy::DOMAINS;
use freehold_oci::{RegistryError, client_builder, is_loopback_name};
use reqwest::Client;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use url::{Host, Url};

/// The variables that name the runner's proxy. The client connects to the proxy, which resolves the names of the URLs.
const PROXIES: [&str; 4] = ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"];

/// Returns the client. All jobs share it, because reading and parsing the system's root certificates takes milliseconds.
///
/// # Errors
/// When no root certificate can be loaded.
pub fn client() -> Result<Client, RegistryError> {
    static CLIENT: OnceLock<Client> = OnceLock::new();
    if let Some(client) = CLIENT.get() {
        return Ok(client.clone());
    }
    let client = Places::from_env().client()?;
    Ok(CLIENT.get_or_init(|| client).clone())
}

/// Returns whether the host of a granted URL is a name, or an address that the URL may lead to. An address in a URL is
/// not resolved, so the client's resolver does not check it.
pub fn may_lead_to(url: &str) -> bool {
    Places::from_env().permit(url)
}

/// The hosts that the runner's own environment names. They may have any address.
#[derive(Debug, Clone, Default)]
struct Places {
    /// The host of the runner's AWS endpoint.
    own: Option<String>,
    proxies: Vec<String>,
}

impl Places {
    fn from_env() -> Self {
        let host = |variable: &str| Some(Url::parse(&std::env::var(variable).ok()?).ok()?.host_str()?.to_owned());
        Self { own: host("AWS_ENDPOINT_URL"), proxies: PROXIES.iter().filter_map(|name| host(name)).collect() }
    }

    fn client(&self) -> Result<Client, RegistryError> {
        // A redirect to another host would lead to a host that the grant does not name.
        let redirects = Policy::custom(|attempt| {
            let same = attempt.previous().last().is_some_and(|before| before.origin() == attempt.url().origin());
            if same && attempt.previous().len() < 5 { attempt.follow() } else { attempt.stop() }
        });
        let builder = client_builder().redirect(redirects).dns_resolver(Arc::new(Checked(self.clone())));
        builder.build().map_err(|error| RegistryError::Client(error.to_string()))
    }

    fn permit(&self, url: &str) -> bool {
        let Ok(url) = Url::parse(url) else { return true };
        match url.host() {
            Some(Host::Ipv4(address)) => self.allow(&address.to_string(), address.into()),
            Some(Host::Ipv6(address)) => self.allow(&address.to_string(), address.into()),
            Some(Host::Domain(_)) | None => true,
        }
    }

    /// Returns whether the host `name` may be at `address`.
    fn allow(&self, name: &str, address: IpAddr) -> bool {
        // When the runner's AWS endpoint is on the machine's loopback, the hosts of granted URLs are there too.
        let own = self.own.as_deref().is_some_and(|own| {
            own.eq_ignore_ascii_case(name) || (is_loopback_name(own) && address.is_loopback() && is_loopback_name(name))
        });
        let most = if is_of_aws(name) { Scope::Private } else { Scope::Public };
        own || self.proxies.iter().any(|proxy| proxy.eq_ignore_ascii_case(name))
            || check_address(address).is_ok_and(|scope| scope <= most)
    }
}

/// Returns whether a name belongs to AWS, whose endpoints may be in a private network.
fn is_of_aws(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    DOMAINS.iter().any(|domain| name.strip_suffix(domain).is_some_and(|before| before.ends_with('.')))
}

/// Resolves names to the addresses that they may have.
#[derive(Debug)]
struct Checked(Places);

impl Resolve for Checked {
    fn resolve(&self, name: Name) -> Resolving {
        let places = self.0.clone();
        Box::pin(async move {
            let name = name.as_str();
            // Not every system's resolver resolves these names to loopback (RFC 6761 section 6.3).
            let found: Vec<SocketAddr> = if is_loopback_name(name) {
                vec![SocketAddr::from(([127, 0, 0, 1], 0))]
            } else {
                tokio::net::lookup_host((name, 0)).await?.collect()
            };
            let allowed: Vec<SocketAddr> = found.into_iter().filter(|at| places.allow(name, at.ip())).collect();
            if allowed.is_empty() {
                return Err(format!("`{name}` is in a network that a granted URL must not lead to").into());
            }
            let allowed: Addrs = Box::new(allowed.into_iter());
            Ok(allowed)
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    fn at(own: &str) -> Places {
        Places { own: Some(own.to_owned()), proxies: vec!["proxy.example".to_owned()] }
    }

    #[test]
    fn a_name_of_the_vendors_leads_to_the_internet_alone() {
        let places = at("vpce-1.sqs.eu-west-1.vpce.amazonaws.com");
        for (name, address, allowed) in [
            ("blobs.example", "8.8.8.8", true),
            ("blobs.example", "10.0.0.7", false),
            ("blobs.example", "127.0.0.1", false),
            ("blobs.example", "169.254.169.254", false),
            ("localhost", "127.0.0.1", false),
            ("b.s3.eu-west-1.amazonaws.com", "10.0.0.7", true),
            ("b.s3.eu-west-1.amazonaws.com", "169.254.169.254", false),
            ("amazonaws.com.blobs.example", "10.0.0.7", false),
            ("xamazonaws.com", "10.0.0.7", false),
            ("proxy.example", "10.0.0.7", true),
            ("vpce-1.sqs.eu-west-1.vpce.amazonaws.com", "127.0.0.1", true),
        ] {
            assert_eq!(places.allow(name, address.parse().unwrap()), allowed, "{name} at {address}");
        }
        for url in ["http://169.254.169.254/latest", "http://127.0.0.1:1/x", "http://[::1]/", "http://10.0.0.7/"] {
            assert!(!places.permit(url), "{url}");
        }
        assert!(places.permit("https://8.8.8.8/x") && places.permit("https://blobs.example/x"));
    }

    #[test]
    fn what_the_local_aws_grants_is_where_that_aws_is() {
        let places = at("127.0.0.1");

        assert!(places.permit("http://127.0.0.1:4566/x"));
        assert!(places.allow("b.s3.localhost", "127.0.0.1".parse().unwrap()));
        assert!(!places.allow("blobs.example", "127.0.0.1".parse().unwrap()));
        assert!(!places.permit("http://169.254.169.254/latest"));
    }

    /// Answers every request with a redirect to this place, and returns its own.
    async fn redirecting(to: String) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let _ = stream.read(&mut [0; 4096]).await.unwrap();
                let answer =
                    format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        format!("http://{address}/x")
    }

    #[tokio::test]
    async fn a_redirect_to_another_host_is_not_followed_and_a_forbidden_name_is_not_reached() {
        let other = redirecting("http://127.0.0.1:1/".to_owned()).await;
        let first = redirecting(other).await;
        let port = Url::parse(&first).unwrap().port().unwrap();

        let answer = at("127.0.0.1").client().unwrap().get(&first).send().await.unwrap();
        let refused = at("aws.example").client().unwrap().get(format!("http://b.localhost:{port}/x")).send().await;

        assert_eq!((answer.status().as_u16(), answer.url().as_str()), (302, first.as_str()));
        assert!(format!("{:?}", refused.unwrap_err()).contains("must not lead to"));
    }
}
