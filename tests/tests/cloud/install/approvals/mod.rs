//! Approvals with real programs: the runner applies exactly the plan that people approved, or nothing. This file has what the
//! scenarios share: an app with one module, the job of a part, and the install's bucket.

mod customer;
mod exact_plan;
mod whole_work;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use freehold_protocol::Digest;
use freehold_protocol::api::{JobView, PlanView};
use freehold_tests::harness::wait::{SOON, until};
use freehold_tests::harness::{Capability, Install, Needs, World, app};
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

/// Waits until the newest workflow has ended, and returns the job of a node.
async fn ended(world: &World, node: &str) -> anyhow::Result<JobView> {
    until("the workflow ends", SOON, || async {
        let workflow = world.newest_workflow("globex").await?;
        if workflow["ended_at"].is_null() { Ok(None) } else { Ok(Some(job(world, node).await?)) }
    })
    .await
}

async fn approve(world: &World, job: &JobView, plan: &Digest) -> anyhow::Result<Value> {
    world.vendor(&["job", "approve", job.job.as_str(), "--plan", plan.as_str()]).await
}

fn s3(world: &World, install: &Install) -> anyhow::Result<aws_sdk_s3::Client> {
    Ok(aws_sdk_s3::Client::new(&world.administrator(&install.account)?))
}

fn bucket(install: &Install) -> String {
    format!("fh-acme--globex--{}", install.account)
}

async fn object(world: &World, install: &Install, key: &str) -> anyhow::Result<Vec<u8>> {
    let answer = s3(world, install)?.get_object().bucket(bucket(install)).key(key).send().await;
    Ok(answer.with_context(|| format!("reading `{key}`"))?.body.collect().await?.to_vec())
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
