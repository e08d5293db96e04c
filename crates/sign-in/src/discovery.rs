//! The document of an issuer: where its endpoints are (OpenID Connect Discovery 1.0).

use serde::Deserialize;
use url::{Host, Url};

use crate::error::Error;
use crate::http::Http;

const PLACE: &str = "/.well-known/openid-configuration";

/// Returns where the document of `issuer` is read when all calls to AWS go to `endpoint`: for a user pool of Cognito,
/// at this endpoint; for another issuer, at the issuer itself (`None`).
pub fn discovery_base(issuer: &str, endpoint: Option<&str>) -> Option<Url> {
    let issuer: Url = issuer.parse().ok()?;
    let host = issuer.host_str()?;
    let is_cognito =
        host.starts_with("cognito-idp.") && (host.ends_with(".amazonaws.com") || host.ends_with(".amazonaws.com.cn"));
    if is_cognito { endpoint.filter(|text| !text.is_empty())?.parse().ok() } else { None }
}

/// The endpoints of an issuer.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub(crate) authorization: Url,
    pub(crate) token: Url,
    pub(crate) keys: Url,
    pub(crate) revocation: Option<Url>,
    pub(crate) device: Option<Url>,
    pub(crate) scopes: Vec<String>,
}

/// The document as the issuer writes it.
#[derive(Debug, Deserialize)]
struct Raw {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    #[serde(default)]
    revocation_endpoint: Option<String>,
    #[serde(default)]
    device_authorization_endpoint: Option<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
}

impl Document {
    /// Reads the document of `issuer`. `base` only changes the server that the document is read from: the document has
    /// to belong to `issuer` all the same.
    ///
    /// # Errors
    /// Address, OtherIssuer, Endpoint, and the errors of a request.
    pub(crate) async fn read(http: &Http, issuer: &str, base: Option<&Url>) -> Result<Self, Error> {
        let url = address(issuer, base)?;
        let raw: Raw = http.get(&url).await?;
        if raw.issuer != issuer {
            let (address, wanted) = (url.to_string(), issuer.to_owned());
            return Err(Error::OtherIssuer { address, named: raw.issuer, wanted });
        }
        let may_be_plain = base.is_some_and(|base| base.scheme() == "http");
        let endpoint = |text: String| endpoint(text, may_be_plain);
        Ok(Self {
            authorization: endpoint(raw.authorization_endpoint)?,
            token: endpoint(raw.token_endpoint)?,
            keys: endpoint(raw.jwks_uri)?,
            revocation: raw.revocation_endpoint.map(endpoint).transpose()?,
            device: raw.device_authorization_endpoint.map(endpoint).transpose()?,
            scopes: raw.scopes_supported,
        })
    }
}

/// Returns the address of the document.
fn address(issuer: &str, base: Option<&Url>) -> Result<Url, Error> {
    let wrong = || Error::Address(issuer.to_owned());
    let issuer_url: Url = issuer.parse().map_err(|_| wrong())?;
    if !is_private(&issuer_url) || issuer_url.query().is_some() || issuer_url.fragment().is_some() {
        return Err(wrong());
    }
    let mut url = base.unwrap_or(&issuer_url).clone();
    let before = base.map(|base| base.path().trim_end_matches('/').to_owned()).unwrap_or_default();
    url.set_path(&format!("{before}{}{PLACE}", issuer_url.path().trim_end_matches('/')));
    Ok(url)
}

fn endpoint(text: String, may_be_plain: bool) -> Result<Url, Error> {
    match text.parse::<Url>() {
        Ok(url) if is_private(&url) || (may_be_plain && url.scheme() == "http") => Ok(url),
        Ok(_) | Err(_) => Err(Error::Endpoint(text)),
    }
}

/// Returns whether nobody on the network can read what is sent to `url`: the connection has TLS, or does not leave this
/// machine.
pub fn is_private(url: &Url) -> bool {
    let is_loopback = match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => return false,
    };
    url.scheme() == "https" || (url.scheme() == "http" && is_loopback)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_pool_of_cognito_is_read_at_the_endpoint_of_aws() {
        let pool = "https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_abc";
        let base = |issuer: &str, endpoint| discovery_base(issuer, endpoint).map(|url| url.to_string());

        assert_eq!(base(pool, Some("http://127.0.0.1:4566")).as_deref(), Some("http://127.0.0.1:4566/"));
        assert_eq!(base(pool, None), None);
        assert_eq!(base(pool, Some("")), None);
        for other in ["https://example.com", "https://cognito-idp.example.com", "https://a.com/cognito-idp."] {
            assert_eq!(base(other, Some("http://127.0.0.1:4566")), None, "{other}");
        }
    }

    #[test]
    fn the_document_is_below_the_issuer_or_at_the_base_with_the_path_of_the_issuer() {
        let of = |issuer: &str, base: Option<&str>| {
            address(issuer, base.map(|base| base.parse().unwrap()).as_ref()).map(|url| url.to_string()).ok()
        };

        for issuer in ["https://id.example.com", "https://id.example.com/"] {
            assert_eq!(of(issuer, None).unwrap(), format!("https://id.example.com{PLACE}"));
        }
        assert_eq!(of("https://a.com/realm", None).unwrap(), format!("https://a.com/realm{PLACE}"));
        let at = of("https://a.com/pool", Some("http://127.0.0.1:4566"));
        assert_eq!(at.unwrap(), format!("http://127.0.0.1:4566/pool{PLACE}"));
        for wrong in ["http://id.example.com", "id.example.com", "https://a.com?x=1", "https://a.com#x"] {
            assert_eq!(of(wrong, None), None, "{wrong}");
        }
    }

    #[test]
    fn an_endpoint_without_encryption_is_refused_unless_the_document_was_read_so() {
        for (text, may_be_plain, is_good) in [
            ("https://a.com/token", false, true),
            ("http://127.0.0.1:1/token", false, true),
            ("http://localhost:1/token", false, true),
            ("http://a.com/token", false, false),
            ("http://localhost.a.com/token", false, false),
            ("http://cloud:4566/token", true, true),
            ("file:///token", true, false),
        ] {
            assert_eq!(endpoint(text.to_owned(), may_be_plain).is_ok(), is_good, "{text}");
        }
    }
}
