//! Version names that people type: a number, a digest, or the beginning of a digest.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use freehold_client::calls;
use freehold_protocol::api::VersionView;
use freehold_protocol::{AppName, Digest};

use crate::api::Api;
use crate::error::{Error, Result};

/// The minimum length of the beginning of a digest, in hex digits. A shorter text could also be a number.
const SHORTEST_PREFIX: usize = 6;

/// The name of a version as the user types it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum VersionName {
    Digest(Digest),
    Number(u64),
    /// The first hex digits of a digest.
    Prefix(String),
}

impl Display for VersionName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Digest(digest) => digest.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Prefix(digits) => write!(f, "sha256:{digits}..."),
        }
    }
}

impl FromStr for VersionName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.strip_prefix("sha256:").unwrap_or(text);
        if let Ok(digest) = format!("sha256:{digits}").parse() {
            return Ok(Self::Digest(digest));
        }
        if let (Ok(number), true) = (text.parse(), text.len() < SHORTEST_PREFIX) {
            return Ok(Self::Number(number));
        }
        let hex = digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if hex && (SHORTEST_PREFIX..64).contains(&digits.len()) {
            return Ok(Self::Prefix(digits.to_owned()));
        }
        Err(format!(
            "expected a version's number, its digest, or at least the first {SHORTEST_PREFIX} digits of the digest"
        ))
    }
}

impl VersionName {
    /// Returns the digest of the version of `app` that this name refers to.
    pub(crate) async fn resolve(&self, api: &Api, app: &AppName) -> Result<Digest> {
        if let Self::Digest(digest) = self {
            return Ok(digest.clone());
        }
        let all: Vec<VersionView> = api.list(calls::list_versions(app)).await?;
        self.among(&all, app)
    }

    fn among(&self, all: &[VersionView], app: &AppName) -> Result<Digest> {
        let fits = |view: &&VersionView| match self {
            Self::Digest(digest) => view.version == *digest,
            Self::Number(number) => view.number == *number,
            Self::Prefix(digits) => view.version.hex().starts_with(digits),
        };
        let mut found = all.iter().filter(fits);
        match (found.next(), found.next()) {
            (Some(view), None) => Ok(view.version.clone()),
            (Some(_), Some(_)) => Err(Error::invalid(format!(
                "app `{app}` has several versions `{self}`; give more digits of the digest"
            ))),
            (None, _) => {
                Err(Error::not_found(format!("app `{app}` has no version `{self}`; see `freehold app versions {app}`")))
            }
        }
    }
}

/// Returns the digest of the version that `name` refers to, or of the latest version if `name` is absent.
pub(super) async fn or_latest(api: &Api, app: &AppName, name: Option<&VersionName>) -> Result<Digest> {
    match name {
        Some(name) => name.resolve(api, app).await,
        None => Ok(api.send(calls::show_app(app)).await?.latest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(text: &str, number: u64) -> VersionView {
        let version = Digest::of(text.as_bytes());
        VersionView { app: "web".parse().unwrap(), version, number, created_at: Default::default(), components: 1 }
    }

    #[test]
    fn a_version_is_named_by_number_digest_or_prefix() {
        let all = [view("a", 1), view("b", 2)];
        let app = "web".parse().unwrap();
        let digest = &all[1].version;
        for name in ["2", digest.as_str(), digest.hex(), &digest.hex()[..8]] {
            let name: VersionName = name.parse().unwrap();

            assert_eq!(name.among(&all, &app).unwrap(), *digest, "{name:?}");
        }
    }

    #[test]
    fn a_name_that_fits_several_versions_is_refused_with_what_was_typed() {
        let all = [view("a", 1), view("a", 2)];
        let name: VersionName = all[0].version.hex()[..6].parse().unwrap();

        let error = name.among(&all, &"web".parse().unwrap()).unwrap_err();

        let typed = &all[0].version.hex()[..6];
        let expected = format!("app `web` has several versions `sha256:{typed}...`; give more digits of the digest");
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn an_unknown_version_names_the_way_out() {
        let error = VersionName::Number(9).among(&[view("a", 1)], &"web".parse().unwrap()).unwrap_err();

        assert_eq!(error.to_string(), "app `web` has no version `9`; see `freehold app versions web`");
        assert!("latest".parse::<VersionName>().is_err());
        assert!("abc".parse::<VersionName>().is_err());
    }
}
