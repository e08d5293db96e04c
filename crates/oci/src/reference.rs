//! Parses image references as people write them: `host/name:tag`, `host/name@sha256:...`, with Docker Hub's short
//! forms.

use std::fmt;
use std::str::FromStr;

use freehold_protocol::Digest;

/// The name of one image in one registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The registry's host, with a port if the reference has one.
    pub host: String,
    /// The repository's name.
    pub repository: String,
    pub version: Version,
}

/// The tag or the digest of an image in its repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Version {
    Tag(String),
    Digest(Digest),
}

/// The error for a text that is not an image reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an image reference; expected `host/name:tag` or `host/name@sha256:<64 hex digits>`")]
pub struct ReferenceError(String);

/// The API host for images of `docker.io`.
const DOCKER_HUB: &str = "registry-1.docker.io";

impl FromStr for Reference {
    type Err = ReferenceError;

    /// Parses a reference. A digest takes precedence over a tag when the text has both.
    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        let error = || ReferenceError(text.chars().take(200).collect());
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest.parse::<Digest>().map_err(|_| error())?)),
            None => (text, None),
        };
        let (host, rest) = split_host(rest);
        let (name, tag) = match rest.rsplit_once(':') {
            Some((name, tag)) => (name, Some(tag)),
            None => (rest, None),
        };
        if !tag.is_none_or(is_tag) || !is_name(name) {
            return Err(error());
        }
        let version = match (digest, tag) {
            (Some(digest), _) => Version::Digest(digest),
            (None, Some(tag)) => Version::Tag(tag.to_owned()),
            (None, None) => Version::Tag("latest".to_owned()),
        };
        let repository =
            if host == DOCKER_HUB && !name.contains('/') { format!("library/{name}") } else { name.to_owned() };
        Ok(Self { host: host.to_owned(), repository, version })
    }
}

/// Splits `text` into the host and the rest. The part before the first slash is a host when it has a dot or a port, or
/// is `localhost`; otherwise the host is Docker Hub.
fn split_host(text: &str) -> (&str, &str) {
    let Some((first, rest)) = text.split_once('/') else { return (DOCKER_HUB, text) };
    let is_host = first.contains('.') || first.contains(':') || first == "localhost";
    match first {
        "docker.io" | "index.docker.io" => (DOCKER_HUB, rest),
        _ if is_host => (first, rest),
        _ => (DOCKER_HUB, text),
    }
}

/// Returns whether `name` has the form of a repository name (OCI distribution specification, "Pulling manifests").
fn is_name(name: &str) -> bool {
    let part = |part: &str| {
        let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        edge(part.chars().next())
            && edge(part.chars().last())
            && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b))
    };
    !name.is_empty() && name.len() <= 255 && name.split('/').all(part)
}

/// Returns whether `tag` has the form of a tag (OCI distribution specification, "Pulling manifests").
fn is_tag(tag: &str) -> bool {
    (1..=128).contains(&tag.len())
        && tag.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
        && !tag.starts_with(['.', '-'])
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tag(tag) => f.write_str(tag),
            Self::Digest(digest) => write!(f, "{digest}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_read_as_people_write_them() {
        let digest = Digest::of(b"x");
        for (text, host, repository, version) in [
            ("nginx", DOCKER_HUB, "library/nginx", "latest"),
            ("grafana/grafana:11.1.0", DOCKER_HUB, "grafana/grafana", "11.1.0"),
            ("docker.io/nginx:1", DOCKER_HUB, "library/nginx", "1"),
            ("ghcr.io/a/b/c:v1", "ghcr.io", "a/b/c", "v1"),
            ("localhost:5000/a", "localhost:5000", "a", "latest"),
            ("public.ecr.aws/x/y:1", "public.ecr.aws", "x/y", "1"),
            (&format!("ghcr.io/a/b:v1@{digest}"), "ghcr.io", "a/b", digest.as_str()),
        ] {
            let reference: Reference = text.parse().expect(text);

            assert_eq!((reference.host.as_str(), reference.repository.as_str()), (host, repository), "{text}");
            assert_eq!(reference.version.to_string(), version, "{text}");
        }
    }

    #[test]
    fn a_text_that_is_not_a_reference_is_refused() {
        for text in ["", "UPPER/x", "a/../b", "ghcr.io/a:", "ghcr.io/a@sha256:12", "ghcr.io/a:b c", "ghcr.io//a"] {
            assert!(text.parse::<Reference>().is_err(), "{text}");
        }
    }
}
