//! Puts one file into an artifact: an OCI image manifest 1.1 with an artifact type, an empty config and one layer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use freehold_oci::{
    BlobSource, EMPTY, EMPTY_TYPE, MANIFEST_TYPE, Manifest, Repository, missing_blobs, push_manifests,
    push_missing_blobs,
};
use freehold_protocol::Digest;
use freehold_protocol::order::{Artifact, BuildArtifact, Descriptor};
use freehold_runner::kinds::bucket::file_digest;
use freehold_runner::kinds::failure::Failure;
use freehold_runner::kinds::result::sdk_config;
use freehold_runner::registry::ecr_repository;
use freehold_runner::work::job::Job;
use serde::Serialize;

/// The config of an artifact that does not need a config.
const NO_CONFIG: Config = Config { media_type: EMPTY_TYPE, bytes: Bytes::from_static(EMPTY) };

/// The usual file names of a template.
const TEMPLATES: [&str; 3] = ["template.yaml", "template.yml", "template.json"];

/// The config of an artifact, which describes its layer.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) media_type: &'static str,
    pub(crate) bytes: Bytes,
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
    push_with(&repository, NO_CONFIG, layer, layer_type, Some(artifact_type), &BTreeMap::new()).await
}

/// Pushes the file `layer` with a config and annotations.
pub(crate) async fn push_with(
    repository: &Repository,
    config: Config,
    layer: &Path,
    layer_type: &str,
    artifact_type: Option<&str>,
    annotations: &BTreeMap<&str, &str>,
) -> Result<Artifact, Failure> {
    let unreadable = |error: std::io::Error| Failure::because("could not read what was built", &error);
    let size = std::fs::metadata(layer).map_err(unreadable)?.len();
    let layer_blob =
        Descriptor { media_type: layer_type.to_owned(), digest: file_digest(layer).map_err(unreadable)?, size };
    let config_blob = Descriptor {
        media_type: config.media_type.to_owned(),
        digest: Digest::of(&config.bytes),
        size: config.bytes.len() as u64,
    };
    let manifest = manifest(&config_blob, &layer_blob, artifact_type, annotations)?;
    let blobs = vec![config_blob, layer_blob];
    let missing = missing_blobs(repository, &blobs).await?;
    let source = |blob: &Descriptor| {
        if blob.media_type == config.media_type {
            BlobSource::Bytes(config.bytes.clone())
        } else {
            BlobSource::File(layer.to_owned())
        }
    };
    push_missing_blobs(repository, missing.into_iter().map(|blob| (blob.clone(), source(&blob))).collect()).await?;
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

/// An image manifest in its wire form.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: &'a BTreeMap<&'a str, &'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact_type: Option<&'a str>,
    config: &'a Descriptor,
    layers: [&'a Descriptor; 1],
    media_type: &'static str,
    schema_version: u8,
}

/// Returns the manifest; the same parts give the same bytes.
fn manifest(
    config: &Descriptor,
    layer: &Descriptor,
    artifact_type: Option<&str>,
    annotations: &BTreeMap<&str, &str>,
) -> Result<Manifest, Failure> {
    let document =
        Document { annotations, artifact_type, config, layers: [layer], media_type: MANIFEST_TYPE, schema_version: 2 };
    let document = serde_json::to_string(&document);
    let document = document.map_err(|error| Failure::because("could not write a manifest", &error))?;
    Manifest::new(Some(MANIFEST_TYPE), Bytes::from(document))
        .map_err(|detail| Failure::new(format!("could not make a manifest: {detail}")))
}

/// Returns the template in `directory`: the file with a usual name, or the only file.
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
                  leave one"
                .to_owned(),
        ),
    }
}

/// Refuses a link, because it may point outside of the source.
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
        let one = manifest(&descriptor(EMPTY), &descriptor(b"a"), Some("t"), &BTreeMap::new()).unwrap();
        let two = manifest(&descriptor(EMPTY), &descriptor(b"a"), Some("t"), &BTreeMap::new()).unwrap();

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
