//! The vendor's approval: bytes that were changed, a state that changed, a rejection, and a runner that is killed in
//! between.

use anyhow::{Context as _, ensure};
use freehold_protocol::Digest;
use freehold_protocol::approval::Side;
use freehold_tests::harness::{Install, World};

use super::{NEEDS, NET, STATE, app_with_module, approve, ended, job, object, put, raise_serial, waiting_anew, waits};

#[tokio::test(flavor = "multi_thread")]
async fn the_runner_applies_exactly_the_plan_that_the_vendor_approved_or_nothing() -> anyhow::Result<()> {
    let Some(world) = World::start("cloud_approvals", NEEDS).await? else { return Ok(()) };
    let directory = app_with_module(&world)?;
    world.ship(&directory).await?;
    let install = world.install("globex", "small").await?;
    let mut runner = world.runner(&install).await?;
    world.provisioned(&install).await?;
    world.vendor(&["install", "approvals", "globex", "prompt"]).await?;

    // A plan that changes nothing waits for nobody.
    world.vendor(&["deploy", "globex", "--all"]).await?;
    assert_eq!(job(&world, NET).await?.state, "succeeded");

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
    let done = ended(&world, NET).await?;

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
    let rejected = ended(&world, NET).await?;
    assert_eq!(rejected.state, "blocked");
    ensure!(rejected.reason.contains("rejected the plan: not today"), "{}", rejected.reason);

    // Whoever exchanges the bytes of an approved plan gains nothing.
    let (three, plan) = waits(&world, &directory, "four").await?;
    let fence = three.fence.context("no fence")?;
    put(&world, &install, &format!("plans/{}/{fence}.bin", three.job), b"another plan".to_vec()).await?;
    approve(&world, &three, &plan.proposed.plan).await?;
    let tampered = ended(&world, NET).await?;
    assert_eq!(tampered.state, "blocked", "{tampered:?}");
    ensure!(tampered.reason.contains("has other bytes than"), "{}", tampered.reason);

    // A state that has changed needs a new plan and a new approval.
    let (four, plan) = waits(&world, &directory, "five").await?;
    raise_serial(&world, &install, STATE).await?;
    approve(&world, &four, &plan.proposed.plan).await?;
    let (anew, second) = waiting_anew(&world, NET, &plan.proposed.plan).await?;
    let why = second.proposed.instead.clone().context("no reason")?;
    ensure!(why.contains("the state has changed"), "{why}");
    ensure!(!state(&world, &install).await?.contains("\"five\""), "the old plan was applied");
    approve(&world, &anew, &second.proposed.plan).await?;
    assert_eq!(ended(&world, NET).await?.state, "succeeded");
    ensure!(state(&world, &install).await?.contains("\"five\""), "the new plan was not applied");
    Ok(())
}

async fn state(world: &World, install: &Install) -> anyhow::Result<String> {
    Ok(String::from_utf8(object(world, install, STATE).await?)?)
}
