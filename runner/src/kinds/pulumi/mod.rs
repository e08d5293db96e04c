//! `pulumi`, and an app's sandbox that is a Pulumi program: runs `preview` with a saved plan, `up` with this plan, and
//! `stack output`. A removal looks at the stack's resources and runs `destroy`.
//!
//! A redelivery starts again with a new preview. The state is in the runner's bucket, where Pulumi writes it after each
//! change of a resource and locks it with an object of its own (`stack_locks` decides when an abandoned lock is removed).
//!
//! Pulumi's plans constrain an update: `up` refuses a change that the plan does not have. They do not constrain a
//! removal, because `destroy` does not take a plan.

mod data;
mod diagnosis;
mod files;
mod program;
mod saved_plan;
mod stack;
mod stack_locks;
mod steps;

use std::collections::BTreeMap;
use std::path::Path;

use freehold_protocol::order::{PROGRAM_LAYER, RunPulumi};
use serde_json::{Value, json};

use crate::approvals;
use crate::job::bucket::JobBucket;
use crate::job::failure::{Failure, until_stopped};
use crate::job::{Job, sdk_config};
use crate::kinds::archive;
use crate::kinds::guard;
use crate::kinds::plan_file::PlanFile;
use crate::kinds::result::{Done, job_aws, keep_sensitive, skipped};
use crate::kinds::sync_artifact::{fetch_layer, sync_artifact};
use crate::kinds::templates::Templates;
use files::{PLAN_FILE, PROGRAM};
use program::Pulumi;
use stack_locks::StackLocks;

/// The text that `pulumi stack output` prints in place of the value of a secret output.
const SECRET: &str = "[secret]";

/// The goal of a job for the resources of the stack.
#[derive(Debug, Clone, Copy)]
enum Goal {
    Update,
    Destroy {
        /// Whether resources that hold data may be destroyed.
        data: bool,
    },
}

/// Creates, updates and deletes resources until they match the program.
pub(super) async fn update(job: &Job, work: &RunPulumi) -> Result<Done, Failure> {
    run(job, work, Goal::Update).await
}

/// Destroys all resources of the stack.
pub(super) async fn remove(job: &Job, work: &RunPulumi, destroy_data: bool) -> Result<Done, Failure> {
    run(job, work, Goal::Destroy { data: destroy_data }).await
}

async fn run(job: &Job, work: &RunPulumi, goal: Goal) -> Result<Done, Failure> {
    let sdk = sdk_config(job).await;
    let bucket = JobBucket::of(job, &sdk)?;
    let aws = job_aws(job).await?;
    let pulumi = Pulumi::find(job, work, &aws, &bucket)?;
    until_stopped(job, async {
        fetch(job, work).await?;
        stack::write(job, work, &sdk, &bucket).await
    })
    .await?;
    let templates = Templates::of(job);
    let config =
        work.config.iter().map(|(name, value)| Ok((name, templates.value(&format!("config `{name}`"), value)?)));
    let config = config.collect::<Result<BTreeMap<_, _>, Failure>>()?;
    let inputs = json!({ "config": config, "environment": templates.map("environment variable", &work.env_vars)? });
    // This is the last step that can fail or be stopped before the code below, which always writes how the attempt ended.
    let locks = StackLocks::take_over(job, &bucket, &work.component).await?;
    let done = change(&pulumi, (&bucket, &locks), goal, inputs).await;
    aws.finish().await;
    // This also runs after a stop: the mark tells the next attempt whether this attempt left a lock behind.
    let ended = locks.end(&bucket, pulumi.ended_abruptly()).await;
    let done = done?;
    ended.map_err(Failure::after_change)?;
    Ok(done)
}

/// Fetches the program and unpacks it into the workspace.
async fn fetch(job: &Job, work: &RunPulumi) -> Result<(), Failure> {
    let repository = sync_artifact(job, &work.artifact).await?;
    let layer = job.workspace.join("program.tar.gz");
    fetch_layer(&repository, &work.artifact, PROGRAM_LAYER, &layer).await?;
    let (into, from) = (job.workspace.join(PROGRAM), layer.clone());
    let unpacked = tokio::task::spawn_blocking(move || archive::unpack(&from, &into)).await;
    unpacked
        .map_err(|error| Failure::because("could not unpack the program", &error))?
        .map_err(|error| Failure::because("could not unpack the program", &error))?;
    std::fs::remove_file(&layer).map_err(|error| Failure::because("could not remove the packed program", &error))
}

async fn change(
    pulumi: &Pulumi<'_>,
    (bucket, locks): (&JobBucket, &StackLocks),
    goal: Goal,
    inputs: Value,
) -> Result<Done, Failure> {
    let job = pulumi.job();
    let asked = approvals::asked(job).await?;
    pulumi.check_version().await?;
    // Pulumi locks the stack also to create it, so the locks of a killed attempt are removed first.
    locks.remove_stale(job, bucket).await?;
    pulumi.select_stack().await?;
    match goal {
        Goal::Update => {
            let steps = pulumi.preview(PLAN_FILE, job.order.skip_noops || asked.is_any()).await?;
            let plan = PlanFile::copy(job, &Path::new(PROGRAM).join(PLAN_FILE)).await?;
            job.log.line(&format!("plan {}: {steps}", plan.digest()));
            let key = format!("plans/{}/{}.bin", job.order.job, job.fence);
            until_stopped(job, bucket.put_file(&key, plan.file())).await?;
            let skips = job.order.skip_noops || asked.is_any();
            if skips && steps.is_noop() && saved_plan::is_noop(&plan, steps.kept()).await {
                job.log.line(skipped(job));
                return finish(pulumi).await;
            }
            require_permission(job, asked, steps.changes(), inputs).await?;
            // From here on, every failure may leave resources partly created.
            pulumi.up(&plan).await.map_err(Failure::after_change)?;
            finish(pulumi).await.map_err(Failure::after_change)
        }
        Goal::Destroy { data } => {
            let exported = pulumi.export().await?;
            job.log.line(&format!("{} resources to destroy", exported.count()));
            let held = exported.holding_data();
            if !data && !held.is_empty() {
                return Err(Failure::destroys_data(&held));
            }
            require_permission(job, asked, exported.changes(), inputs).await?;
            pulumi.destroy().await.map_err(Failure::after_change)?;
            Ok(Done::default())
        }
    }
}

/// Requires that the policies permit these changes, and that they are approved.
async fn require_permission(
    job: &Job,
    asked: approvals::Asked,
    changes: Vec<Value>,
    inputs: Value,
) -> Result<(), Failure> {
    guard::changes(job, changes.clone()).await?;
    let document = json!({ "resource_changes": changes });
    let planned = approvals::of_plan(&document);
    Box::pin(approvals::require_document_approval(job, asked, planned, (&document, inputs))).await
}

/// Reads the outputs, and stores the values of secret outputs for later jobs.
async fn finish(pulumi: &Pulumi<'_>) -> Result<Done, Failure> {
    let mut outputs = pulumi.outputs().await?;
    let secret: Vec<String> =
        outputs.iter().filter(|(_, value)| holds_secret(value)).map(|(name, _)| name.clone()).collect();
    outputs.retain(|name, _| !secret.contains(name));
    let mut sensitive = BTreeMap::new();
    if !secret.is_empty() {
        sensitive = pulumi.outputs_with_secrets().await?;
        sensitive.retain(|name, _| secret.contains(name));
    }
    let sensitive = keep_sensitive(pulumi.job(), sensitive).await?;
    Ok(Done { outputs, sensitive, artifact: None })
}

/// Returns whether Pulumi masked `value` or a part of it.
fn holds_secret(value: &Value) -> bool {
    match value {
        Value::String(text) => text == SECRET,
        Value::Array(items) => items.iter().any(holds_secret),
        Value::Object(map) => map.values().any(holds_secret),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_output_with_a_secret_inside_is_secret() {
        assert!(holds_secret(&json!("[secret]")) && holds_secret(&json!({ "a": [1, "[secret]"] })));
        assert!(!holds_secret(&json!({ "a": ["secret", null, true] })));
    }
}
