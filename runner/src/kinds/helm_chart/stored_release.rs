//! Reads a release as Helm stores it in the cluster: its state, and the objects of its newest revision. No program runs.
//!
//! An object with the label `owner=helm` has the revision in `data.release`: JSON, compressed with gzip, as base64
//! (Helm documentation, "Storage backends"). A Secret encodes this text in base64 once more.

use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use serde_json::Value;

use super::release::{Driver, Release};
use super::releases;
use crate::job::failure::Failure;
use crate::kubernetes::{Api, Id, Object, read_except};

/// The maximum size of a revision, in bytes. A compressed one is an object of the cluster, which has at most 1.5 MB.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The newest revision of a release.
pub(in crate::kinds) struct StoredRelease {
    /// The status as Helm names it, such as `deployed` or `failed`.
    pub(in crate::kinds) status: String,
    pub(in crate::kinds) objects: Vec<Object>,
}

/// Returns the newest revision of the release with this name, namespace and storage driver; `None` when there is none.
pub(in crate::kinds) async fn newest(
    api: &Api,
    [name, namespace, driver]: [&str; 3],
) -> Result<Option<StoredRelease>, Failure> {
    let driver = Driver::of(driver);
    let release = Release { name: name.to_owned(), namespace: namespace.to_owned(), driver };
    let Some(revision) = releases::read(api, &release).await?.pop() else { return Ok(None) };
    let kind = match driver {
        Driver::Secret => "Secret",
        Driver::ConfigMap => "ConfigMap",
    };
    let id = Id {
        api_version: "v1".to_owned(),
        kind: kind.to_owned(),
        namespace: Some(namespace.to_owned()),
        name: format!("sh.helm.release.v1.{name}.v{}", revision.number),
    };
    let Some(stored) = api.get(&id).await? else { return Ok(None) };
    let unreadable = |why: String| Failure::new(format!("release `{name}`, revision {}: {why}", revision.number));
    let manifest = manifest(&stored, driver).map_err(unreadable)?;
    let is_hook = |object: &Value| object.pointer("/metadata/annotations/helm.sh~1hook").is_some();
    let mut objects = read_except("the release", &manifest, is_hook).map_err(unreadable)?;
    for object in &mut objects {
        let resource = api.resource(&object.id.api_version, &object.id.kind).await?;
        let own = object.id.namespace.clone().unwrap_or_else(|| namespace.to_owned());
        object.place_in(resource.is_none_or(|resource| resource.namespaced).then_some(own.as_str()));
    }
    Ok(Some(StoredRelease { status: revision.status, objects }))
}

/// Returns the objects of a stored revision as YAML.
fn manifest(stored: &Value, driver: Driver) -> Result<String, String> {
    let text = stored.pointer("/data/release").and_then(Value::as_str).ok_or("it has no `data.release`")?;
    let decode = |text: &[u8]| STANDARD.decode(text).map_err(|error| format!("it is not base64: {error}"));
    let mut bytes = decode(text.as_bytes())?;
    if driver == Driver::Secret {
        bytes = decode(&bytes)?;
    }
    let mut json = Vec::new();
    let read = GzDecoder::new(bytes.as_slice()).take(MAX_BYTES).read_to_end(&mut json);
    read.map_err(|error| format!("it cannot be unpacked: {error}"))?;
    let revision: Value = serde_json::from_slice(&json).map_err(|error| format!("it is not JSON: {error}"))?;
    revision.get("manifest").and_then(Value::as_str).map(str::to_owned).ok_or_else(|| "it has no manifest".to_owned())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use serde_json::json;

    use super::*;

    fn packed() -> String {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(json!({ "name": "web", "manifest": "kind: A\n" }).to_string().as_bytes()).unwrap();
        STANDARD.encode(gzip.finish().unwrap())
    }

    #[test]
    fn a_revision_is_read_from_either_kind_of_object() {
        let in_map = json!({ "data": { "release": packed() } });
        let in_secret = json!({ "data": { "release": STANDARD.encode(packed()) } });

        assert_eq!(manifest(&in_map, Driver::ConfigMap).as_deref(), Ok("kind: A\n"));
        assert_eq!(manifest(&in_secret, Driver::Secret).as_deref(), Ok("kind: A\n"));
    }

    #[test]
    fn what_is_no_revision_says_why() {
        let of = |release: Value| manifest(&json!({ "data": { "release": release } }), Driver::ConfigMap).unwrap_err();

        assert_eq!(of(Value::Null), "it has no `data.release`");
        assert!(of("!".into()).starts_with("it is not base64"));
        assert!(of(STANDARD.encode("plain").into()).starts_with("it cannot be unpacked"));
    }
}
