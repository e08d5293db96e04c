//! Chooses platforms of an image, and builds a new index with the chosen platforms only.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use bytes::Bytes;
use freehold_protocol::Digest;
use serde::Deserialize;
use serde_json::Value;

use super::Manifest;

/// An operating system and a processor architecture, such as `linux/arm64` or `linux/arm/v7`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Platform {
    pub os: String,
    pub architecture: String,
    pub variant: Option<String>,
}

/// The platforms of an image that a copy includes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Platforms {
    #[default]
    All,
    Only(BTreeSet<Platform>),
}

/// The reason why platforms cannot be chosen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlatformError {
    /// The text is not `os/architecture` with an optional variant.
    #[error("`{0}` is not a platform; expected `os/architecture` or `os/architecture/variant`, such as `linux/amd64`")]
    Invalid(String),
    /// The image does not have the platform `wanted`.
    #[error("the image has no platform `{wanted}`; it has {had}")]
    Missing { wanted: Platform, had: String },
    /// The index or config breaks the specification.
    #[error("the platforms of the image cannot be read: {0}")]
    Unreadable(String),
}

impl FromStr for Platform {
    type Err = PlatformError;

    fn from_str(text: &str) -> Result<Self, PlatformError> {
        let mut parts = text.split('/');
        let mut part = || parts.next().filter(|part| !part.is_empty()).map(str::to_owned);
        let (os, architecture, variant) = (part(), part(), part());
        match (os, architecture) {
            (Some(os), Some(architecture)) if text.split('/').count() == 2 + usize::from(variant.is_some()) => {
                Ok(Self { os, architecture, variant })
            }
            _ => Err(PlatformError::Invalid(text.chars().take(80).collect())),
        }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)?;
        self.variant.iter().try_for_each(|variant| write!(f, "/{variant}"))
    }
}

impl Platform {
    /// Returns whether `found` is this platform. A platform without a variant matches every variant. If `found` is
    /// `arm64` without a variant, it counts as `arm64/v8`.
    fn matches(&self, found: &Found) -> bool {
        let usual = (self.architecture == "arm64").then_some("v8");
        let found_variant = found.variant.as_deref().filter(|variant| !variant.is_empty()).or(usual);
        let variant = self.variant.as_deref().is_none_or(|wanted| Some(wanted) == found_variant);
        self.os == found.os && self.architecture == found.architecture && variant
    }
}

/// A platform in the form in which indexes and configs contain it.
#[derive(Debug, Clone, Deserialize)]
struct Found {
    os: String,
    architecture: String,
    variant: Option<String>,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)?;
        self.variant.iter().filter(|variant| !variant.is_empty()).try_for_each(|variant| write!(f, "/{variant}"))
    }
}

/// The fields of an index entry that decide whether it is chosen.
#[derive(Deserialize)]
struct Entry {
    digest: Digest,
    platform: Option<Found>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

impl Entry {
    /// Returns the digest of the manifest that this entry attests; `None` when it is not an attestation (BuildKit,
    /// "Image attestation storage").
    fn attests(&self) -> Option<&str> {
        let of = self.annotations.get("vnd.docker.reference.digest");
        of.filter(|_| self.annotations.get("vnd.docker.reference.type").is_some_and(|t| t == "attestation-manifest"))
            .map(String::as_str)
    }
}

/// Returns the digest of the image in `index` that is for the platform `wanted`.
///
/// # Errors
/// [`PlatformError`] when `index` does not have the platform.
pub fn manifest_for(index: &Manifest, wanted: &Platform) -> Result<Digest, PlatformError> {
    #[derive(Deserialize)]
    struct Index {
        manifests: Vec<Entry>,
    }
    let index: Index =
        serde_json::from_slice(&index.bytes).map_err(|error| PlatformError::Unreadable(error.to_string()))?;
    let images: Vec<(&Entry, &Found)> = index
        .manifests
        .iter()
        .filter(|entry| entry.attests().is_none())
        .filter_map(|entry| Some((entry, entry.platform.as_ref()?)))
        .collect();
    let found: Vec<&Found> = images.iter().map(|(_, found)| *found).collect();
    let image = images.iter().find(|(_, found)| wanted.matches(found));
    image.map(|(entry, _)| entry.digest.clone()).ok_or_else(|| missing(wanted, &found))
}

/// Returns a new index with the chosen platforms of `index` and the attestations of their images; `None` when all
/// platforms are chosen. The same index and the same choice always give the same bytes.
///
/// # Errors
/// [`PlatformError`] when `index` does not have a chosen platform.
pub(crate) fn choose(index: &Manifest, chosen: &BTreeSet<Platform>) -> Result<Option<Manifest>, PlatformError> {
    let unreadable = |error: serde_json::Error| PlatformError::Unreadable(error.to_string());
    let mut document: Value = serde_json::from_slice(&index.bytes).map_err(unreadable)?;
    let list = document.get_mut("manifests").and_then(Value::as_array_mut);
    let list = list.ok_or_else(|| PlatformError::Unreadable("the index has no manifests".to_owned()))?;
    let entries = list.iter().map(Entry::deserialize).collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
    let found: Vec<&Found> =
        entries.iter().filter(|entry| entry.attests().is_none()).filter_map(|entry| entry.platform.as_ref()).collect();
    have_all(chosen, &found)?;
    let images: BTreeSet<&str> = entries
        .iter()
        .filter(|entry| entry.attests().is_none())
        .filter(|entry| entry.platform.as_ref().is_some_and(|found| chosen.iter().any(|one| one.matches(found))))
        .map(|entry| entry.digest.as_str())
        .collect();
    let kept = |entry: &Entry| images.contains(entry.attests().unwrap_or(entry.digest.as_str()));
    if entries.iter().all(kept) {
        return Ok(None);
    }
    let mut keep = entries.iter().map(kept);
    list.retain(|_| keep.next().unwrap_or(false));
    let bytes = Bytes::from(sorted(document).to_string());
    Manifest::new(Some(&index.media_type), bytes).map(Some).map_err(PlatformError::Unreadable)
}

/// Checks that an image has the chosen platforms; `config` is its config, in JSON.
///
/// # Errors
/// [`PlatformError`] when the image lacks a chosen platform, or the config cannot be read.
pub(crate) fn check_config(config: &[u8], chosen: &BTreeSet<Platform>) -> Result<(), PlatformError> {
    let found: Found = serde_json::from_slice(config).map_err(|error| PlatformError::Unreadable(error.to_string()))?;
    have_all(chosen, &[&found])
}

fn have_all(chosen: &BTreeSet<Platform>, found: &[&Found]) -> Result<(), PlatformError> {
    let absent = chosen.iter().find(|wanted| !found.iter().any(|found| wanted.matches(found)));
    absent.map_or(Ok(()), |wanted| Err(missing(wanted, found)))
}

fn missing(wanted: &Platform, found: &[&Found]) -> PlatformError {
    let names: BTreeSet<String> = found.iter().map(|found| format!("`{found}`")).collect();
    let had = if names.is_empty() {
        "no named platform".to_owned()
    } else {
        names.into_iter().collect::<Vec<_>>().join(", ")
    };
    PlatformError::Missing { wanted: wanted.clone(), had }
}

/// Returns `value` with the keys of all objects sorted, independent of the order that the JSON library keeps.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let map: BTreeMap<String, Value> = map.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            Value::Object(map.into_iter().collect())
        }
        Value::Array(all) => Value::Array(all.into_iter().map(sorted).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn digest(name: &str) -> Digest {
        Digest::of(name.as_bytes())
    }

    fn index() -> Manifest {
        let entry = |name: &str, platform: Value| json!({ "mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": digest(name), "size": 7, "platform": platform });
        let mut attestation = entry("attestation", json!({ "os": "unknown", "architecture": "unknown" }));
        attestation["annotations"] = json!({ "vnd.docker.reference.digest": digest("amd64"), "vnd.docker.reference.type": "attestation-manifest" });
        let document = json!({ "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
            "annotations": { "b": "2", "a": "1" },
            "manifests": [entry("amd64", json!({ "os": "linux", "architecture": "amd64" })),
                entry("arm64", json!({ "os": "linux", "architecture": "arm64", "variant": "v8" })), attestation] });
        Manifest::new(None, Bytes::from(document.to_string())).expect("index")
    }

    fn chosen(names: &[&str]) -> BTreeSet<Platform> {
        names.iter().map(|name| name.parse().expect("platform")).collect()
    }

    #[test]
    fn a_chosen_platform_keeps_its_attestation_and_the_rest_of_the_index() {
        let one = choose(&index(), &chosen(&["linux/amd64"])).expect("choice").expect("a new index");
        let two = choose(&index(), &chosen(&["linux/amd64"])).expect("choice").expect("a new index");

        assert_eq!(one.digest, two.digest);
        let kept: Vec<Digest> = one.parts().expect("parts").manifests.into_iter().map(|m| m.digest).collect();
        assert_eq!(kept, [digest("amd64"), digest("attestation")]);
        assert!(String::from_utf8_lossy(&one.bytes).contains(r#""annotations":{"a":"1","b":"2"}"#));
    }

    #[test]
    fn the_image_of_a_platform_is_found_by_its_usual_variant_too() {
        let found = |wanted: &str| manifest_for(&index(), &wanted.parse().expect("platform"));

        assert_eq!(found("linux/arm64").expect("found"), digest("arm64"));
        assert_eq!(found("linux/arm64/v8").expect("found"), digest("arm64"));
        assert_eq!(found("linux/amd64").expect("found"), digest("amd64"));
        assert!(found("unknown/unknown").is_err(), "an attestation is not an image");

        let entry = json!({ "mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": digest("arm64"), "size": 7,
            "platform": { "os": "linux", "architecture": "arm64", "variant": "" } });
        let plain =
            json!({ "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [entry] });
        let plain = Manifest::new(None, Bytes::from(plain.to_string())).expect("index");
        assert_eq!(manifest_for(&plain, &"linux/arm64/v8".parse().expect("platform")).expect("found"), digest("arm64"));
    }

    #[test]
    fn when_all_are_chosen_the_index_stays_as_it_is() {
        assert!(choose(&index(), &chosen(&["linux/arm64", "linux/amd64"])).expect("choice").is_none());
        assert!(choose(&index(), &chosen(&["linux/arm64/v8"])).expect("choice").is_some());
    }

    #[test]
    fn a_platform_that_is_not_there_is_named_with_those_that_are() {
        let error = choose(&index(), &chosen(&["linux/s390x"])).expect_err("missing");

        assert_eq!(
            error.to_string(),
            "the image has no platform `linux/s390x`; it has `linux/amd64`, `linux/arm64/v8`"
        );
        assert!(check_config(br#"{"os":"linux","architecture":"amd64"}"#, &chosen(&["linux/amd64"])).is_ok());
        assert!(check_config(br#"{"os":"linux","architecture":"amd64"}"#, &chosen(&["linux/arm64"])).is_err());
    }

    #[test]
    fn a_platform_is_written_with_slashes() {
        assert_eq!(chosen(&["linux/arm/v7"]).first().expect("one").to_string(), "linux/arm/v7");
        for wrong in ["linux", "linux/", "/amd64", "a/b/c/d", "a/b/"] {
            assert!(wrong.parse::<Platform>().is_err(), "{wrong}");
        }
    }
}
