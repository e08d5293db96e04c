//! Grants the program of a runner to the job that upgrades the runner. The program was uploaded in the same way as a
//! source.

use freehold_domain::Job;
use freehold_domain::workflow::{Target, Workflow};
use freehold_protocol::GrantId;
use freehold_protocol::grant::{BlobUrl, GrantAnswer, GrantRefusal};
use freehold_protocol::order::UpgradeRunner;

use crate::AppError;
use crate::artifact::denial::{Denied, deny};
use crate::messages::GrantMessage;
use crate::ports::{Objects, Store};
use crate::table;

/// The time for which the URL of the program is valid, in seconds.
const URL_SECS: u64 = 900;

/// Returns whether the job upgrades a runner.
pub(super) fn is_upgraded_by(job: &Job) -> bool {
    Target::Upgrade.group().is_ok_and(|group| group == job.group)
}

/// Returns the program that the job installs, if the request is for it.
pub(super) async fn asked_for(
    store: &dyn Store,
    job: &Job,
    request: &GrantMessage,
) -> Result<Result<Box<UpgradeRunner>, Denied>, AppError> {
    let workflow = table::workflow(store, &job.workflow).await?.value;
    let program = program_of(&workflow)?;
    if request.grant != GrantId::of_round(&job.id, request.fence, &request.artifact, 0) {
        let reason = format!("grant `{}` does not belong to this attempt and program", request.grant);
        return Ok(Err(deny(GrantRefusal::OtherAttempt, reason)));
    }
    if request.artifact != program.archive {
        let reason = format!("`{}` is not the program of job `{}`", request.artifact, job.id);
        return Ok(Err(deny(GrantRefusal::OtherDigest, reason)));
    }
    Ok(Ok(Box::new(program.clone())))
}

/// Returns the program that a workflow gives to the install's runner.
///
/// # Errors
/// Internal for a workflow that is not an upgrade: only the jobs of an upgrade need a program.
pub(crate) fn program_of(workflow: &Workflow) -> Result<&UpgradeRunner, AppError> {
    let found = workflow.request.program();
    found.ok_or_else(|| AppError::internal(format!("workflow `{}` names no program of a runner", workflow.id)))
}

/// Returns the URL of the archive with the program.
pub(super) async fn grant(
    objects: &dyn Objects,
    job: &Job,
    request: &GrantMessage,
    program: &UpgradeRunner,
) -> Result<GrantAnswer, AppError> {
    let url = objects.source_url(&program.archive, URL_SECS).await?;
    tracing::info!(job.id = %job.id, "Granted program `{}` to attempt {}", program.program, request.fence);
    let blob = BlobUrl { digest: program.archive.clone(), size: program.archive_size, url };
    Ok(GrantAnswer::Granted { manifests: Vec::new(), blobs: vec![blob] })
}
