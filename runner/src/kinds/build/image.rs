//! Copies an image with all of its platforms into the tenant registry.

use freehold_oci::{CopyOptions, Login, Reference, RegistryError, Repository};
use freehold_protocol::order::{Artifact, BuildArtifact};

use super::{Facts, Failure, ecr_repository, sdk_config};
use crate::job::Job;

/// Resolves `reference` once and copies what it names.
pub(super) async fn copy(
    job: &Job,
    work: &BuildArtifact,
    reference: &str,
    facts: &mut Facts,
) -> Result<Artifact, Failure> {
    let reference: Reference = reference.parse().map_err(RegistryError::from)?;
    let sdk = sdk_config(job).await;
    let target = ecr_repository(&sdk, &work.repository).await?;
    // The account's own registry knows the build role; every other one is read as anybody may.
    let own = target.address().starts_with(&format!("{}/", reference.host));
    let source = if own {
        ecr_repository(&sdk, &reference.repository).await?
    } else {
        Repository::new(target.http().clone(), &reference.host, &reference.repository, Login::Anonymous)?
    };
    job.log.line(&format!("copies {}:{} to {}", source.address(), reference.version, target.address()));
    let copied = freehold_oci::copy(&source, &reference.version, &target, &CopyOptions::default()).await?;
    let (artifact, moved) = (&copied.artifact, copied.moved);
    // "Mirrored": what the reference named at that time.
    facts.resolved(&format!("oci://{}", source.address()), "sha256", artifact.digest.hex());
    let (manifests, blobs) = (artifact.manifests.len(), artifact.blobs.len());
    job.log.line(&format!("{manifests} manifests, {blobs} blobs, {} bytes", artifact.blob_bytes()));
    let (sent, bytes, referrers) = (moved.sent, moved.sent_bytes, copied.referrers.len());
    job.log.line(&format!("sent {sent} blobs, {bytes} bytes; {referrers} manifests refer to the image"));
    Ok(copied.artifact)
}
