//! Approvals with real programs: the runner applies exactly the plan that people approved, or nothing. The vendor's and the
//! customer's approval, a rejection, bytes that were changed, a state that changed, and a runner that is killed in between.

use anyhow::{Context as _, ensure};
use freehold_protocol::Digest;
use freehold_protocol::api::{JobView, PlanView};
use freehold_protocol::approval::{Side, approval_object};
use freehold_tests::harness::wait::{SOON, until};
use freehold_tests::harness::{Capability, Install, Needs, World, app};
use serde_json::Value;

const IAM: Needs = Needs {
    cloud: &[Capability::HttpApi, Capability::Registry, Capability::IamEnforced],
    programs: &["bwrap", "terraform|tofu"],
};
const OPEN: Needs = Needs {
    cloud: &[Capability::HttpApi, Capability::Registry, Capability::EmptyAccounts],
    programs: &["bwrap", "terraform|tofu"],
};

const COMPONENT: &str =
    "name = \"net\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.3\"\nsource = \"../net\"\n";
const STATE: &str = "terraform/net.tfstate";

fn module(value: &str) -> String {
    format!("resource \"terraform_data\" \"this\" {{ input = \"{value}\" }}\n")
}

/// Ships a version whose module holds `value`, and starts its deploy. Returns the job of the component when it waits.
async fn waits(world: &World, directory: &std::path::Path, value: &str) -> anyhow::Result<(JobView, PlanView)> {
    app::write(directory, "net/main.tf", &module(value))?;
    world.ship(directory).await?;
    world.vendor(&["deploy", "globex", "--no-wait"]).await?;
    waiting(world).await
}

/// Returns the job of the component and its plan, once it waits for an approval.
async fn waiting(world: &World) -> anyhow::Result<(JobView, PlanView)> {
    until("the plan waits", SOON, || async {
        let Ok(job) = job(world).await else { return Ok(None) };
        ensure!(job.ended_at.is_none(), "the job ended: {job:?}");
        Ok(job.plan.clone().map(|plan| (job, plan)))
    })
    .await
}

/// Returns the job of the component in the newest workflow.
async fn job(world: &World) -> anyhow::Result<JobView> {
    let workflow = world.newest_workflow("globex").await?;
    let nodes = workflow["nodes"].as_array().context("no nodes")?;
    let id = nodes.iter().find(|node| node["name"] == "net").and_then(|node| node["job"].as_str());
    let id = id.with_context(|| format!("no job of `net`: {workflow}"))?;
    Ok(serde_json::from_value(world.vendor(&["job", "show", id]).await?)?)
}

/// Waits until the newest workflow has ended, and returns the component's job.
async fn ended(world: &World) -> anyhow::Result<JobView> {
    until("the workflow ends", SOON, || async {
        let workflow = world.newest_workflow("globex").await?;
        if workflow["ended_at"].is_null() { Ok(None) } else { Ok(Some(job(world).await?)) }
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

async fn state(world: &World, install: &Install) -> anyhow::Result<String> {
    Ok(String::from_utf8(object(world, install, STATE).await?)?)
}

fn small(world: &World) -> anyhow::Result<std::path::PathBuf> {
    let directory = app::small(world.directory())?;
    app::write(&directory, "components/net.toml", COMPONENT)?;
    app::write(&directory, "net/main.tf", &module("one"))?;
    Ok(directory)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runner_applies_exactly_the_plan_that_the_vendor_approved_or_nothing() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_approvals", IAM).await? else { return Ok(()) };
    let directory = small(&world)?;
    world.ship(&directory).await?;
    let install = world.install("globex", "small").await?;
    let mut runner = world.runner(&install).await?;
    world.provisioned(&install).await?;
    world.vendor(&["install", "approvals", "globex", "prompt"]).await?;

    // A plan that changes nothing waits for nobody.
    world.vendor(&["deploy", "globex", "--all"]).await?;
    assert_eq!(job(&world).await?.state, "succeeded");

    // The runner is killed between the plan and the approval, and again between the approval and the apply.
    let (one, plan) = waits(&world, &directory, "two").await?;
    runner.kill().await?;
    runner.start_again()?;
    let wrong = Digest::of(b"other");
    let words = ["job", "approve", one.job.as_str(), "--plan", wrong.as_str()];
    let other = world.run(&words).await?;
    let untouched = state(&world, &install).await?;
    runner.kill().await?;
    approve(&world, &one, &plan.proposed.plan).await?;
    runner.start_again()?;
    let done = ended(&world).await?;

    assert_eq!((other.code, plan.waits_for.as_slice()), (4, [Side::Vendor].as_slice()), "{}", other.error);
    assert_eq!((plan.proposed.summary.update, plan.proposed.summary.count()), (1, 1), "{plan:?}");
    assert_eq!(plan.proposed.summary.changes[0].address, "terraform_data.this");
    ensure!(!serde_json::to_string(&plan)?.contains("two"), "the summary has a value: {plan:?}");
    ensure!(untouched.contains("\"one\"") && !untouched.contains("\"two\""), "{untouched}");
    assert_eq!(done.state, "succeeded", "{done:?}");
    let approval = done.approval.context("no approval")?;
    assert_eq!(approval.plan, plan.proposed.plan);
    ensure!(approval.by.is_some(), "{approval:?}");
    ensure!(state(&world, &install).await?.contains("\"two\""), "the plan was not applied");

    // Who rejects a plan ends the job.
    let (two, plan) = waits(&world, &directory, "three").await?;
    let hash = plan.proposed.plan.as_str();
    world.vendor(&["job", "reject", two.job.as_str(), "--plan", hash, "--reason", "not today"]).await?;
    let rejected = ended(&world).await?;
    assert_eq!(rejected.state, "blocked");
    ensure!(rejected.reason.contains("rejected the plan: not today"), "{}", rejected.reason);

    // Whoever exchanges the bytes of an approved plan gains nothing.
    let (three, plan) = waits(&world, &directory, "four").await?;
    let fence = three.fence.context("no fence")?;
    put(&world, &install, &format!("plans/{}/{fence}.bin", three.job), b"another plan".to_vec()).await?;
    approve(&world, &three, &plan.proposed.plan).await?;
    let tampered = ended(&world).await?;
    assert_eq!(tampered.state, "blocked", "{tampered:?}");
    ensure!(tampered.reason.contains("has other bytes than"), "{}", tampered.reason);

    // A state that has changed needs a new plan and a new approval.
    let (four, plan) = waits(&world, &directory, "five").await?;
    let mut moved: Value = serde_json::from_str(&state(&world, &install).await?)?;
    moved["serial"] = (moved["serial"].as_u64().context("no serial")? + 1).into();
    put(&world, &install, STATE, serde_json::to_vec(&moved)?).await?;
    approve(&world, &four, &plan.proposed.plan).await?;
    let (anew, second) = until("another plan waits", SOON, || async {
        let (job, found) = waiting(&world).await?;
        Ok((found.proposed.plan != plan.proposed.plan).then_some((job, found)))
    })
    .await?;
    let why = second.proposed.instead.clone().context("no reason")?;
    ensure!(why.contains("the state has changed"), "{why}");
    ensure!(!state(&world, &install).await?.contains("\"five\""), "the old plan was applied");
    approve(&world, &anew, &second.proposed.plan).await?;
    assert_eq!(ended(&world).await?.state, "succeeded");
    ensure!(state(&world, &install).await?.contains("\"five\""), "the new plan was not applied");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_customer_approves_under_their_own_identity_and_nobody_else_can() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_approvals_customer", IAM).await? else { return Ok(()) };
    let directory = small(&world)?;
    world.ship(&directory).await?;
    let install = world.install_answering("globex", "small", &["ApproveChanges=all"]).await?;
    world.vendor(&["install", "approvals", "globex", "prompt"]).await?;
    let _runner = world.runner(&install).await?;

    let (job, plan) = waiting(&world).await?;
    let hash = plan.proposed.plan.as_str();
    assert_eq!(plan.waits_for, [Side::Vendor, Side::Customer]);
    for role in ["runner", "provision", "maintenance", "deprovision"] {
        let credentials = world.role(&install.account, &format!("fh-acme--globex--{role}")).await;
        let Ok(credentials) = credentials else { continue };
        let forger = aws_sdk_s3::Client::new(&world.acting_as(credentials)?);
        let key = approval_object(&plan.proposed.plan);
        let forged = forger.put_object().bucket(bucket(&install)).key(key).body(b"{}".to_vec().into()).send().await;
        ensure!(forged.is_err(), "role `{role}` wrote an approval");
    }
    approve(&world, &job, &plan.proposed.plan).await?;
    let half = self::job(&world).await?;
    let customer = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        let (world, account) = (&world, install.account.clone());
        async move {
            let all: Vec<&str> = words.iter().map(String::as_str).collect();
            let all = [&["customer"], all.as_slice(), &["--tenant", world.tenant(), "--json"]].concat();
            world.command(&account, &all).await?.json()
        }
    };
    let asked = customer(&["approvals", "globex"]).await?;
    let approval = customer(&["approve", "globex", "--plan", hash]).await?;
    let done = ended(&world).await?;
    let approvals = customer(&["approvals", "globex"]).await?;

    assert_eq!(half.plan.map(|plan| plan.waits_for), Some(vec![Side::Customer]));
    assert_eq!(asked["answer"]["waiting"][0]["plan"], hash, "{asked}");
    assert_eq!(approval["decision"], "approved", "{approval}");
    assert_eq!(done.state, "succeeded", "{done:?}");
    let applied = &approvals["answer"]["applied"][0];
    assert_eq!((&applied["plan"], applied["customer"].is_string()), (&hash.into(), true), "{approvals}");
    ensure!(applied["vendor"]["arn"].is_string(), "{approvals}");

    // A rejection ends the job, and the vendor sees by whom.
    let (_, plan) = waits(&world, &directory, "two").await?;
    let hash = plan.proposed.plan.as_str();
    customer(&["reject", "globex", "--plan", hash, "--reason", "after the audit"]).await?;
    let rejected = ended(&world).await?;
    ensure!(rejected.reason.contains("(customer) rejected the plan: after the audit"), "{}", rejected.reason);
    assert_eq!(rejected.state, "blocked");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn stacks_images_and_modules_wait_until_the_customer_approves_each() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_approvals_kinds", OPEN).await? else { return Ok(()) };
    let demo = app::demo(world.directory(), &[1000])?;
    world.ship(&demo).await?;
    let install = world.install_answering("globex", "demo", &["ApproveChanges=all"]).await?;
    let _runner = world.runner(&install).await?;

    let workflow = until("the provisioning ends", SOON * 3, || {
        let (world, install) = (&world, &install);
        async move {
            let workflow_view = world.newest_workflow("globex").await?;
            for node in workflow_view["nodes"].as_array().into_iter().flatten() {
                let (Some(job), "waiting_for_approval") =
                    (node["job"].as_str(), node["state"].as_str().unwrap_or_default())
                else {
                    continue;
                };
                let view: JobView = serde_json::from_value(world.vendor(&["job", "show", job]).await?)?;
                let Some(plan) = view.plan.filter(|plan| !plan.waits_for.is_empty()) else { continue };
                // To approve a plan again changes nothing.
                let words = ["customer", "approve", "globex", "--plan", plan.proposed.plan.as_str()];
                let words = [&words[..], &["--tenant", world.tenant(), "--json"]].concat();
                world.command(&install.account, &words).await?.json()?;
            }
            Ok((!workflow_view["ended_at"].is_null()).then_some(workflow_view))
        }
    })
    .await?;

    assert_eq!(workflow["state"], "succeeded", "{workflow}");
    for node in workflow["nodes"].as_array().into_iter().flatten() {
        let Some(job) = node["job"].as_str().filter(|_| node["name"] != "preflight:install") else { continue };
        let view: JobView = serde_json::from_value(world.vendor(&["job", "show", job]).await?)?;
        let waited = view.history.iter().any(|one| one.to == "waiting_for_approval");
        ensure!(waited, "`{}` did not wait: {view:?}", view.node);
    }
    Ok(())
}
