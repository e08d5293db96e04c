//! An approval counts for one plan only: one of a plan that was rejected, or that a newer one has replaced, is refused.

use anyhow::ensure;
use freehold_tests::harness::{Install, Runner, World};

use super::parts::{Part, app_with_parts};
use super::plans::{Waiting, applied, deploy};
use super::{NEEDS, sweep, workflow_ended};

/// A change of parts by one deploy.
pub(super) struct Change<'a> {
    pub(super) parts: &'a [Part],
    /// The options of a deploy of these parts, and those that change them.
    pub(super) scope: &'a [&'a str],
    pub(super) input: &'a [&'a str],
    /// What each part has after the change.
    pub(super) value: &'a str,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_plan_and_one_that_is_out_of_date_are_not_applied_in_any_kind_of_part() -> anyhow::Result<()> {
    let Some(mut world) = World::start("cloud_approvals.older_plans", NEEDS).await? else { return Ok(()) };
    let directory = app_with_parts(&mut world)?;
    world.ship(&directory).await?;
    let install = world.install("globex", "small").await?;
    let mut runner = world.runner(&install).await?;
    world.provisioned(&install).await?;
    world.vendor(&["install", "approvals", "globex", "prompt"]).await?;

    for (parts, input) in [(&[Part::Sandbox][..], "zone:=2"), (&Part::COMPONENTS[..], "size:=2")] {
        let change = Change { parts, scope: &[], input: &["--input", input], value: "2" };
        change_with_approval(&world, &install, &mut runner, &change).await?;
    }
    Ok(())
}

/// Changes parts. Their plans are rejected, then made again, then out of date, and then approved and applied once. The
/// runner is killed between the plans and the approvals, and between the approvals and the applies.
pub(super) async fn change_with_approval(
    world: &World,
    install: &Install,
    runner: &mut Runner,
    change: &Change<'_>,
) -> anyhow::Result<()> {
    let rejected = reject_all(world, install, change).await?;
    let old = deploy(world, install, change.parts, change.scope).await?;
    runner.kill().await?;
    runner.start_again()?;
    for (one, rejected) in old.iter().zip(&rejected) {
        one.refuses(world, &rejected.plan).await?;
    }
    let new = plan_all_anew(world, install, &old).await?;
    runner.kill().await?;
    for one in &new {
        one.approve(world).await?;
    }
    runner.start_again()?;
    for one in &new {
        one.succeeds_once(world, install, change.value).await?;
    }

    let applied = applied(world, install).await?;
    for one in &new {
        one.was_applied_once(world, install, &applied).await?;
    }
    for one in rejected.iter().chain(&old) {
        one.was_not_applied(&applied)?;
    }
    let workflow = workflow_ended(world).await?;
    ensure!(workflow["state"] == "succeeded", "{workflow}");
    Ok(())
}

/// Starts the deploy of the change, and rejects each plan. Returns the plans once the deploy has failed.
async fn reject_all(world: &World, install: &Install, change: &Change<'_>) -> anyhow::Result<Vec<Waiting>> {
    let options = [change.scope, change.input].concat();
    let plans = deploy(world, install, change.parts, &options).await?;
    for one in &plans {
        one.reject(world, install).await?;
    }
    sweep(world).await?;
    let workflow = workflow_ended(world).await?;
    ensure!(workflow["state"] == "failed", "{workflow}");
    Ok(plans)
}

/// Changes by hand what each part has, and approves the plans, which are out of date then. Returns the plans that the
/// jobs make instead; the older ones can no longer be approved.
async fn plan_all_anew(world: &World, install: &Install, plans: &[Waiting]) -> anyhow::Result<Vec<Waiting>> {
    for one in plans {
        one.part.change_by_hand(world, install).await?;
        one.approve(world).await?;
    }
    let mut new = Vec::new();
    for one in plans {
        let anew = one.planned_anew(world, install).await?;
        anew.refuses(world, &one.plan).await?;
        new.push(anew);
    }
    Ok(new)
}
