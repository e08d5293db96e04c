//! Writes images as an OCI image layout (OCI image specification 1.1, "Image Layout"). The same layers give the same
//! bytes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;

use freehold_protocol::order::Descriptor;
use freehold_protocol::{Digest, canonical};
use serde_json::{Value, json};

use super::entry::Layer;
use crate::error::{Error, Result, ResultExt};

const CONFIG_TYPE: &str = "application/vnd.oci.image.config.v1+json";
const LAYER_TYPE: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";

/// The file that marks a directory as an image layout.
const MARK: &str = "oci-layout";

/// A layout that is written to a temporary directory. It replaces the existing layout when it is complete.
pub(super) struct Layout {
    directory: tempfile::TempDir,
    manifests: Vec<Value>,
}

impl Layout {
    /// Returns an empty layout in `dir`, which will replace the layout at `path`. Refuses to replace anything else.
    pub(super) fn new(dir: &Path, path: &Path) -> Result<Self> {
        let is_free = path.symlink_metadata().is_err() || path.join(MARK).is_file();
        if !is_free && !std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none()) {
            let shown = path.display();
            return Err(Error::conflict(format!(
                "`{shown}` is not an image that this command made; move it away, and run the command again"
            )));
        }
        let directory = tempfile::Builder::new().prefix(".image-").tempdir_in(dir);
        let directory = directory.doing(format!("write into `{}`", dir.display()))?;
        std::fs::create_dir_all(directory.path().join("blobs/sha256")).doing("make the image")?;
        Ok(Self { directory, manifests: Vec::new() })
    }

    /// Adds the image of one platform.
    pub(super) fn add(&mut self, platform: &str, env: &BTreeMap<String, String>, layers: Vec<Layer>) -> Result<()> {
        let (os, architecture) = platform.split_once('/').unwrap_or_default();
        let unpacked: Vec<&Digest> = layers.iter().map(|layer| &layer.unpacked).collect();
        let env: Vec<String> = env.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let config = self.document(
            CONFIG_TYPE,
            &json!({
                "os": os, "architecture": architecture, "config": { "Env": env },
                "rootfs": { "type": "layers", "diff_ids": unpacked },
            }),
        )?;
        let mut named = Vec::new();
        for mut layer in layers {
            let path = self.path(&layer.digest);
            let copied = File::create(&path).and_then(|mut to| io::copy(&mut layer.file, &mut to));
            copied.doing(format!("write `{}`", path.display()))?;
            named.push(Descriptor { media_type: LAYER_TYPE.to_owned(), digest: layer.digest, size: layer.size });
        }
        let manifest = json!({ "schemaVersion": 2, "mediaType": MANIFEST_TYPE, "config": config, "layers": named });
        let mut entry = json!(self.document(MANIFEST_TYPE, &manifest)?);
        if let Some(entry) = entry.as_object_mut() {
            entry.insert("platform".to_owned(), json!({ "os": os, "architecture": architecture }));
        }
        self.manifests.push(entry);
        Ok(())
    }

    /// Moves the layout to `path`, where it replaces an earlier layout; returns the digest of its image, or of the
    /// index of its images.
    pub(super) fn finish(mut self, path: &Path) -> Result<Digest> {
        let top = match self.manifests.as_slice() {
            [one] => one.clone(),
            all => json!(
                self.document(INDEX_TYPE, &json!({ "schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": all }))?
            ),
        };
        let digest = top.get("digest").cloned().and_then(|digest| serde_json::from_value(digest).ok());
        let digest = digest.ok_or_else(|| Error::internal("the image has no digest"))?;
        self.manifests.clear();
        let index = json!({ "schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": [top] });
        let written = |name: &str, value: &Value| -> Result<()> {
            let bytes = canonical::to_vec(value).map_err(|error| Error::internal(error.to_string()))?;
            std::fs::write(self.directory.path().join(name), bytes).doing("write the image")
        };
        written("index.json", &index)?;
        written(MARK, &json!({ "imageLayoutVersion": "1.0.0" }))?;
        let doing = || format!("replace `{}`", path.display());
        match std::fs::remove_dir_all(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error).doing(doing()),
            Ok(()) | Err(_) => {}
        }
        std::fs::rename(self.directory.keep(), path).doing(doing())?;
        Ok(digest)
    }

    fn document(&self, media_type: &str, value: &Value) -> Result<Descriptor> {
        let bytes = canonical::to_vec(value).map_err(|error| Error::internal(error.to_string()))?;
        let (digest, size) = (Digest::of(&bytes), bytes.len() as u64);
        std::fs::write(self.path(&digest), bytes).doing("write the image")?;
        Ok(Descriptor { media_type: media_type.to_owned(), digest, size })
    }

    fn path(&self, digest: &Digest) -> std::path::PathBuf {
        self.directory.path().join("blobs/sha256").join(digest.hex())
    }
}
