//! `remove`: removes the resources that another kind of job made. Each kind makes a plan of its removal, and destroys
//! data only if the order permits this.

use freehold_protocol::order::{RemovePart, Work};

use crate::job::Job;
use crate::job::failure::{Failure, until_stopped};
use crate::kinds::result::Done;
use crate::kinds::templates::owner;
use crate::kinds::{cloudformation_stack, helm_chart, kubernetes_job, kubernetes_manifest, pulumi, terraform_module};

pub(super) async fn run(job: &Job, work: &RemovePart) -> Result<Done, Failure> {
    let done = Box::pin(remove_what_was_made(job, work)).await;
    let done = done.map_err(|failure| failure.of(&owner(&job.order.work)))?;
    let forgotten = Box::pin(job.sensitive_outputs.remove(&job.order));
    let forgotten = until_stopped(job, async { Ok(forgotten.await) });
    match forgotten.await.map_err(Failure::after_change)? {
        Ok(()) => Ok(done),
        Err(error) => Err(Failure::partial(error.to_string())),
    }
}

async fn remove_what_was_made(job: &Job, work: &RemovePart) -> Result<Done, Failure> {
    match &*work.what {
        Work::TerraformModule(what) | Work::Sandbox(what) => {
            terraform_module::remove(job, what, work.destroy_data).await
        }
        Work::Pulumi(what) | Work::PulumiSandbox(what) => pulumi::remove(job, what, work.destroy_data).await,
        Work::CloudformationStack(what) => cloudformation_stack::remove(job, what, work.destroy_data).await,
        Work::ContainerImage(what) => {
            let digest = &what.artifact.digest;
            job.log.line(&format!(
                "image {digest} stays in the install registry, which the customer removes with the stack"
            ));
            Ok(Done::default())
        }
        Work::HelmChart(what) => helm_chart::remove(job, what, work).await,
        Work::KubernetesManifest(what) => kubernetes_manifest::remove(job, what, work).await,
        Work::KubernetesJob(what) => kubernetes_job::remove(job, what, work).await,
        Work::CopySecrets(_)
        | Work::Remove(_)
        | Work::DetectDrift(_)
        | Work::Action(_)
        | Work::Build(_)
        | Work::Preflight(_)
        | Work::Leftovers(_)
        | Work::Health(_)
        | Work::Upgrade(_) => {
            Err(Failure::new(format!("a job of kind `{}` creates nothing that could be removed", work.what.kind())))
        }
    }
}
