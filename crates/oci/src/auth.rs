//! Logs in to registries: with basic authentication, as ECR expects, or with a bearer token that the registry's
//! challenge asks for, as Docker Hub does (RFC 6750, Docker "Token authentication specification").

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::{Client, RequestBuilder, Response, Url};
use serde::Deserialize;
use zeroize::Zeroizing;

use super::{RegistryError, base_url};
use crate::address::is_loopback_name;

/// The login of the caller at a registry.
#[derive(Clone)]
pub enum Login {
    Anonymous,
    Basic {
        user: String,
        password: Zeroizing<String>,
        /// The hosts (`host` or `host:port`), besides the registry itself, whose token service may receive the
        /// password.
        token_hosts: Vec<String>,
    },
}

/// Registries whose token service has another host name. The same operator runs both.
const TOKEN_SERVICES: [(&str, &str); 2] =
    [("registry-1.docker.io", "auth.docker.io"), ("registry.gitlab.com", "gitlab.com")];

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Anonymous => f.write_str("Anonymous"),
            Self::Basic { user, .. } => write!(f, "Basic({user})"),
        }
    }
}

/// The permission that a request needs. Token services call it a scope (Docker "Token scope documentation").
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Access {
    Pull,
    Push,
    /// Push to the target, and pull from the repository of this name, from which a blob is mounted.
    Mount(String),
}

impl Access {
    fn scopes(&self, repository: &str) -> Vec<String> {
        match self {
            Self::Pull => vec![format!("repository:{repository}:pull")],
            Self::Push => vec![format!("repository:{repository}:pull,push")],
            Self::Mount(from) => {
                vec![format!("repository:{repository}:pull,push"), format!("repository:{from}:pull")]
            }
        }
    }
}

/// A login and the tokens that a token service issued for it, one per [`Access`].
#[derive(Debug)]
pub(super) struct Auth {
    login: Login,
    tokens: Mutex<HashMap<Access, Zeroizing<String>>>,
}

impl Auth {
    pub(super) fn new(login: Login) -> Self {
        Self { login, tokens: Mutex::new(HashMap::new()) }
    }

    /// Adds the token for `access` to a request, or the login while there is no token.
    pub(super) fn sign(&self, request: RequestBuilder, access: &Access) -> RequestBuilder {
        let token = self.tokens.lock().ok().and_then(|tokens| tokens.get(access).cloned());
        match (token, &self.login) {
            (Some(token), _) => request.bearer_auth(token.as_str()),
            (None, Login::Basic { user, password, .. }) => request.basic_auth(user, Some(password.as_str())),
            (None, Login::Anonymous) => request,
        }
    }

    /// Handles a response with status 401: fetches and stores a token if `headers` ask for a bearer token. Returns true
    /// if the caller should send the request again.
    pub(super) async fn answer(
        &self,
        (http, registry): (&Client, &Url),
        headers: &HeaderMap,
        repository: &str,
        access: &Access,
    ) -> Result<bool, RegistryError> {
        let challenges = headers.get_all(reqwest::header::WWW_AUTHENTICATE);
        let Some(challenge) = challenges.iter().filter_map(|value| value.to_str().ok()).find_map(Challenge::parse)
        else {
            return Ok(false);
        };
        let token = self.fetch((http, registry), &challenge, repository, access).await?;
        if let Ok(mut tokens) = self.tokens.lock() {
            tokens.insert(access.clone(), token);
        }
        Ok(true)
    }

    /// Returns whether the token service at `url` may receive the password for `registry`. A registry chooses its token
    /// service in each response, so a response alone must not decide who gets the password.
    fn trusts(&self, registry: &Url, url: &Url) -> bool {
        let (registry, service) = (authority(registry), authority(url));
        let Login::Basic { token_hosts, .. } = &self.login else { return true };
        registry == service
            || TOKEN_SERVICES.contains(&(registry.as_str(), service.as_str()))
            || token_hosts.contains(&service)
    }

    async fn fetch(
        &self,
        (http, registry): (&Client, &Url),
        challenge: &Challenge,
        repository: &str,
        access: &Access,
    ) -> Result<Zeroizing<String>, RegistryError> {
        // As for registries, `base_url` refuses plain HTTP to another machine: a password or token leaves this machine
        // only over TLS.
        let mut url: Url = base_url(&challenge.realm)?;
        let host = authority(&url);
        // Only a registry of this machine has its token service on this machine.
        let is_here = |url: &Url| url.host_str().is_some_and(is_loopback_name);
        if is_here(&url) && !is_here(registry) {
            return Err(RegistryError::TokenHost { registry: authority(registry), host });
        }
        let what = "the request for a token".to_owned();
        for scope in access.scopes(repository) {
            url.query_pairs_mut().append_pair("scope", &scope);
        }
        if let Some(service) = &challenge.service {
            url.query_pairs_mut().append_pair("service", service);
        }
        let trusted = self.trusts(registry, &url);
        let mut request = http.get(url).timeout(Duration::from_secs(30));
        if let Login::Basic { user, password, .. } = &self.login {
            if !trusted {
                let registry = authority(registry);
                return Err(RegistryError::TokenHost { registry, host });
            }
            request = request.basic_auth(user, Some(password.as_str()));
        }
        let transport = |source| RegistryError::Transport { host: host.clone(), what: what.clone(), source };
        let answer = request.send().await.map_err(transport)?;
        if !answer.status().is_success() {
            return Err(no_token(&answer, host, what, repository));
        }
        let token: Token = answer.json().await.map_err(transport)?;
        token.token.or(token.access_token).map(Zeroizing::new).ok_or_else(|| RegistryError::BadAnswer {
            host: host.clone(),
            what: what.clone(),
            detail: "it has no token".to_owned(),
        })
    }
}

/// Returns the error for an answer of the token service that is not a success.
fn no_token(answer: &Response, host: String, what: String, repository: &str) -> RegistryError {
    let status = answer.status();
    match status.as_u16() {
        401 | 403 => RegistryError::Denied {
            host,
            repository: repository.to_owned(),
            detail: format!("its token service returned status {status}"),
        },
        status => {
            let retry_after = super::http::retry_after(answer);
            RegistryError::Status { host, what, status, detail: String::new(), retry_after }
        }
    }
}

/// Returns the host of a URL, with its port if the URL names one that is not the default.
pub fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

/// A challenge of the header `WWW-Authenticate` that asks for a bearer token.
#[derive(Debug, PartialEq, Eq)]
struct Challenge {
    realm: String,
    service: Option<String>,
}

impl Challenge {
    /// Parses the value of a header, which may have challenges of several schemes; returns `None` when no challenge asks
    /// for a bearer token or the value is not well-formed.
    fn parse(header: &str) -> Option<Self> {
        let challenges = http_auth::parse_challenges(header).ok()?;
        let bearer = challenges.iter().find(|challenge| challenge.scheme.eq_ignore_ascii_case("bearer"))?;
        let value = |name: &str| {
            let found = bearer.params.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.to_unescaped())
        };
        Some(Self { realm: value("realm")?, service: value("service") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bearer_challenge_names_its_token_service() {
        let header = r#"Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:library/nginx:pull""#;

        let challenge = Challenge::parse(header).expect("challenge");

        assert_eq!(challenge.realm, "https://auth.docker.io/token");
        assert_eq!(challenge.service.as_deref(), Some("registry.docker.io"));
    }

    #[test]
    fn a_bearer_challenge_is_found_after_another_scheme_and_with_values_without_quotes() {
        let header =
            r#"Basic realm="a, b", Bearer Realm="https://registry.example/\"token\"", service=registry.example"#;

        let challenge = Challenge::parse(header).expect("challenge");

        assert_eq!(challenge.realm, r#"https://registry.example/"token""#);
        assert_eq!(challenge.service.as_deref(), Some("registry.example"));
        assert_eq!(Challenge::parse(r#"Bearer realm="https://registry.example"#), None);
    }

    #[test]
    fn a_basic_challenge_asks_for_no_token() {
        assert_eq!(Challenge::parse(r#"Basic realm="https://x.dkr.ecr.eu-west-1.amazonaws.com/""#), None);
    }

    #[test]
    fn a_login_does_not_print_its_password() {
        let login = login(&[]);

        assert!(!format!("{login:?}").contains("hunter2"));
    }

    #[test]
    fn a_password_goes_to_the_registry_and_to_token_services_that_are_known_or_named() {
        let url = |address: &str| base_url(address).expect(address);
        let trusts =
            |login: Login, registry: &str, service: &str| Auth::new(login).trusts(&url(registry), &url(service));

        assert!(trusts(login(&[]), "ghcr.io", "https://ghcr.io/token"));
        assert!(trusts(login(&[]), "registry-1.docker.io", "https://auth.docker.io/token"));
        assert!(trusts(login(&["sso.example:8443"]), "registry.example", "https://sso.example:8443/token"));
        assert!(trusts(Login::Anonymous, "registry.example", "https://sso.example/token"));
        for service in ["https://sso.example/token", "https://sso.example:8443/token", "https://registry.example:444/"]
        {
            assert!(!trusts(login(&["sso.example:443"]), "registry.example", service), "{service}");
        }
        assert!(!trusts(login(&[]), "registry.example", "https://auth.docker.io/token"));
    }

    fn login(token_hosts: &[&str]) -> Login {
        let token_hosts = token_hosts.iter().map(|host| (*host).to_owned()).collect();
        Login::Basic { user: "AWS".into(), password: Zeroizing::new("hunter2".into()), token_hosts }
    }
}
