//! Fetches the text of a manifest. The artifact's layer is the manifest itself or a kustomization, which is rendered.

use freehold_protocol::order::{ApplyManifest, KUSTOMIZATION_LAYER, MANIFEST_LAYER};

use super::kustomize;
use crate::job::Job;
use crate::job::failure::{Failure, until_stopped};
use crate::kinds::archive;
use crate::kinds::sync_artifact::{fetch_layer, sync_artifact};
use crate::kinds::templates::Templates;
use crate::workspace;

/// The file name of the fetched layer in the workspace.
const LAYER: &str = "layer";

/// Returns the text of the manifest with all templates rendered, and the address of the install registry.
pub(super) async fn text(job: &Job, work: &ApplyManifest, templates: &Templates) -> Result<(String, String), Failure> {
    let unpackable = |error: &dyn std::error::Error| Failure::because("could not unpack the manifest", error);
    let layer = job.workspace.join(LAYER);
    let kustomized = work.artifact.blobs.iter().any(|blob| blob.media_type == KUSTOMIZATION_LAYER);
    let fetched = async {
        let repository = sync_artifact(job, &work.artifact).await?;
        let media_type = if kustomized { KUSTOMIZATION_LAYER } else { MANIFEST_LAYER };
        fetch_layer(&repository, &work.artifact, media_type, &layer).await?;
        Ok(repository.address())
    };
    let registry = until_stopped(job, fetched).await?;
    if !kustomized {
        let text = templates.text("manifest", &workspace::read_text(&job.workspace, LAYER).await?)?;
        return Ok((text, registry));
    }
    let (from, into) = (layer, job.workspace.join(kustomize::DIRECTORY));
    let unpacked = tokio::task::spawn_blocking(move || archive::unpack(&from, &into)).await;
    unpacked.map_err(|error| unpackable(&error))?.map_err(|error| unpackable(&error))?;
    Ok((kustomize::render(job, work, templates).await?, registry))
}
