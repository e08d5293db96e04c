//! Makes the artifact of a directory that steps of an action run in: one layer with the files as they are in the source.

use std::path::PathBuf;

use freehold_protocol::order::{Artifact, BuildArtifact, STEP_ARTIFACT, STEP_LAYER};
use freehold_runner::job::Job;
use freehold_runner::job::failure::{Failure, until_stopped};
use freehold_runner::kinds::archive::ArchiveError;

use crate::package::push_layer;
use crate::{archive, source};

/// The largest tar of the directory, in bytes. Each step that runs in the directory gets a copy on the customer's
/// machine.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// Builds the directory and pushes it.
pub(crate) async fn build(job: &Job, work: &BuildArtifact) -> Result<Artifact, Failure> {
    let directory = source::fetch(job, &work.source).await?;
    let layer = pack(job, directory, MAX_BYTES).await?;
    until_stopped(job, push_layer(job, work, &layer, STEP_LAYER, STEP_ARTIFACT)).await
}

/// Packs a directory whose tar has at most `most` bytes.
pub(crate) async fn pack(job: &Job, directory: PathBuf, most: u64) -> Result<PathBuf, Failure> {
    let layer = job.workspace.join("layer.tar.gz");
    let into = layer.clone();
    let packed = tokio::task::spawn_blocking(move || {
        let bytes = archive::bytes(&directory)?;
        if bytes <= most {
            archive::pack(&directory, &into)?;
        }
        Ok::<u64, ArchiveError>(bytes)
    });
    let unpackable = |error: &dyn std::error::Error| Failure::because("could not pack the directory", error);
    let bytes = packed.await.map_err(|error| unpackable(&error))?.map_err(|error| unpackable(&error))?;
    if bytes > most {
        return Err(Failure::new(format!(
            "the tar of the directory has {bytes} bytes, more than the maximum of {most}; name a smaller `directory` of \
             the repository"
        )));
    }
    Ok(layer)
}
