//! Manifests and indexes (OCI image specification 1.1; Docker schema 2): what they refer to.

use bytes::Bytes;
use freehold_protocol::Digest;
use freehold_protocol::order::Descriptor;
use serde::Deserialize;

/// The media types that a registry is asked for.
pub(super) const ACCEPTED: &str = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, \
    application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.docker.distribution.manifest.v2+json";

/// The largest manifest that is read, in bytes; the distribution specification asks registries to take 4 MiB.
pub(super) const MAX_BYTES: usize = 4 * 1024 * 1024;

/// One manifest or index, byte for byte.
#[derive(Debug, Clone)]
pub struct Manifest {
    pub media_type: String,
    pub digest: Digest,
    pub bytes: Bytes,
}

/// What a manifest refers to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parts {
    /// The manifests of an index.
    pub manifests: Vec<Descriptor>,
    /// The config and the layers of an image manifest.
    pub blobs: Vec<Descriptor>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    media_type: Option<String>,
    manifests: Option<Vec<Descriptor>>,
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
}

impl Manifest {
    /// Returns the manifest in `bytes`. Its own `mediaType` wins over the transport's `content_type`.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it.
    pub fn new(content_type: Option<&str>, bytes: Bytes) -> Result<Self, String> {
        let document: Document = serde_json::from_slice(&bytes).map_err(|error| format!("not a manifest: {error}"))?;
        let announced = content_type.and_then(|value| value.split(';').next()).map(|value| value.trim().to_owned());
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

    /// Returns what the manifest refers to. Layers that are by definition fetched from elsewhere (Windows base layers)
    /// are left out, as registries do not hold them.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it.
    pub fn parts(&self) -> Result<Parts, String> {
        let document: Document =
            serde_json::from_slice(&self.bytes).map_err(|error| format!("not a manifest: {error}"))?;
        if let Some(manifests) = document.manifests {
            return Ok(Parts { manifests, blobs: Vec::new() });
        }
        let config = document.config.ok_or("it has neither a config nor manifests")?;
        let elsewhere = |layer: &Descriptor| {
            layer.media_type.contains(".foreign.") || layer.media_type.contains(".nondistributable.")
        };
        let layers = document.layers.unwrap_or_default().into_iter().filter(|layer| !elsewhere(layer));
        Ok(Parts { manifests: Vec::new(), blobs: std::iter::once(config).chain(layers).collect() })
    }
}

/// Returns the tag that an artifact gets: derived from its digest, so that immutable tags never stand in the way.
pub fn digest_tag(digest: &Digest) -> String {
    format!("sha256-{}", digest.hex().get(..12).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";

    #[test]
    fn an_image_manifest_refers_to_its_config_and_layers_but_not_to_foreign_ones() {
        let text = format!(
            r#"{{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",
            "config":{{"mediaType":"application/vnd.oci.empty.v1+json","digest":"{EMPTY}","size":2}},
            "layers":[{{"mediaType":"a","digest":"{EMPTY}","size":2}},
              {{"mediaType":"application/vnd.docker.image.rootfs.foreign.diff.tar.gzip","digest":"{EMPTY}","size":9}}]}}"#
        );

        let manifest = Manifest::new(None, Bytes::from(text)).expect("manifest");
        let parts = manifest.parts().expect("parts");

        assert!(parts.manifests.is_empty());
        assert_eq!(parts.blobs.len(), 2);
    }

    #[test]
    fn an_old_or_unknown_manifest_is_refused_with_a_reason() {
        let old = Bytes::from_static(br#"{"schemaVersion":1,"name":"x"}"#);

        let error = Manifest::new(Some("application/vnd.docker.distribution.manifest.v1+json"), old).expect_err("old");

        assert!(error.contains("not supported"), "{error}");
    }

    #[test]
    fn the_tag_of_an_artifact_comes_from_its_digest() {
        assert_eq!(digest_tag(&EMPTY.parse().expect("digest")), "sha256-44136fa355b3");
    }
}
