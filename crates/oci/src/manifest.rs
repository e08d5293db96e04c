//! Reads manifests and indexes (OCI image specification 1.1; Docker schema 2), and lists the manifests and blobs that
//! they refer to.

use std::collections::BTreeMap;

use bytes::Bytes;
use freehold_protocol::Digest;
use freehold_protocol::order::Descriptor;
use serde::Deserialize;

/// The media types of manifests that this client accepts, as the value of the header `Accept`.
pub(super) const ACCEPTED: &str = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.docker.distribution.manifest.v2+json";

/// The largest manifest, in bytes, that is read. The distribution specification asks registries to accept 4 MiB.
pub(super) const MAX_BYTES: usize = 4 * 1024 * 1024;

/// The config blob of artifacts that need no config; `EMPTY_TYPE` is its media type (OCI image specification 1.1,
/// "Guidance for an empty descriptor").
pub const EMPTY: &[u8] = b"{}";
pub const EMPTY_TYPE: &str = "application/vnd.oci.empty.v1+json";
/// The media type of an image manifest.
pub const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";

/// The media types of indexes.
const INDEXES: [&str; 2] =
    ["application/vnd.oci.image.index.v1+json", "application/vnd.docker.distribution.manifest.list.v2+json"];

/// One manifest or index, with its exact bytes.
#[derive(Debug, Clone)]
pub struct Manifest {
    pub media_type: String,
    pub digest: Digest,
    pub bytes: Bytes,
}

/// The manifests and blobs that a manifest refers to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parts {
    /// The manifests of an index; empty for an image manifest.
    pub manifests: Vec<Descriptor>,
    /// The config and the layers of an image manifest, in this order; empty for an index.
    pub blobs: Vec<Descriptor>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    schema_version: Option<u32>,
    media_type: Option<String>,
    manifests: Option<Vec<Descriptor>>,
    config: Option<Descriptor>,
    layers: Option<Vec<Layer>>,
}

#[derive(Deserialize)]
struct Layer {
    #[serde(flatten)]
    descriptor: Descriptor,
    #[serde(default)]
    urls: Vec<String>,
}

/// The fields of a manifest that describe its purpose: the type of its artifact, its annotations, and its subject.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Purpose {
    artifact_type: Option<String>,
    #[serde(default)]
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) subject: Option<Descriptor>,
    config: Option<Descriptor>,
}

impl Purpose {
    /// Returns the type of the artifact; when it is absent, the media type of its config (distribution specification,
    /// "Listing Referrers").
    pub(super) fn artifact_type(&self) -> String {
        let own = self.artifact_type.clone().filter(|own| !own.is_empty());
        own.or_else(|| self.config.as_ref().map(|config| config.media_type.clone())).unwrap_or_default()
    }
}

impl Manifest {
    /// Parses a manifest. Its own `mediaType` takes precedence over `content_type`, the header of the response.
    ///
    /// # Errors
    /// A sentence about the mistake in the manifest.
    pub fn new(content_type: Option<&str>, bytes: Bytes) -> Result<Self, String> {
        let document: Document = serde_json::from_slice(&bytes).map_err(|error| format!("not a manifest: {error}"))?;
        let announced = content_type.and_then(|value| value.split(';').next()).map(|value| value.trim().to_owned());
        if document.schema_version == Some(1) {
            return Err(
                "it is a Docker manifest of schema 1, which is outdated and not supported; push the image again with a \
                 current tool"
                    .to_owned(),
            );
        }
        let media_type = document.media_type.or(announced).ok_or("it has no media type")?;
        if !ACCEPTED.split(',').any(|known| known.trim() == media_type) {
            return Err(format!(
                "media type `{media_type}` is not supported; push the image again with a current tool"
            ));
        }
        Ok(Self { media_type, digest: Digest::of(&bytes), bytes })
    }

    /// Returns the descriptor that names this manifest.
    pub fn descriptor(&self) -> Descriptor {
        Descriptor { media_type: self.media_type.clone(), digest: self.digest.clone(), size: self.bytes.len() as u64 }
    }

    /// Returns whether this is an OCI index or a Docker manifest list.
    pub fn is_index(&self) -> bool {
        INDEXES.contains(&self.media_type.as_str())
    }

    /// Returns the manifests and blobs that the manifest refers to.
    ///
    /// # Errors
    /// A sentence about the mistake in the manifest. It is also an error when a layer must be fetched from outside the
    /// registry (Windows base layers): a copy without this layer would not be the image.
    pub fn parts(&self) -> Result<Parts, String> {
        let document: Document = self.read()?;
        match (self.is_index(), document.manifests, document.config) {
            (true, Some(manifests), None) => Ok(Parts { manifests, blobs: Vec::new() }),
            (true, _, _) => Err("it is marked as an index, but has a config or no manifests".to_owned()),
            (false, None, Some(config)) => {
                let layers = document.layers.unwrap_or_default();
                if let Some(layer) = layers.iter().find(|layer| layer.is_elsewhere()) {
                    let Descriptor { digest, media_type, .. } = &layer.descriptor;
                    return Err(format!(
                        "layer `{digest}` (`{media_type}`) is not in the registry but fetched from elsewhere; choose \
                         platforms without such layers, or build the image on a base without them"
                    ));
                }
                let layers = layers.into_iter().map(|layer| layer.descriptor);
                Ok(Parts { manifests: Vec::new(), blobs: std::iter::once(config).chain(layers).collect() })
            }
            (false, _, _) => {
                Err("its media type is that of an image, but it has no config, or it has a list of manifests"
                    .to_owned())
            }
        }
    }

    /// Returns the purpose of the manifest.
    ///
    /// # Errors
    /// A sentence about the mistake in the manifest.
    pub(super) fn purpose(&self) -> Result<Purpose, String> {
        self.read()
    }

    fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, String> {
        serde_json::from_slice(&self.bytes).map_err(|error| format!("not a manifest: {error}"))
    }
}

impl Layer {
    fn is_elsewhere(&self) -> bool {
        let media_type = &self.descriptor.media_type;
        !self.urls.is_empty() || media_type.contains(".foreign.") || media_type.contains(".nondistributable.")
    }
}

/// Returns the tag of an artifact: `sha256-` and the first 12 hex digits of its digest. A repeated push uses the same
/// tag, and another artifact gets another tag, so that immutable tags do not conflict.
pub fn digest_tag(digest: &Digest) -> String {
    format!("sha256-{}", digest.short())
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";

    fn image(layer: &str) -> Manifest {
        let text = format!(
            r#"{{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",
            "config":{{"mediaType":"application/vnd.oci.empty.v1+json","digest":"{EMPTY}","size":2}},
            "layers":[{{"mediaType":"application/vnd.oci.image.layer.v1.tar+zstd","digest":"{EMPTY}","size":2}},{layer}]}}"#
        );
        Manifest::new(None, Bytes::from(text)).expect("manifest")
    }

    #[test]
    fn an_image_manifest_refers_to_its_config_and_layers() {
        let parts = image(&format!(r#"{{"mediaType":"a","digest":"{EMPTY}","size":2}}"#)).parts().expect("parts");

        assert!(parts.manifests.is_empty());
        assert_eq!(parts.blobs.len(), 3);
    }

    #[test]
    fn a_layer_from_elsewhere_is_refused_by_name() {
        for layer in [
            format!(
                r#"{{"mediaType":"application/vnd.docker.image.rootfs.foreign.diff.tar.gzip","digest":"{EMPTY}","size":9}}"#
            ),
            format!(
                r#"{{"mediaType":"application/vnd.oci.image.layer.nondistributable.v1.tar+gzip","digest":"{EMPTY}","size":9}}"#
            ),
            format!(r#"{{"mediaType":"a","digest":"{EMPTY}","size":9,"urls":["https://example.com/layer"]}}"#),
        ] {
            let error = image(&layer).parts().expect_err("foreign");

            assert!(error.contains(EMPTY) && error.contains("choose platforms"), "{error}");
        }
    }

    #[test]
    fn an_old_or_unknown_manifest_is_refused_with_a_reason() {
        let old = Bytes::from_static(br#"{"schemaVersion":1,"name":"x"}"#);
        let unknown = Bytes::from_static(br#"{"schemaVersion":2,"mediaType":"application/vnd.x+json"}"#);

        let old = Manifest::new(Some("application/vnd.docker.distribution.manifest.v1+prettyjws"), old);
        let unknown = Manifest::new(None, unknown);

        assert!(old.expect_err("old").contains("schema 1"));
        assert!(unknown.expect_err("unknown").contains("`application/vnd.x+json` is not supported"));
    }

    #[test]
    fn a_manifest_that_is_two_things_is_refused() {
        let text = format!(
            r#"{{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","manifests":[],
            "config":{{"mediaType":"a","digest":"{EMPTY}","size":2}}}}"#
        );
        let both = Manifest::new(None, Bytes::from(text)).expect("manifest");

        assert!(both.parts().is_err());
    }

    #[test]
    fn the_tag_of_an_artifact_comes_from_its_digest() {
        assert_eq!(digest_tag(&EMPTY.parse().expect("digest")), "sha256-44136fa355b3");
    }
}
