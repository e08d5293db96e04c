//! Prepares the directories in which steps of an action run: copies each artifact into the install registry, verifies
//! the artifact, and unpacks it into the workspace once for each of its steps.

use std::collections::BTreeMap;

use freehold_protocol::order::{RunAction, STEP_LAYER, StepDirectory};

use crate::job::Job;
use crate::job::failure::Failure;
use crate::kinds::archive::{self, ArchiveError, Budget};
use crate::kinds::sync_artifact::{fetch_layer, sync_artifact_of};

/// The directories of steps, relative to the workspace, by the index of the step.
pub(super) type Directories = BTreeMap<usize, String>;

/// Fetches and unpacks all directories of an action before its first step runs, for two reasons: a step could put links
/// where the runner writes, and an action whose directory cannot be fetched must fail before a step changes something.
pub(super) async fn prepare(job: &Job, work: &RunAction) -> Result<Directories, Failure> {
    let mut directories = Directories::new();
    // The copies are unpacked outside of the box, where the limits of the box do not apply.
    let limits = job.config.limits.of_process();
    let mut left = Budget { bytes: limits.disk, files: limits.files };
    for one in &work.directories {
        let about = |failure| match failure {
            Failure::Failed { reason, partial } => {
                Failure::Failed { reason: format!("the directory `{}` of a step: {reason}", one.component), partial }
            }
            other @ (Failure::Stopped { .. } | Failure::Waits(_) | Failure::NotApproved { .. }) => other,
        };
        unpack(job, work, one, (&mut directories, &mut left)).await.map_err(about)?;
    }
    Ok(directories)
}

async fn unpack(
    job: &Job,
    work: &RunAction,
    one: &StepDirectory,
    (directories, left): (&mut Directories, &mut Budget),
) -> Result<(), Failure> {
    let repository = sync_artifact_of(job, &one.component, &one.artifact).await?;
    let layer = job.workspace.join("directory.tar.gz");
    fetch_layer(&repository, &one.artifact, STEP_LAYER, &layer).await?;
    for step in &one.steps {
        let index = usize::try_from(*step).ok().filter(|index| *index < work.steps.len());
        let index =
            index.ok_or_else(|| Failure::new(format!("the action has no step {step}; report it to the vendor")))?;
        let directory = format!("steps/{}", index + 1);
        if directories.insert(index, directory.clone()).is_some() {
            return Err(Failure::new(format!("step {step} has two directories; report it to the vendor")));
        }
        let (from, into) = (layer.clone(), job.workspace.join(directory));
        let mut budget = *left;
        let unpacked =
            tokio::task::spawn_blocking(move || archive::unpack_within(&from, &mut budget, &into).map(|()| budget));
        let unpacked = unpacked.await.map_err(|error| Failure::because("could not unpack it", &error))?;
        *left = unpacked.map_err(|error| match error {
            ArchiveError::TooLarge { .. } => Failure::new(format!(
                "its copies and those of other steps need more than the workspace may hold; in the runner's config, \
                 `limits.disk_mib` allows {} MiB, and `limits.files` allows {} files",
                job.config.limits.disk_mib, job.config.limits.files
            )),
            other => Failure::because("could not unpack it", &other),
        })?;
    }
    std::fs::remove_file(&layer).map_err(|error| Failure::because("could not remove the packed files", &error))
}
