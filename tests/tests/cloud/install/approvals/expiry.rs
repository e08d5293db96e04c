//! A plan may be approved and applied for seven days: the clock of the whole cloud is moved. An approval that comes
//! later changes nothing, and the next deploy makes new plans.

use anyhow::ensure;
use freehold_protocol::limits::APPROVAL_SECS;
use freehold_tests::harness::{MovableClock, World};

use super::content::Content;
use super::parts::{Part, app_with_parts};
use super::plans::{Waiting, all_wait, applied, deploy};
use super::{NEEDS, job_ended, sweep, workflow_ended};

const DAY_SECS: i64 = 24 * 60 * 60;

/// The clock of the cloud, and how far it is ahead.
struct Calendar {
    clock: MovableClock,
    ahead_secs: i64,
}

impl Calendar {
    /// Lets the time pass in which a plan may be approved and applied. The sweep runs each day, because it tells the
    /// state machine of a workflow that the workflow is alive.
    async fn pass(&mut self, world: &World) -> anyhow::Result<()> {
        for _ in 0..=i64::try_from(APPROVAL_SECS)? / DAY_SECS {
            self.ahead_secs += DAY_SECS;
            self.clock.set(self.ahead_secs)?;
            sweep(world).await?;
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_that_has_expired_changes_nothing_and_the_next_deploy_plans_anew() -> anyhow::Result<()> {
    let Some((mut world, clock)) = World::start_with_clock("cloud_approvals.expiry", NEEDS.programs).await? else {
        return Ok(());
    };
    let mut calendar = Calendar { clock, ahead_secs: 0 };
    let directory = app_with_parts(&mut world)?;
    world.ship(&directory).await?;
    let install = world.install("globex", "small").await?;
    world.vendor(&["install", "approvals", "globex", "prompt"]).await?;
    let mut runner = world.runner(&install).await?;
    let sandbox = all_wait(&world, &install, &[Part::Sandbox], vec![Content::default()]).await?;
    sandbox[0].approve(&world).await?;
    sandbox[0].succeeds_once(&world, &install, "1").await?;

    // The plans of two components are approved in time, and nobody approves that of Terraform: it takes the time from the
    // kernel, so the cloud with the moved clock refuses its signatures. The runner comes back too late.
    let plans = all_wait(&world, &install, &Part::COMPONENTS, vec![Content::default(); 3]).await?;
    runner.kill().await?;
    let (approved, left): (Vec<_>, Vec<_>) = plans.iter().partition(|one| one.part != Part::Module);
    for one in &approved {
        one.approve(&world).await?;
    }
    calendar.pass(&world).await?;
    // A session of the role ends after an hour, so the runner comes back with a new one.
    let _runner = world.runner(&install).await?;
    for one in &approved {
        let job = job_ended(&world, one.job()).await?;
        let is_expired = job.reason.contains(&format!("plan `{}` is not applied: its approval expired at", one.plan));
        let has_way_out = job.reason.ends_with("; start the job again, which makes a new plan");
        ensure!(job.state == "blocked" && is_expired && has_way_out, "{job:?}");
    }
    for one in &left {
        nobody_approved(&world, one).await?;
    }
    failed(&world).await?;
    let applied = applied(&world, &install).await?;
    for one in &plans {
        one.changed_nothing(&world, &install).await?;
        one.was_not_applied(&applied)?;
    }

    // The next deploy makes a new plan, which is applied once it is approved.
    let plans = deploy(&world, &install, &[Part::Stack], &["--component", "stack"]).await?;
    plans[0].approve(&world).await?;
    plans[0].succeeds_once(&world, &install, "1").await?;
    let workflow = workflow_ended(&world).await?;
    assert_eq!(workflow["state"], "succeeded", "{workflow}");
    Ok(())
}

/// Checks how a job ended whose plan nobody approved, and that the plan can no longer be approved.
async fn nobody_approved(world: &World, plan: &Waiting) -> anyhow::Result<()> {
    let job = job_ended(world, plan.job()).await?;
    let is_late = job.reason.starts_with("not all approvals of the plan came before");
    let has_way_out = job.reason.ends_with("(missing: vendor), so nothing was changed; start the job again");
    ensure!(job.state == "blocked" && is_late && has_way_out, "{job:?}");
    let words = ["job", "approve", plan.job().as_str(), "--plan", plan.plan.as_str()];
    let late = world.run(&words).await?.ended_with(4)?;
    ensure!(late.contains("is blocked, and does not wait for an approval"), "{late}");
    Ok(())
}

/// Waits until the newest workflow has failed.
async fn failed(world: &World) -> anyhow::Result<()> {
    sweep(world).await?;
    let workflow = workflow_ended(world).await?;
    ensure!(workflow["state"] == "failed", "{workflow}");
    Ok(())
}
