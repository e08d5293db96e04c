//! The address of a private source: a scheme, a host and the beginning of a path. The name of its secret follows from
//! it, so that the build runner needs no list of its sources.

use std::fmt;
use std::str::FromStr;

use crate::TenantName;

/// The maximum number of segments in the path of an address. For each segment, the build runner looks for one more
/// secret.
const MAX_SEGMENTS: usize = 8;
/// The hosts that mean Docker Hub, and the host of its registry.
const DOCKER_HUB: (&[&str], &str) = (&["docker.io", "index.docker.io"], "registry-1.docker.io");

/// The protocol by which a source is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scheme {
    /// Git over HTTPS.
    Https,
    /// Git over SSH.
    Ssh,
    /// Container images and charts in a registry (OCI distribution specification).
    Oci,
}

impl Scheme {
    /// Returns the scheme as it is written in an address.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Ssh => "ssh",
            Self::Oci => "oci",
        }
    }

    const fn default_port(self) -> u16 {
        match self {
            Self::Https | Self::Oci => 443,
            Self::Ssh => 22,
        }
    }
}

/// The address of a source, or of everything below it: `https://github.com/acme`, `ssh://git.corp.example`,
/// `oci://ghcr.io/acme/api`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceAddress {
    scheme: Scheme,
    host: String,
    port: u16,
    path: Vec<String>,
}

/// The reason why a text is not the address of a private source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error(
        "`{0}` is not the address of a source; expected `https://HOST/PATH` or `ssh://HOST/PATH` for Git, or \
         `oci://HOST/PATH` for a registry"
    )]
    Scheme(String),
    #[error("`{0}` has a user or a password in it; leave them out of the address")]
    Login(String),
    #[error("`{0}` has no host, or a host that cannot be used; expected `host` or `host:port`")]
    Host(String),
    #[error(
        "the path of `{0}` cannot be used; expected at most {MAX_SEGMENTS} parts of letters, digits, `.`, `_` and `-`"
    )]
    Path(String),
}

impl SourceAddress {
    /// Returns the address of the repository at a Git URL; `None` for a URL for which there can be no credential. A
    /// user in the URL is ignored, and so is `.git` at its end.
    pub fn of_git(url: &str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let host = authority.rsplit('@').next()?;
        let path = path.trim_end_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path);
        let found: Self = format!("{scheme}://{host}/{path}").parse().ok()?;
        (found.scheme != Scheme::Oci).then_some(found)
    }

    /// Returns the address of a repository in a registry; `None` for a repository for which there can be no credential.
    pub fn of_repository(host: &str, repository: &str) -> Option<Self> {
        format!("oci://{host}/{repository}").parse().ok()
    }

    pub const fn scheme(&self) -> Scheme {
        self.scheme
    }

    pub fn host(&self) -> &str {
        &self.host
    }

    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Returns the host, with the port unless it is the default of the scheme.
    pub fn authority(&self) -> String {
        self.written_authority(':')
    }

    /// Returns whether `other` is this address or below it.
    pub fn covers(&self, other: &Self) -> bool {
        (self.scheme, &self.host, self.port) == (other.scheme, &other.host, other.port)
            && other.path.starts_with(&self.path)
    }

    /// Returns the addresses that contain this one: first this address itself, then each shorter path, and last only
    /// the host.
    pub fn covering(&self) -> impl Iterator<Item = Self> + '_ {
        (0..=self.path.len())
            .rev()
            .map(|length| Self { path: self.path.iter().take(length).cloned().collect(), ..self.clone() })
    }

    /// Returns the name of the secret that holds the credential for this address.
    pub fn secret_name(&self, tenant: &TenantName) -> String {
        let segments = std::iter::once(self.written_authority('+')).chain(self.path.iter().cloned());
        let segments: Vec<String> = segments.collect();
        format!("{}{}/{}", Self::secret_prefix(tenant), self.scheme.as_str(), segments.join("/"))
    }

    /// Returns the beginning of the names of the secrets of all sources of `tenant`.
    pub fn secret_prefix(tenant: &TenantName) -> String {
        format!("fh-{tenant}/source/")
    }

    /// Returns the address whose secret has the name `name`.
    pub fn of_secret(tenant: &TenantName, name: &str) -> Option<Self> {
        let (scheme, rest) = name.strip_prefix(&Self::secret_prefix(tenant))?.split_once('/')?;
        let found: Self = format!("{scheme}://{}", rest.replacen('+', ":", 1)).parse().ok()?;
        (found.secret_name(tenant) == name).then_some(found)
    }

    fn written_authority(&self, separator: char) -> String {
        if self.port == self.scheme.default_port() {
            self.host.clone()
        } else {
            format!("{}{separator}{}", self.host, self.port)
        }
    }
}

impl fmt::Display for SourceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.as_str(), self.authority())?;
        self.path.iter().try_for_each(|segment| write!(f, "/{segment}"))
    }
}

impl FromStr for SourceAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (scheme, rest) = text.split_once("://").unwrap_or_default();
        let scheme = match scheme {
            "https" => Scheme::Https,
            "ssh" => Scheme::Ssh,
            "oci" => Scheme::Oci,
            _ => return Err(AddressError::Scheme(shown(text))),
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.contains('@') {
            // The text is not repeated: it may contain a password.
            let host = authority.rsplit('@').next().unwrap_or_default();
            return Err(AddressError::Login(format!("{}://...@{}", scheme.as_str(), shown(host))));
        }
        let wrong_host = || AddressError::Host(shown(text));
        let (host, port) = match authority.split_once(':') {
            Some((host, port)) => (host, port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong_host)?),
            None => (authority, scheme.default_port()),
        };
        let mut host = host.to_ascii_lowercase();
        if !is_host(&host) {
            return Err(wrong_host());
        }
        if scheme == Scheme::Oci && DOCKER_HUB.0.contains(&host.as_str()) {
            DOCKER_HUB.1.clone_into(&mut host);
        }
        let path: Vec<String> = path.trim_end_matches('/').split('/').map(str::to_owned).collect();
        let path = if path == [""] { Vec::new() } else { path };
        if path.len() > MAX_SEGMENTS || !path.iter().all(|segment| is_segment(segment)) {
            return Err(AddressError::Path(shown(text)));
        }
        Ok(Self { scheme, host, port, path })
    }
}

fn shown(text: &str) -> String {
    text.chars().take(200).collect()
}

/// Returns whether `host` is a name or an IPv4 address of characters that the name of a secret may have.
fn is_host(host: &str) -> bool {
    let label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    host.len() <= 253 && host.split('.').all(label)
}

/// Returns whether a server can read `segment` in one way only: it is neither empty nor `..`, and nothing is encoded.
fn is_segment(segment: &str) -> bool {
    !segment.is_empty()
        && segment.len() <= 100
        && segment.bytes().any(|byte| byte != b'.')
        && segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SourceAddress {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn an_address_is_written_as_it_is_read() {
        for (text, written) in [
            ("https://github.com/acme", "https://github.com/acme"),
            ("https://GitHub.com:443/", "https://github.com"),
            ("ssh://git.corp.example:2222/team/app", "ssh://git.corp.example:2222/team/app"),
            ("oci://docker.io/acme", "oci://registry-1.docker.io/acme"),
        ] {
            assert_eq!(address(text).to_string(), written);
        }
    }

    #[test]
    fn an_address_that_can_be_read_in_two_ways_is_refused() {
        for text in [
            "github.com/acme",
            "http://github.com/acme",
            "https:///acme",
            "https://github.com//acme",
            "https://github.com/acme/../other",
            "https://github.com/acme%2f..%2fother",
            "https://github.com/acme?x=1",
            "https://github.com/a b",
            "https://git_hub.com/a",
            "https://github.com:0/a",
            "https://github.com:99999/a",
            "https://[::1]/a",
            "https://github.com/a/b/c/d/e/f/g/h/i",
        ] {
            assert!(text.parse::<SourceAddress>().is_err(), "{text}");
        }
    }

    #[test]
    fn an_error_does_not_repeat_a_password() {
        let error = "https://acme:hunter2@github.com/acme".parse::<SourceAddress>().unwrap_err().to_string();

        assert!(error.contains("github.com") && !error.contains("hunter2"), "{error}");
    }

    #[test]
    fn a_repository_is_covered_by_its_path_and_its_host_and_by_no_neighbour() {
        let repository = SourceAddress::of_git("https://bot@github.com/acme/demo.git").unwrap();

        let covering: Vec<String> = repository.covering().map(|one| one.to_string()).collect();

        assert_eq!(covering, ["https://github.com/acme/demo", "https://github.com/acme", "https://github.com"]);
        for other in ["https://github.com/acme2", "https://github.com/ac", "https://github.com:8443/acme"] {
            assert!(!address(other).covers(&repository), "{other}");
        }
        assert!(!address("ssh://github.com/acme").covers(&repository));
        assert_eq!(SourceAddress::of_git("http://github.com/acme/demo"), None);
        assert_eq!(SourceAddress::of_git("https://github.com/acme/../demo"), None);
    }

    #[test]
    fn the_name_of_a_secret_names_its_address() {
        let tenant: TenantName = "acme".parse().unwrap();
        for (text, name) in [
            ("https://github.com/acme", "fh-acme/source/https/github.com/acme"),
            ("ssh://git.corp.example:2222", "fh-acme/source/ssh/git.corp.example+2222"),
            ("oci://ghcr.io", "fh-acme/source/oci/ghcr.io"),
        ] {
            assert_eq!(address(text).secret_name(&tenant), name);
            assert_eq!(SourceAddress::of_secret(&tenant, name), Some(address(text)));
        }
        assert_eq!(SourceAddress::of_secret(&tenant, "fh-acme/build-enrolment"), None);
        assert_eq!(SourceAddress::of_secret(&tenant, "fh-acme2/source/oci/ghcr.io"), None);
    }
}
