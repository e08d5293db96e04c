//! `terraform_module`, and the app's sandbox: runs Terraform's `init`, `plan` into a file, `apply` of this file, and
//! `output`. A removal is the same with `plan -destroy`.
//!
//! A redelivery starts again with `init` and a new plan, and never uses an old plan file. The state is in the runner's
//! bucket, and Terraform itself locks it (`state_lock` decides when an abandoned lock is removed).

mod data;
pub(super) mod drift;
pub mod executable;
mod fetched_providers;
mod files;
mod own_tags;
mod plan;
mod program;
pub mod provider_zip;
mod providers;
mod state;
mod state_lock;

pub(super) use program::default_tags;
pub use program::first_error;

use std::path::Path;

use freehold_protocol::approval::PlanRecord;
use freehold_protocol::order::{ApplyTerraform, MODULE_LAYER};
use serde_json::json;

use crate::approvals::{self, Asked, Facts, Made, Recalled};
use crate::identity::job_aws::JobAws;
use crate::job::bucket::JobBucket;
use crate::job::failure::{Failure, until_stopped};
use crate::job::{Job, sdk_config};
use crate::kinds::archive;
use crate::kinds::guard;
use crate::kinds::plan_file::PlanFile;
use crate::kinds::result::{Done, job_aws, keep_sensitive, skipped};
use crate::kinds::sync_artifact::{fetch_layer, sync_artifact};
use crate::kinds::templates::Templates;
use crate::state_objects::StateObjects;
use fetched_providers::FetchedProviders;
use files::{MODULE, PLAN_FILE, Variables};
use plan::Changes;
use program::{ModuleProviders, Terraform};
use state_lock::StateLock;

/// The option for the time that Terraform waits for the state's lock.
const LOCK_TIMEOUT: &str = "-lock-timeout=60s";

/// The goal of a job for the module's resources.
#[derive(Debug, Clone, Copy)]
enum Goal {
    Apply,
    Destroy {
        /// Whether resources that hold data may be destroyed.
        data: bool,
    },
}

/// Creates, updates and deletes resources until they match the module.
pub(super) async fn apply(job: &Job, work: &ApplyTerraform) -> Result<Done, Failure> {
    run(job, work, Goal::Apply).await
}

/// Destroys all resources in the module's state.
pub(super) async fn remove(job: &Job, work: &ApplyTerraform, destroy_data: bool) -> Result<Done, Failure> {
    run(job, work, Goal::Destroy { data: destroy_data }).await
}

async fn run(job: &Job, work: &ApplyTerraform, goal: Goal) -> Result<Done, Failure> {
    let sdk = sdk_config(job).await;
    let bucket = JobBucket::of(job, &sdk)?;
    let aws = job_aws(job).await?;
    let Prepared { terraform, objects, variables } = prepare(job, work, &bucket, &aws).await?;
    let asked = approvals::asked(job).await?;
    // This is the last step that can fail or be stopped before the code below, which always writes how the attempt
    // ended.
    let lock = StateLock::take_over(job, &bucket, &objects).await?;
    let change =
        Change { terraform: &terraform, bucket: &bucket, objects: &objects, variables: &variables, goal, asked };
    let done = change.make(&lock).await;
    aws.finish().await;
    // This also runs after a stop: the mark tells the next attempt whether this attempt left a lock behind.
    let ended = lock.end(&bucket, terraform.ended_abruptly()).await;
    let done = done?;
    ended.map_err(Failure::after_change)?;
    Ok(done)
}

/// The result of the preparations: everything that a run of Terraform needs.
struct Prepared<'a> {
    terraform: Terraform<'a>,
    objects: StateObjects,
    variables: Variables,
}

/// Finds Terraform and the state, and fills the workspace.
async fn prepare<'a>(
    job: &'a Job,
    work: &'a ApplyTerraform,
    bucket: &JobBucket,
    aws: &'a JobAws,
) -> Result<Prepared<'a>, Failure> {
    let mut terraform = Terraform::find(job, work, aws)?;
    // INVARIANT: only orders for Terraform modules and sandboxes, and for their removal, come here. Each has a state.
    let objects = StateObjects::of(&job.order.work).ok_or_else(|| {
        Failure::new("this order is not for Terraform, so it has no state; this is a mistake in the runner")
    })?;
    let (variables, providers) = until_stopped(job, fetch(job, work, bucket, &objects)).await?;
    terraform.take_providers(providers);
    Ok(Prepared { terraform, objects, variables })
}

/// Fetches the module and its providers into the workspace, and writes the runner's files.
async fn fetch(
    job: &Job,
    work: &ApplyTerraform,
    bucket: &JobBucket,
    objects: &StateObjects,
) -> Result<(Variables, ModuleProviders), Failure> {
    let repository = sync_artifact(job, &work.artifact).await?;
    let layer = job.workspace.join("module.tar.gz");
    fetch_layer(&repository, &work.artifact, MODULE_LAYER, &layer).await?;
    let (module, from) = (job.workspace.join(MODULE), layer.clone());
    let unpacked = tokio::task::spawn_blocking(move || archive::unpack(&from, &module)).await;
    unpacked
        .map_err(|error| Failure::because("could not unpack the module", &error))?
        .map_err(|error| Failure::because("could not unpack the module", &error))?;
    let _ = std::fs::remove_file(&layer);
    let providers = match providers::unpack(job, &repository, &work.artifact).await? {
        Some(packed) => ModuleProviders::Packed(packed),
        None => ModuleProviders::Fetched(FetchedProviders::find(job).await?),
    };
    let variables = files::write(job, work, &Templates::of(job), (bucket.bucket(), objects)).await?;
    Ok((variables, providers))
}

/// A change of the module's resources: from its plan, new or approved before, to the apply of exactly this plan.
struct Change<'a> {
    terraform: &'a Terraform<'a>,
    bucket: &'a JobBucket,
    objects: &'a StateObjects,
    variables: &'a Variables,
    goal: Goal,
    asked: Asked,
}

impl Change<'_> {
    async fn make(&self, lock: &StateLock) -> Result<Done, Failure> {
        let Self { terraform, asked, .. } = self;
        let job = terraform.job();
        terraform.check_version().await?;
        terraform.init().await?;
        if let Some(id) = lock.stale() {
            job.log.line(&format!("removing lock `{id}`, which a killed attempt left on the state"));
            let unlock = ["force-unlock", "-force", "-no-color", id].map(String::from).to_vec();
            terraform.run("force-unlock", unlock).await?;
        }
        let facts = self.facts().await?;
        let recalled = approvals::recall(job, &facts).await?;
        let (plan, object) = match &recalled {
            Recalled::Plan(record) => (self.fetch_approved_plan(record).await?, record.object.clone()),
            Recalled::Nothing | Recalled::Outdated(_) => self.make_plan().await?,
        };
        let (Changes { counts, data, is_noop, only_adds_tags }, document) = plan::read(terraform, &plan).await?;
        job.log.line(&format!("plan {}: {counts}", plan.digest()));
        if only_adds_tags {
            job.log.line("the updates only add tags of the install");
        }
        if matches!(self.goal, Goal::Destroy { data: false }) && !data.is_empty() {
            return Err(Failure::destroys_data(&data));
        }
        if is_noop && (job.order.skip_noops || asked.is_any()) {
            job.log.line(skipped(job));
            return finish(terraform).await;
        }
        let changes = approvals::of_plan(&document);
        guard::plan(job, document).await?;
        let made = Made { changes, bytes: plan.digest().clone(), object, facts };
        Box::pin(approvals::require_plan_approval(job, *asked, made, recalled)).await?;
        let apply = ["apply", "-input=false", "-no-color", LOCK_TIMEOUT].map(String::from).to_vec();
        // From here on, every failure may leave resources partly created.
        terraform.apply(apply, &plan).await.map_err(Failure::after_change)?;
        finish(terraform).await.map_err(Failure::after_change)
    }

    /// Returns the inputs and the state that an approval is bound to; empty when no approval is needed.
    async fn facts(&self) -> Result<Facts, Failure> {
        let job = self.terraform.job();
        if !self.asked.is_any() && job.order.approved.is_none() {
            return Ok(Facts { inputs: json!(null), state: String::new() });
        }
        let state = until_stopped(job, state::describe(self.bucket, self.objects)).await?;
        let inputs = json!({ "variables": self.variables.values, "settings": self.terraform.settings() });
        Ok(Facts { inputs, state })
    }

    /// Makes a plan, and stores it. Returns it with the object that holds it.
    async fn make_plan(&self) -> Result<(PlanFile, String), Failure> {
        let job = self.terraform.job();
        let plan = ["plan", "-input=false", "-no-color", LOCK_TIMEOUT, "-out=plan.bin"].map(String::from);
        let destroy = matches!(self.goal, Goal::Destroy { .. }).then(|| "-destroy".to_owned());
        let options = self.variables.options.iter().cloned();
        self.terraform.run("plan", plan.into_iter().chain(destroy).chain(options).collect()).await?;
        let plan = PlanFile::copy(job, &Path::new(MODULE).join(PLAN_FILE)).await?;
        let object = format!("plans/{}/{}.bin", job.order.job, job.fence);
        until_stopped(job, self.bucket.put_file(&object, plan.file())).await?;
        Ok((plan, object))
    }

    /// Fetches the approved plan, whose bytes the approval names.
    async fn fetch_approved_plan(&self, record: &PlanRecord) -> Result<PlanFile, Failure> {
        let job = self.terraform.job();
        let plan = until_stopped(job, PlanFile::fetch(job, self.bucket, &record.object, &record.bytes)).await?;
        plan.ok_or_else(|| Failure::NotApproved {
            reason: format!(
                "the approved plan is not applied: object `{}` of the install's bucket has other bytes than `{}`",
                record.object, record.bytes
            ),
        })
    }
}

async fn finish(terraform: &Terraform<'_>) -> Result<Done, Failure> {
    let outputs = plan::outputs(terraform).await?;
    let sensitive = keep_sensitive(terraform.job(), outputs.sensitive).await?;
    Ok(Done { outputs: outputs.plain, sensitive, artifact: None })
}
