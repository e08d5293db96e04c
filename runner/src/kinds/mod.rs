//! What each kind of job does.

mod action;
mod archive;
mod bucket;
mod build;
mod cloudformation_stack;
mod container_image;
mod failure;
mod preflight;
mod provenance;
mod sync_artifact;
mod templates;
mod terraform_module;

use std::collections::BTreeMap;

use aws_types::SdkConfig;
use freehold_oci::Manifest;
use freehold_protocol::grant::ManifestBytes;
use freehold_protocol::limits::MAX_OUTPUTS_BYTES;
use freehold_protocol::order::{Artifact, Work};
use freehold_protocol::report::Outcome;
use serde_json::Value;

use crate::work::job::Job;
pub use build::BUILDERS;
use failure::Failure;

/// What a job made.
#[derive(Debug, Default)]
struct Done {
    outputs: BTreeMap<String, Value>,
    artifact: Option<Artifact>,
}

/// Does the job and returns how it ended. When `job.stop` is given it ends soon, and leaves no process behind.
///
/// A job stopped for [`crate::work::job::StopReason::LeaseLost`] or `Draining` ends as failed here; the caller knows better
/// what becomes of it, since another attempt may be on its way.
pub async fn execute(job: &Job) -> Outcome {
    let ended = match &job.order.work {
        Work::ContainerImage(work) => container_image::run(job, work).await,
        Work::TerraformModule(work) => terraform_module::run(job, work).await,
        Work::CloudformationStack(work) => cloudformation_stack::run(job, work).await,
        Work::Action(work) => action::run(job, work).await,
        Work::Build(work) => build::run(job, work).await,
        Work::Preflight(work) => preflight::run(job, work).await,
    };
    match ended.and_then(check_size) {
        Ok(Done { outputs, artifact }) => Outcome::Succeeded { outputs, artifact },
        Err(failure) => failure.into_outcome(job),
    }
}

/// Returns the granted manifests in the sequence of `artifact`, each with the digest that it was asked for by.
///
/// # Errors
/// Why the grant is not believed, for people.
pub fn granted_manifests(artifact: &Artifact, granted: &[ManifestBytes]) -> Result<Vec<Manifest>, String> {
    sync_artifact::granted_manifests(artifact, granted).map_err(|failure| match failure {
        Failure::Failed { reason, .. } => reason,
        Failure::Stopped { reason, .. } => format!("{reason:?}"),
    })
}

fn check_size(done: Done) -> Result<Done, Failure> {
    let bytes = serde_json::to_vec(&done.outputs).map_or(usize::MAX, |text| text.len());
    if bytes <= MAX_OUTPUTS_BYTES {
        return Ok(done);
    }
    Err(Failure::partial(format!(
        "the work is done, but its outputs are {bytes} bytes and at most {MAX_OUTPUTS_BYTES} can be reported; \
         make them fewer or smaller"
    )))
}

/// Returns what AWS clients of the job's mode are made from.
async fn sdk_config(job: &Job) -> SdkConfig {
    crate::aws::sdk_config(&job.config.region, Some(job.credentials.clone())).await
}

/// Returns what `work` returns, unless the attempt must stop before.
async fn until_stopped<T>(job: &Job, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::select! {
        biased;
        reason = job.stop.stopped() => Err(Failure::stopped(reason)),
        ended = work => ended,
    }
}
