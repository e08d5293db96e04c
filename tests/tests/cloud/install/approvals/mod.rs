//! Approvals with real programs: the runner applies exactly the plan that people approved, or nothing. This file has
//! what the scenarios share: an app with one module, the job of a part, and the install's bucket.

mod charts_and_manifests;
mod cluster;
mod content;
mod customer;
mod every_kind;
mod exact_plan;
mod expiry;
mod killed_runner;
mod older_plans;
mod parts;
mod plans;
mod whole_work;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use freehold_protocol::api::{JobView, PlanView};
use freehold_protocol::{Digest, JobId};
use freehold_tests::harness::wait::{SOON, until};
use freehold_tests::harness::{Capability, Install, Needs, World, app, clients};
use serde_json::Value;

const NEEDS: Needs = Needs {
    cloud: &[Capability::HttpApi, Capability::Registry, Capability::IamEnforced],
    programs: &["bwrap", "terraform|tofu"],
};

/// The only component of the app with one module.
const NET: &str = "net";
const COMPONENT: &str =
    "name = \"net\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"../net\"\n";
const STATE: &str = "terraform/net.tfstate";

fn module(value: &str) -> String {
    format!("resource \"terraform_data\" \"this\" {{ input = \"{value}\" }}\n")
}

/// Writes an app whose only component is a module.
fn app_with_module(world: &World) -> anyhow::Result<PathBuf> {
    let directory = app::small(world.directory())?;
    app::write(&directory, "components/net.toml", COMPONENT)?;
    app::write(&directory, "net/main.tf", &module("one"))?;
    Ok(directory)
}

/// Ships a version whose module holds `value`, and starts its deploy. Returns the job of the component when it waits.
async fn waits(world: &World, directory: &Path, value: &str) -> anyhow::Result<(JobView, PlanView)> {
    app::write(directory, "net/main.tf", &module(value))?;
    world.ship(directory).await?;
    world.vendor(&["deploy", "globex", "--no-wait"]).await?;
    waiting(world, NET).await
}

/// Returns the job of a node and its plan, once it waits for an approval.
async fn waiting(world: &World, node: &str) -> anyhow::Result<(JobView, PlanView)> {
    until(&format!("the plan of `{node}` waits"), SOON, || async {
        let Ok(job) = job(world, node).await else { return Ok(None) };
        ensure!(job.ended_at.is_none(), "the job ended: {job:?}");
        Ok(job.plan.clone().map(|plan| (job, plan)))
    })
    .await
}

/// Returns the job of a node and its plan, once it waits for the approval of another plan than `older`.
async fn waiting_anew(world: &World, node: &str, older: &Digest) -> anyhow::Result<(JobView, PlanView)> {
    until(&format!("another plan of `{node}` waits"), SOON, || async {
        let (job, found) = waiting(world, node).await?;
        Ok((found.proposed.plan != *older).then_some((job, found)))
    })
    .await
}

/// Returns the job of a node in the newest workflow.
async fn job(world: &World, node: &str) -> anyhow::Result<JobView> {
    let workflow = world.newest_workflow("globex").await?;
    let nodes = workflow["nodes"].as_array().context("no nodes")?;
    let id = nodes.iter().find(|one| one["name"] == node).and_then(|one| one["job"].as_str());
    let id = id.with_context(|| format!("no job of `{node}`: {workflow}"))?;
    Ok(serde_json::from_value(world.vendor(&["job", "show", id]).await?)?)
}

/// Returns a job once it has ended.
async fn job_ended(world: &World, job: &JobId) -> anyhow::Result<JobView> {
    until(&format!("job `{job}` ends"), SOON, || async {
        let view: JobView = serde_json::from_value(world.vendor(&["job", "show", job.as_str()]).await?)?;
        Ok(view.ended_at.is_some().then_some(view))
    })
    .await
}

/// Returns the newest workflow once it has ended.
async fn workflow_ended(world: &World) -> anyhow::Result<Value> {
    until("the workflow ends", SOON, || async {
        let workflow = world.newest_workflow("globex").await?;
        Ok((!workflow["ended_at"].is_null()).then_some(workflow))
    })
    .await
}

/// Waits until the newest workflow has ended, and returns the job of a node.
async fn ended(world: &World, node: &str) -> anyhow::Result<JobView> {
    workflow_ended(world).await?;
    job(world, node).await
}

/// Approves a plan as the vendor.
async fn approve(world: &World, job: &JobView, plan: &Digest) -> anyhow::Result<()> {
    world.vendor(&["job", "approve", job.job.as_str(), "--plan", plan.as_str()]).await?;
    sweep(world).await
}

/// Lets the sweep perform the effects of a decision at once. The schedule calls it each minute.
async fn sweep(world: &World) -> anyhow::Result<()> {
    clients::invoke(&world.administrator(world.tenant_account())?, world.tenant(), "sweep").await
}

fn s3(world: &World, install: &Install) -> anyhow::Result<aws_sdk_s3::Client> {
    Ok(aws_sdk_s3::Client::new(&world.administrator(&install.account)?))
}

fn bucket(install: &Install) -> String {
    format!("fh-acme--globex--{}", install.account)
}

async fn object(world: &World, install: &Install, key: &str) -> anyhow::Result<Vec<u8>> {
    find_object(world, install, key).await?.with_context(|| format!("the bucket has no object `{key}`"))
}

async fn find_object(world: &World, install: &Install, key: &str) -> anyhow::Result<Option<Vec<u8>>> {
    match s3(world, install)?.get_object().bucket(bucket(install)).key(key).send().await {
        Ok(answer) => Ok(Some(answer.body.collect().await?.to_vec())),
        Err(error) if error.as_service_error().is_some_and(|error| error.is_no_such_key()) => Ok(None),
        Err(error) => Err(error).with_context(|| format!("reading `{key}`")),
    }
}

async fn put(world: &World, install: &Install, key: &str, body: Vec<u8>) -> anyhow::Result<()> {
    let put = s3(world, install)?.put_object().bucket(bucket(install)).key(key).body(body.into()).send().await;
    put.map(drop).with_context(|| format!("writing `{key}`"))
}

/// Raises the serial of a module's state, as a change by somebody else does.
async fn raise_serial(world: &World, install: &Install, key: &str) -> anyhow::Result<()> {
    let mut state: Value = serde_json::from_slice(&object(world, install, key).await?)?;
    state["serial"] = (state["serial"].as_u64().context("a state without a serial")? + 1).into();
    put(world, install, key, serde_json::to_vec(&state)?).await
}
