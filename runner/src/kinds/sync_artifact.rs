//! Copies an artifact into the install registry: requests a grant for the missing blobs, streams them, and checks them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use freehold_oci::{
    BlobSource, Manifest, RegistryError, Repository, Version, fetch, missing_blobs, push_manifests, push_missing_blobs,
};
use freehold_protocol::grant::{BlobUrl, GrantAnswer, MAX_BLOBS, ManifestBytes, max_rounds};
use freehold_protocol::order::{Artifact, Descriptor};
use freehold_protocol::{ComponentName, Digest};

use crate::job::Job;
use crate::job::failure::Failure;
use crate::kinds::provenance;
use crate::registry::{ecr_repository, granted_urls};

/// Makes sure that the install registry holds `artifact`, and returns the repository. If the artifact is already there,
/// this needs one request: a manifest is pushed after everything that it names, so the top manifest proves that all
/// parts exist. First verifies the provenance: the tenant must have signed a statement about the artifact and this
/// component.
///
/// The push uses the runner's own role and not the mode's, because the roles of modules and actions can only read the
/// registry.
pub(super) async fn sync_artifact(job: &Job, artifact: &Artifact) -> Result<Repository, Failure> {
    let Some(component) = job.order.work.component() else {
        return Err(Failure::new("the order names no component"));
    };
    sync_artifact_of(job, component, artifact).await
}

/// Copies the artifact of `component`, like [`sync_artifact`].
pub(super) async fn sync_artifact_of(
    job: &Job,
    component: &ComponentName,
    artifact: &Artifact,
) -> Result<Repository, Failure> {
    if job.config.repository.is_empty() {
        return Err(Failure::new(
            "this runner's config names no repository; write the install stack's `RepositoryName` into the key `repository`",
        ));
    }
    let believed = provenance::verify(job, component, artifact)?;
    let repository =
        ecr_repository(&crate::aws::sdk_config(&job.config.region, None).await, &job.config.repository).await?;
    let top = Version::Digest(artifact.digest.clone());
    if repository.manifest_digest(&top).await?.is_some() {
        job.log.line(&format!("{} is already in the install registry", artifact.digest));
        return Ok(repository);
    }
    let manifests = copy_granted(job, component, artifact, &repository).await?;
    let pushed = push_manifests(&repository, &manifests).await;
    pushed.map_err(|error| not_copied(job, component, artifact, error))?;
    provenance::push(&repository, artifact, believed).await?;
    job.log.line(&format!("{} is in the install registry", artifact.digest));
    Ok(repository)
}

/// Copies the blobs that the install registry lacks, and returns the manifests that the grant contains. It requests a
/// grant for at most `MAX_BLOBS` of them at once, and a new grant for the remaining blobs if URLs expire during the copy,
/// in at most `max_rounds` rounds.
async fn copy_granted(
    job: &Job,
    component: &ComponentName,
    artifact: &Artifact,
    repository: &Repository,
) -> Result<Vec<Manifest>, Failure> {
    let mut round = 0;
    loop {
        let missing = missing_blobs(repository, &artifact.blobs).await?;
        let bytes: u64 = missing.iter().map(|blob| blob.size).sum();
        let (lacking, all, digest) = (missing.len(), artifact.blobs.len(), &artifact.digest);
        job.log.line(&format!("the install registry lacks {lacking} of {all} blobs of {digest} ({bytes} bytes)"));
        let (part, rest) = first_part(missing);
        let wanted = part.iter().map(|blob| blob.digest.clone()).collect();
        let (manifests, urls) = match job.grants.request(job, digest, wanted, round).await? {
            GrantAnswer::Granted { manifests, blobs } => (manifests, blobs),
            GrantAnswer::Refused { refusal, reason } => {
                let word = refusal.as_str();
                return Err(Failure::new(format!("artifact `{digest}` was not granted ({word}): {reason}")));
            }
            GrantAnswer::Attested { .. } => {
                return Err(Failure::new(format!("the answer to the request for artifact `{digest}` is not a grant")));
            }
        };
        // The runner checks the whole grant against the signed order before it copies the first byte.
        let manifests = granted_manifests(artifact, &manifests)?;
        let sources = granted_sources(&granted_urls::client()?, part, urls)?;
        let again = round + 1 < max_rounds(artifact.blobs.len());
        match push_missing_blobs(repository, sources).await {
            Ok(_) if !rest => return Ok(manifests),
            Ok(_) => {}
            Err(RegistryError::Expired { .. }) if again => {
                job.log.line(&format!("granted URLs expired; requesting the missing blobs again ({})", round + 1));
            }
            Err(error) => return Err(not_copied(job, component, artifact, error)),
        }
        round += 1;
    }
}

/// Returns the failure of a copy into the install registry. If one of the two registries lacks an object, the reason
/// names the component and the way out.
fn not_copied(job: &Job, component: &ComponentName, artifact: &Artifact, error: RegistryError) -> Failure {
    // Only granted URLs, which lead to the vendor's registry, have this error.
    if let RegistryError::Status { host, status: 404, .. } = &error {
        let digest = &artifact.digest;
        return Failure::of_component(
            component,
            format!(
                "the vendor's registry lacks a blob of `{digest}` (`{host}` returned status 404); build the component \
                 again, then deploy it"
            ),
        );
    }
    if let RegistryError::NotFound { .. } = &error {
        let repository = &job.config.repository;
        return Failure::of_component(
            component,
            format!(
                "{error}; if the install registry has no repository `{repository}` any more, launch the install stack \
                 again; then deploy the component again"
            ),
        );
    }
    error.into()
}

/// Returns the blobs to request now, and whether more are missing. A blob that is listed twice counts once.
fn first_part(missing: Vec<Descriptor>) -> (Vec<Descriptor>, bool) {
    let mut seen = BTreeSet::new();
    let mut distinct = missing.into_iter().filter(|blob| seen.insert(blob.digest.clone()));
    let part = distinct.by_ref().take(MAX_BLOBS).collect();
    (part, distinct.next().is_some())
}

/// Returns the granted manifests in the order in which `artifact` lists them, after checking their digests.
pub(super) fn granted_manifests(artifact: &Artifact, granted: &[ManifestBytes]) -> Result<Vec<Manifest>, Failure> {
    let mut found = BTreeMap::new();
    for manifest in granted {
        let bytes = STANDARD
            .decode(&manifest.bytes)
            .map_err(|_| Failure::new(format!("the granted manifest `{}` is not base64", manifest.digest)))?;
        found.insert(Digest::of(&bytes), Bytes::from(bytes));
    }
    let expected = || artifact.manifests.iter();
    if expected().last().map(|last| &last.digest) != Some(&artifact.digest) {
        return Err(Failure::new(format!(
            "the order's list of manifests does not end with the manifest of artifact `{}`; report it to the vendor",
            artifact.digest
        )));
    }
    expected()
        .map(|wanted| {
            let bytes = found.get(&wanted.digest).cloned().ok_or_else(|| {
                Failure::new(format!("the grant lacks manifest `{}`, or has other bytes for it", wanted.digest))
            })?;
            Manifest::new(Some(&wanted.media_type), bytes)
                .map_err(|detail| Failure::new(format!("the granted manifest `{}`: {detail}", wanted.digest)))
        })
        .collect()
}

/// Returns each missing blob with the granted URL as its source.
fn granted_sources(
    http: &reqwest::Client,
    missing: Vec<Descriptor>,
    granted: Vec<BlobUrl>,
) -> Result<Vec<(Descriptor, BlobSource)>, Failure> {
    let mut urls: BTreeMap<Digest, BlobUrl> = granted.into_iter().map(|blob| (blob.digest.clone(), blob)).collect();
    missing
        .into_iter()
        .map(|blob| match urls.remove(&blob.digest) {
            Some(granted) if granted_urls::may_lead_to(&granted.url) => {
                Ok((blob, BlobSource::Url { http: http.clone(), url: granted.url }))
            }
            Some(_) => Err(Failure::new(format!(
                "the granted URL of blob `{}` names an address that it must not lead to; report it to the vendor",
                blob.digest
            ))),
            None => Err(Failure::new(format!("the grant holds no URL for blob `{}`", blob.digest))),
        })
        .collect()
}

/// Returns the descriptors of the config and the layers of an artifact that has one manifest.
pub(super) async fn parts(repository: &Repository, artifact: &Artifact) -> Result<Vec<Descriptor>, Failure> {
    let manifest = repository.manifest(&Version::Digest(artifact.digest.clone())).await?;
    let parts = manifest.parts().map_err(|detail| unusable(artifact, &detail))?;
    Ok(parts.blobs)
}

/// Writes the artifact's layer of type `media_type` from the install registry into a new file at `path`.
pub(super) async fn fetch_layer(
    repository: &Repository,
    artifact: &Artifact,
    media_type: &str,
    path: &Path,
) -> Result<(), Failure> {
    let parts = parts(repository, artifact).await?;
    let layer = parts.iter().find(|blob| blob.media_type == media_type).ok_or_else(|| {
        unusable(artifact, &format!("it has no layer of type `{media_type}`; build the component again"))
    })?;
    Ok(fetch(&BlobSource::Repository(repository.clone()), layer, path).await?)
}

pub(super) fn unusable(artifact: &Artifact, detail: &str) -> Failure {
    Failure::new(format!("artifact `{}`: {detail}", artifact.digest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &[u8] = br#"{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.empty.v1+json","digest":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","size":2},"layers":[]}"#;

    fn artifact() -> Artifact {
        let manifest = Manifest::new(None, Bytes::from_static(MANIFEST)).expect("manifest").descriptor();
        let (digest, media_type) = (manifest.digest.clone(), manifest.media_type.clone());
        Artifact { digest, media_type, manifests: vec![manifest], blobs: Vec::new(), provenance: None }
    }

    fn granted(bytes: &[u8]) -> ManifestBytes {
        let artifact = artifact();
        ManifestBytes { media_type: artifact.media_type, digest: artifact.digest, bytes: STANDARD.encode(bytes) }
    }

    #[test]
    fn a_granted_manifest_with_the_ordered_digest_is_taken() {
        let manifests = granted_manifests(&artifact(), &[granted(MANIFEST)]).expect("manifests");

        assert_eq!(manifests.len(), 1);
    }

    #[test]
    fn as_many_blobs_are_requested_at_once_as_a_message_holds() {
        let blob = |number: usize| {
            let digest = Digest::of(number.to_string().as_bytes());
            Descriptor { media_type: "layer".to_owned(), digest, size: 1 }
        };
        let all = |count: usize| (0..count).chain(0..count).map(blob).collect::<Vec<_>>();

        let (few, many) = (first_part(all(MAX_BLOBS)), first_part(all(MAX_BLOBS + 1)));

        assert_eq!((few.0.len(), few.1), (MAX_BLOBS, false));
        assert_eq!((many.0.len(), many.1), (MAX_BLOBS, true));
    }

    #[test]
    fn other_bytes_under_the_ordered_digest_are_refused() {
        let other = [MANIFEST, b" "].concat();

        assert!(granted_manifests(&artifact(), &[granted(&other)]).is_err());
        assert!(granted_manifests(&artifact(), &[]).is_err());
    }
}
