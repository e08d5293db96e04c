//! Fetches, by digest, the images that a Dockerfile names. Each image becomes one OCI image layout in the workspace.

use std::path::Path;

use bytes::Bytes;
use freehold_oci::{
    BlobSource, Manifest, Platform, RegistryError, Repository, Version, fetch as fetch_blob, manifest_for,
};
use freehold_protocol::Digest;
use freehold_protocol::order::{BuildArtifact, Descriptor};
use freehold_runner::job::failure::Failure;
use freehold_runner::job::{Job, sdk_config};
use freehold_runner::registry::ecr_repository;
use serde_json::json;

use super::read::{Named, own_architecture};
use crate::private_source;
use crate::statement::Facts;

/// The directory of the layouts in the workspace.
const BASES: &str = "bases";

/// Fetches the images. Returns pairs of an image's name and the directory of its layout, relative to the workspace. An
/// image whose name contains variables has two pairs: the name as written, and with the variables replaced.
///
/// A tag is resolved only once, here. The build uses the resolved digest, and the log and the statement name this
/// digest.
pub(super) async fn fetch(
    job: &Job,
    work: &BuildArtifact,
    named: &[Named],
    facts: &mut Facts,
) -> Result<Vec<(String, String)>, Failure> {
    let mut all = Vec::new();
    for (number, named) in named.iter().enumerate() {
        let directory = format!("{BASES}/{number}");
        let (address, digest) = fetch_one(job, work, named, &job.workspace.join(&directory)).await?;
        job.log.line(&format!("`{}` is {address}@{digest}", named.image));
        facts.resolved(&format!("oci://{address}"), "sha256", digest.hex());
        all.push((named.word.clone(), directory.clone()));
        if named.word != named.image {
            all.push((named.image.clone(), directory));
        }
    }
    Ok(all)
}

async fn fetch_one(
    job: &Job,
    work: &BuildArtifact,
    named: &Named,
    directory: &Path,
) -> Result<(String, Digest), Failure> {
    let reference = &named.reference;
    let own = ecr_repository(&sdk_config(job).await, &work.repository).await?;
    let source = if own.address().starts_with(&format!("{}/", reference.host)) {
        ecr_repository(&sdk_config(job).await, &reference.repository).await?
    } else {
        let login = private_source::registry::login(job, reference).await?;
        Repository::new(own.http().clone(), &reference.host, &reference.repository, login)?
    };
    let top = source.manifest(&reference.version).await.map_err(|error| match error {
        RegistryError::NotFound { .. } => Failure::of_component(
            &work.component,
            format!("base image `{}`: {error}; correct its name in the Dockerfile, then build again", named.image),
        ),
        error => error.into(),
    })?;
    let digest = top.digest.clone();
    let image = image_of(&source, top, named).await?;
    write(&source, &image, directory).await?;
    Ok((source.address(), digest))
}

/// Returns the image for the wanted platform when `top` is an index, and otherwise `top` itself.
async fn image_of(source: &Repository, top: Manifest, named: &Named) -> Result<Manifest, Failure> {
    if !top.is_index() {
        return Ok(top);
    }
    let wanted =
        if named.platform.is_empty() { format!("linux/{}", own_architecture()) } else { named.platform.clone() };
    let wanted: Platform = wanted.parse().map_err(|error| Failure::because("`--platform` cannot be used", &error))?;
    let image = manifest_for(&top, &wanted)
        .map_err(|error| Failure::because(&format!("base image `{}` cannot be used", named.image), &error))?;
    Ok(source.manifest(&Version::Digest(image)).await?)
}

/// Fetches the blobs of `image` and writes its image layout (OCI image specification 1.1, "Image Layout").
async fn write(source: &Repository, image: &Manifest, directory: &Path) -> Result<(), Failure> {
    let local = |error: std::io::Error| Failure::because("could not write a base image into the workspace", &error);
    let blobs = directory.join("blobs/sha256");
    std::fs::create_dir_all(&blobs).map_err(local)?;
    let parts = image.parts().map_err(|detail| {
        Failure::new(format!("manifest `{}` of {} cannot be used: {detail}", image.digest, source.address()))
    })?;
    for blob in unique(parts.blobs) {
        fetch_blob(&BlobSource::Repository(source.clone()), &blob, &blobs.join(blob.digest.hex())).await?;
    }
    let index = json!({ "schemaVersion": 2, "manifests": [image.descriptor()] }).to_string();
    let files: [(_, Bytes); 3] = [
        (blobs.join(image.digest.hex()), image.bytes.clone()),
        (directory.join("index.json"), index.into()),
        (directory.join("oci-layout"), json!({ "imageLayoutVersion": "1.0.0" }).to_string().into()),
    ];
    files.iter().try_for_each(|(path, bytes)| std::fs::write(path, bytes)).map_err(local)
}

fn unique(mut blobs: Vec<Descriptor>) -> Vec<Descriptor> {
    let mut known = std::collections::BTreeSet::new();
    blobs.retain(|blob| known.insert(blob.digest.clone()));
    blobs
}
