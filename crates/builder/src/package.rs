//! Makes an artifact from files: an OCI 1.1 image manifest with an artifact type, a config (usually empty) and layers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use freehold_oci::{
    BlobSource, EMPTY, EMPTY_TYPE, MANIFEST_TYPE, Manifest, Repository, missing_blobs, push_manifests,
    push_missing_blobs,
};
use freehold_protocol::Digest;
use freehold_protocol::order::{Artifact, BuildArtifact, Descriptor};
use freehold_runner::job::bucket::file_digest;
use freehold_runner::job::failure::Failure;
use freehold_runner::job::{Job, sdk_config};
use freehold_runner::registry::ecr_repository;
use serde::Serialize;

/// The config of an artifact that does not need a config.
const NO_CONFIG: Config = Config { media_type: EMPTY_TYPE, bytes: Bytes::from_static(EMPTY) };

/// The usual file names of a CloudFormation template.
const TEMPLATES: [&str; 3] = ["template.yaml", "template.yml", "template.json"];

/// The config blob of an artifact.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) media_type: &'static str,
    pub(crate) bytes: Bytes,
}

/// A file that becomes a layer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layer<'a> {
    pub(crate) path: &'a Path,
    pub(crate) media_type: &'a str,
}

impl Layer<'_> {
    fn descriptor(&self) -> std::io::Result<Descriptor> {
        let size = std::fs::metadata(self.path)?.len();
        Ok(Descriptor { media_type: self.media_type.to_owned(), digest: file_digest(self.path)?, size })
    }
}

/// Pushes the file `layer` as the artifact of `work`.
pub(crate) async fn push_layer(
    job: &Job,
    work: &BuildArtifact,
    layer: &Path,
    layer_type: &str,
    artifact_type: &str,
) -> Result<Artifact, Failure> {
    let repository = ecr_repository(&sdk_config(job).await, &work.repository).await?;
    let layers = [Layer { path: layer, media_type: layer_type }];
    push_with(&repository, NO_CONFIG, &layers, Some(artifact_type), &BTreeMap::new()).await
}

/// Pushes files as layers, with a config and annotations. Files with the same content become one layer.
pub(crate) async fn push_with(
    repository: &Repository,
    config: Config,
    layers: &[Layer<'_>],
    artifact_type: Option<&str>,
    annotations: &BTreeMap<&str, &str>,
) -> Result<Artifact, Failure> {
    let unreadable = |error: std::io::Error| Failure::because("could not read the result of the build", &error);
    let mut layer_blobs: Vec<Descriptor> = Vec::new();
    let mut sources: BTreeMap<Digest, BlobSource> = BTreeMap::new();
    for layer in layers {
        let blob = layer.descriptor().map_err(unreadable)?;
        if sources.insert(blob.digest.clone(), BlobSource::File(layer.path.to_owned())).is_none() {
            layer_blobs.push(blob);
        }
    }
    let config_blob = Descriptor {
        media_type: config.media_type.to_owned(),
        digest: Digest::of(&config.bytes),
        size: config.bytes.len() as u64,
    };
    sources.insert(config_blob.digest.clone(), BlobSource::Bytes(config.bytes));
    let manifest = manifest(&config_blob, &layer_blobs, artifact_type, annotations)?;
    let blobs: Vec<Descriptor> = std::iter::once(config_blob).chain(layer_blobs).collect();
    let missing = missing_blobs(repository, &blobs).await?;
    let missing = missing.into_iter().filter_map(|blob| Some((blob.clone(), sources.get(&blob.digest)?.clone())));
    push_missing_blobs(repository, missing.collect()).await?;
    push_manifests(repository, std::slice::from_ref(&manifest)).await?;
    let top = manifest.descriptor();
    Ok(Artifact {
        digest: top.digest.clone(),
        media_type: top.media_type.clone(),
        manifests: vec![top],
        blobs,
        provenance: None,
    })
}

/// An image manifest as it is serialized to JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: &'a BTreeMap<&'a str, &'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact_type: Option<&'a str>,
    config: &'a Descriptor,
    layers: &'a [Descriptor],
    media_type: &'static str,
    schema_version: u8,
}

/// Returns the manifest. The same arguments always give the same bytes.
fn manifest(
    config: &Descriptor,
    layers: &[Descriptor],
    artifact_type: Option<&str>,
    annotations: &BTreeMap<&str, &str>,
) -> Result<Manifest, Failure> {
    let document =
        Document { annotations, artifact_type, config, layers, media_type: MANIFEST_TYPE, schema_version: 2 };
    let document = serde_json::to_string(&document);
    let document = document.map_err(|error| Failure::because("could not write a manifest", &error))?;
    Manifest::new(Some(MANIFEST_TYPE), Bytes::from(document))
        .map_err(|detail| Failure::new(format!("could not make a manifest: {detail}")))
}

/// Returns the CloudFormation template in `directory`: the file with a usual name, or the only file.
pub(crate) fn find_template(directory: &Path) -> Result<PathBuf, String> {
    let named: Vec<PathBuf> = TEMPLATES.iter().map(|name| directory.join(name)).filter(|path| is_file(path)).collect();
    let all = || -> std::io::Result<Vec<PathBuf>> {
        let entries = std::fs::read_dir(directory)?.collect::<Result<Vec<_>, _>>()?;
        Ok(entries.iter().map(std::fs::DirEntry::path).filter(|path| is_file(path)).collect())
    };
    let found =
        if named.is_empty() { all().map_err(|error| format!("could not list the source: {error}"))? } else { named };
    match found.as_slice() {
        [only] => Ok(only.clone()),
        [] => Err("the source holds no template; add a file `template.yaml`".to_owned()),
        _ => Err(
            "the source holds several files and none is called `template.yaml`, `template.yml` or `template.json`; \
                  give the template one of these names"
                .to_owned(),
        ),
    }
}

/// Returns whether `path` is a plain file. Returns false for a link, which may point outside of the source.
fn is_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|data| data.is_file())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn descriptor(bytes: &[u8]) -> Descriptor {
        Descriptor { media_type: "x".into(), digest: Digest::of(bytes), size: bytes.len() as u64 }
    }

    #[test]
    fn the_same_layer_gives_the_same_artifact() {
        let one = manifest(&descriptor(EMPTY), &[descriptor(b"a")], Some("t"), &BTreeMap::new()).unwrap();
        let two = manifest(&descriptor(EMPTY), &[descriptor(b"a")], Some("t"), &BTreeMap::new()).unwrap();

        assert_eq!(one.digest, two.digest);
        assert_eq!(one.parts().unwrap().blobs.len(), 2);
        assert_eq!(
            descriptor(EMPTY).digest.as_str(),
            "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
        );
    }

    #[test]
    fn the_template_is_the_one_with_the_usual_name_or_the_only_file() {
        let directory = tempfile::tempdir().unwrap();
        assert!(find_template(directory.path()).is_err());

        fs::write(directory.path().join("network.yaml"), "").unwrap();
        assert!(find_template(directory.path()).unwrap().ends_with("network.yaml"));

        fs::write(directory.path().join("README.md"), "").unwrap();
        assert!(find_template(directory.path()).is_err());

        fs::write(directory.path().join("template.yaml"), "").unwrap();
        assert!(find_template(directory.path()).unwrap().ends_with("template.yaml"));
    }
}
