//! Parses addresses of registries. Registries use HTTPS; plain HTTP is allowed only for names that always mean this
//! machine.

use std::net::IpAddr;

use reqwest::Url;

/// The reason why a registry's address cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The text is neither a host name with an optional port nor a URL.
    #[error("`{0}` is not a registry host; expected `host` or `host:port`")]
    Invalid(String),
    /// The address asks for plain HTTP to another machine.
    #[error("`{0}` would be reached without TLS, which is allowed only for names of this machine; use `https://`")]
    Plain(String),
}

/// Returns whether `host`, without a port, always means this machine (RFC 6761 section 6.3, RFC 1122 section 3.2.1.3).
pub fn is_loopback_name(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    if host == "localhost" || host.ends_with(".localhost") {
        return true;
    }
    let literal = host.trim_start_matches('[').trim_end_matches(']');
    literal.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Returns the base URL of the registry `address`: `host`, `host:port`, or a URL.
///
/// # Errors
/// [`AddressError`] when `address` is not an address of a registry, or asks for plain HTTP to another machine.
pub fn base_url(address: &str) -> Result<Url, AddressError> {
    let invalid = || AddressError::Invalid(address.chars().take(80).collect());
    let url = if address.contains("://") {
        Url::parse(address).map_err(|_| invalid())?
    } else {
        let https = Url::parse(&format!("https://{address}/")).map_err(|_| invalid())?;
        if https.host_str().is_some_and(is_loopback_name) {
            Url::parse(&format!("http://{address}/")).map_err(|_| invalid())?
        } else {
            https
        }
    };
    let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(invalid)?;
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_loopback_name(host) => Ok(url),
        "http" => Err(AddressError::Plain(address.chars().take(80).collect())),
        _ => Err(invalid()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_this_machine_is_reached_without_tls_and_every_other_with_it() {
        for (address, expected) in [
            ("localhost:5000", "http://localhost:5000/"),
            ("127.0.0.1:5000", "http://127.0.0.1:5000/"),
            ("[::1]:5000", "http://[::1]:5000/"),
            ("111111111111.dkr.ecr.eu-west-1.localhost:4566", "http://111111111111.dkr.ecr.eu-west-1.localhost:4566/"),
            ("http://x.localhost:4566", "http://x.localhost:4566/"),
            ("ghcr.io", "https://ghcr.io/"),
            ("localhost.example.com", "https://localhost.example.com/"),
            ("127.0.0.1.example.com", "https://127.0.0.1.example.com/"),
        ] {
            let url = base_url(address).expect(address);

            assert_eq!(url.as_str(), expected);
        }
    }

    #[test]
    fn plain_http_to_another_machine_is_refused() {
        let error = base_url("http://registry.example.com").expect_err("plain");

        assert!(matches!(error, AddressError::Plain(_)));
        assert!(base_url("ftp://localhost").is_err());
        assert!(base_url("a b").is_err());
    }
}
