//! Reads chart repositories over HTTPS. A repository has an index of all charts and an archive of each chart (Helm,
//! "The Chart Repository Guide").

use std::path::Path;

use freehold_oci::client;
use freehold_protocol::Digest;
use freehold_runner::job::failure::Failure;
use reqwest::Url;
use serde::Deserialize;

use super::versions::{Wanted, version};
use super::yaml;
use crate::download::{self, base, checked};

/// The maximum size of an index, in bytes.
const MAX_INDEX: u64 = 64 * 1024 * 1024;
/// The maximum size of a packed chart, in bytes.
const MAX_CHART: u64 = 100 * 1024 * 1024;

/// One version of a chart in the index of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) version: String,
    pub(super) url: Url,
    /// The SHA-256 digest of the archive; some repositories omit it.
    pub(super) digest: Option<Digest>,
}

#[derive(Debug, Deserialize)]
struct Entry {
    version: Option<String>,
    digest: Option<String>,
    #[serde(default)]
    urls: Vec<String>,
}

/// Finds the newest version of `chart` in the repository at `address` that satisfies `asked`.
pub(super) async fn find(address: &str, chart: &str, asked: &str) -> Result<Found, Failure> {
    let base = base(address)?;
    let http = client()?;
    let url = base.join("index.yaml").map_err(|error| Failure::because(&format!("`{address}`"), &error))?;
    let index = download::text(&http, &url, MAX_INDEX).await?;
    let unusable = |detail: String| Failure::new(format!("`{url}` is not an index of charts: {detail}"));
    let entries = tokio::task::spawn_blocking({
        let chart = chart.to_owned();
        move || yaml::find(&index, &["entries", &chart])
    });
    let entries = entries.await.map_err(|error| Failure::because("could not read an index", &error))?;
    let entries = entries.map_err(unusable)?;
    let entries = entries.ok_or_else(|| {
        Failure::new(format!("`{address}` has no chart `{chart}`; its `index.yaml` lists the charts"))
    })?;
    let entries: Vec<Entry> = serde_json::from_value(entries).map_err(|error| unusable(error.to_string()))?;
    choose(&base, entries, asked).map_err(|why| Failure::new(format!("chart `{chart}` of `{address}` {why}")))
}

fn choose(base: &Url, entries: Vec<Entry>, asked: &str) -> Result<Found, String> {
    let wanted = Wanted::parse(asked).map_err(|why| format!("cannot be chosen: {why}"))?;
    let mut known: Vec<(semver::Version, Entry)> =
        entries.into_iter().filter_map(|entry| Some((version(entry.version.as_deref()?)?, entry))).collect();
    // The sort is stable: equal versions stay in the order of the index.
    known.sort_by(|(a, _), (b, _)| b.cmp_precedence(a));
    let exact = known.iter().position(|(_, entry)| entry.version.as_deref() == Some(asked));
    let chosen = exact.or_else(|| known.iter().position(|(version, _)| wanted.takes(version)));
    let Some((_, entry)) = chosen.map(|at| known.swap_remove(at)) else {
        let newest = known.first().and_then(|(_, entry)| entry.version.as_deref());
        return Err(match (newest, asked) {
            (None, _) => "has no version".to_owned(),
            (Some(newest), "") => {
                format!("has only pre-release versions; name a version in the config, such as `{newest}`")
            }
            (Some(newest), _) => format!("has no version `{asked}`; its newest is `{newest}`"),
        });
    };
    let version = entry.version.unwrap_or_default();
    let url = entry.urls.first().ok_or_else(|| format!("has no URL for version `{version}` in its index"))?;
    let url = base.join(url).map_err(|error| format!("has an address that is not valid, `{url}`: {error}"))?;
    let url = checked(url)?;
    let digest = entry.digest.filter(|text| !text.is_empty()).map(|text| digest(&text)).transpose()?;
    Ok(Found { version, url, digest })
}

/// Parses the digest in an index: 64 hex digits, in some indexes after `sha256:`.
fn digest(text: &str) -> Result<Digest, String> {
    let hex = text.strip_prefix("sha256:").unwrap_or(text).to_ascii_lowercase();
    format!("sha256:{hex}").parse().map_err(|_| format!("has digest `{text}`, which is not a SHA-256 digest"))
}

/// Fetches the archive of a chart into a new file at `path` and returns its digest.
pub(super) async fn fetch(found: &Found, path: &Path) -> Result<Digest, Failure> {
    let is = download::file(&client()?, &found.url, path, MAX_CHART).await?;
    match &found.digest {
        Some(expected) if *expected != is => Err(Failure::new(format!(
            "the chart at `{}` has digest `{is}`, but the index lists `{expected}`; the chart is not used",
            found.url
        ))),
        Some(_) | None => Ok(is),
    }
}

/// Refuses a chart of more than [`MAX_CHART`] bytes.
pub(super) fn check_size(from: &str, size: u64) -> Result<(), Failure> {
    if size > MAX_CHART {
        Err(Failure::new(format!("the chart at `{from}` has more than {MAX_CHART} bytes")))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(text: &str) -> Vec<Entry> {
        serde_json::from_value(yaml::read(text).unwrap()).unwrap()
    }

    const INDEX: &str = "\
- {version: 1.2.0, urls: [web-1.2.0.tgz]}
- {version: 1.10.0, urls: ['https://cdn.example.com/web-1.10.0.tgz'], digest: AAAA}
- {version: 2.0.0-rc.1, urls: [web-2.0.0-rc.1.tgz]}
- {version: nonsense, urls: [x.tgz]}
";

    #[test]
    fn the_newest_version_that_is_asked_for_is_chosen() {
        let base = base("https://charts.example.com/stable").unwrap();
        let choose = |asked: &str| choose(&base, entries(&INDEX.replace("AAAA", &"ab".repeat(32))), asked);

        assert_eq!(choose("").unwrap().version, "1.10.0");
        assert_eq!(choose("").unwrap().url.as_str(), "https://cdn.example.com/web-1.10.0.tgz");
        assert_eq!(choose("").unwrap().digest.unwrap().hex(), "ab".repeat(32));
        assert_eq!(choose("~1.2").unwrap().url.as_str(), "https://charts.example.com/stable/web-1.2.0.tgz");
        assert_eq!(choose("2.0.0-rc.1").unwrap().version, "2.0.0-rc.1");
        assert_eq!(choose("3.x").unwrap_err(), "has no version `3.x`; its newest is `2.0.0-rc.1`");
    }

    #[test]
    fn what_cannot_be_trusted_is_refused() {
        let here = base("http://127.0.0.1:8080/charts").unwrap();
        assert!(choose(&here, entries(INDEX), "1.10.0").unwrap_err().contains("not a SHA-256"));
        assert!(choose(&here, entries("- {version: 1.0.0, urls: ['http://example.com/a.tgz']}"), "").is_err());
    }
}
