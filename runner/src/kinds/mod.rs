//! The kinds of jobs that a runner runs in an install's account, and the code that they share.

mod action;
pub mod archive;
mod attempt_mark;
mod cloudformation_stack;
mod cluster_images;
mod cluster_policies;
mod container_image;
mod copy_secrets;
mod drift;
mod guard;
mod health;
mod helm_chart;
mod inventory;
mod job_image;
mod kubernetes_job;
mod kubernetes_manifest;
mod leftovers;
mod plan_file;
mod preflight;
mod program_version;
pub mod provenance;
mod pulumi;
mod remove;
pub mod result;
mod sync_artifact;
mod templates;
pub mod terraform_module;
mod upgrade;

use async_trait::async_trait;
use freehold_oci::Manifest;
use freehold_protocol::grant::ManifestBytes;
use freehold_protocol::order::{Artifact, Work};
use freehold_protocol::report::Outcome;

pub(crate) use templates::owner;

use crate::approvals;
use crate::job::failure::Failure;
use crate::job::{Execute, Job};
use result::Done;

/// Executes the jobs of an install runner.
#[derive(Debug)]
pub struct InstallKinds;

#[async_trait]
impl Execute for InstallKinds {
    async fn execute(&self, job: &Job) -> Outcome {
        execute(job).await
    }
}

/// Runs the job and returns its outcome. When `job.stop` requests a stop, the job ends soon and leaves no process
/// running.
pub async fn execute(job: &Job) -> Outcome {
    let ended = match Box::pin(job_image::prepare(job)).await {
        Ok(()) => Box::pin(run(job)).await,
        Err(failure) => Err(failure),
    };
    let ended = ended.map_err(|failure| named(&job.order.work, failure));
    let outcome = result::outcome(job, ended);
    if let Work::Health(work) = &job.order.work { health::gated(work, outcome) } else { outcome }
}

/// Returns the failure of a job. If the component has objects in a cluster, the reason names the component, because the
/// errors of the cluster and of Helm do not.
fn named(work: &Work, failure: Failure) -> Failure {
    let in_cluster =
        matches!(work.made_by(), Work::HelmChart(_) | Work::KubernetesManifest(_) | Work::KubernetesJob(_));
    if in_cluster { failure.of(&owner(work)) } else { failure }
}

async fn run(job: &Job) -> Result<Done, Failure> {
    Box::pin(approvals::require_work_approval(job)).await?;
    match &job.order.work {
        Work::ContainerImage(work) => Box::pin(container_image::run(job, work)).await,
        Work::TerraformModule(work) | Work::Sandbox(work) => Box::pin(terraform_module::apply(job, work)).await,
        Work::Pulumi(work) | Work::PulumiSandbox(work) => Box::pin(pulumi::update(job, work)).await,
        Work::CloudformationStack(work) => Box::pin(cloudformation_stack::run(job, work)).await,
        Work::HelmChart(work) => Box::pin(helm_chart::run(job, work)).await,
        Work::KubernetesManifest(work) => Box::pin(kubernetes_manifest::run(job, work)).await,
        Work::KubernetesJob(work) => Box::pin(kubernetes_job::run(job, work)).await,
        Work::CopySecrets(work) => Box::pin(copy_secrets::run(job, work)).await,
        Work::Remove(work) => Box::pin(remove::run(job, work)).await,
        Work::DetectDrift(work) => Box::pin(drift::check(job, work)).await,
        Work::Action(work) => Box::pin(action::run(job, work)).await,
        Work::Build(_) => Err(Failure::new(
            "an install runner does not build; start `freehold-builder` in the tenant's account for that",
        )),
        Work::Preflight(work) => Box::pin(preflight::run(job, work)).await,
        Work::Leftovers(_) => Box::pin(leftovers::run(job)).await,
        Work::Health(work) => Box::pin(health::run(job, work)).await,
        Work::Upgrade(work) => Box::pin(upgrade::run(job, work)).await,
    }
}

/// Returns the granted manifests in the order in which `artifact` lists them, after checking their digests.
///
/// # Errors
/// The reason why the grant is not trusted, as a sentence.
pub fn granted_manifests(artifact: &Artifact, granted: &[ManifestBytes]) -> Result<Vec<Manifest>, String> {
    sync_artifact::granted_manifests(artifact, granted).map_err(|failure| match failure {
        Failure::Failed { reason, .. } => reason,
        Failure::Stopped { .. } | Failure::Waits(_) | Failure::NotApproved { .. } => {
            "the attempt was stopped while it waited for the grant".to_owned()
        }
    })
}
