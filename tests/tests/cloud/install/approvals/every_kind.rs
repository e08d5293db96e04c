//! Each kind of part waits for its approval from the first deploy on, and is applied once when its runner is killed.

use anyhow::{Context as _, ensure};
use freehold_protocol::approval::use_object;
use freehold_skips::have;
use freehold_tests::harness::wait::SOON;
use freehold_tests::harness::{Install, Proxies, Runner, World};
use freehold_tests::proxy::parse_rules;

use super::NEEDS;
use super::content::Content;
use super::parts::{Part, app_with_parts};
use super::plans::{Waiting, all_wait, applied};

const SEED: u64 = 15;

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_of_part_waits_and_is_applied_once_although_its_runner_is_killed() -> anyhow::Result<()> {
    if !have(NEEDS.programs) {
        return Ok(());
    }
    let proxies = Proxies::start(SEED).await?;
    let mut world = World::start_behind(&proxies, None).await?;
    let directory = app_with_parts(&mut world)?;
    world.ship(&directory).await?;
    let install = world.install("globex", "small").await?;
    world.vendor(&["install", "approvals", "globex", "prompt"]).await?;
    let mut runner = world.runner(&install).await?;

    for parts in [&[Part::Sandbox][..], &Part::COMPONENTS] {
        let plans = all_wait(&world, &install, parts, vec![Content::default(); parts.len()]).await?;
        // The runner is killed between the plans and their approvals.
        runner.kill().await?;
        runner.start_again()?;
        for one in &plans {
            approve_and_kill(&world, &install, (&proxies, &mut runner), one).await?;
            let job = one.succeeds_once(&world, &install, "1").await?;
            let fence = job.fence.context("no fence")?;
            ensure!(fence.dispatch == 2 && fence.receive > 1, "its order was not delivered again: {job:?}");
        }
        let applied = applied(&world, &install).await?;
        for one in &plans {
            one.was_applied_once(&world, &install, &applied).await?;
        }
    }
    let provisioned = world.provisioned(&install).await?;

    assert_eq!(provisioned["state"], "succeeded", "{provisioned}");
    Ok(())
}

/// Approves a plan, and kills its runner (-9) between the approval and the apply: when it has noted that it applies the
/// plan. Then starts the runner again.
async fn approve_and_kill(
    world: &World,
    install: &Install,
    (proxies, runner): (&Proxies, &mut Runner),
    plan: &Waiting,
) -> anyhow::Result<()> {
    let rule = format!("s3.PutObject 1 kill-after about={} times=1", use_object(&plan.plan));
    proxies.runners.set_faults(SEED, parse_rules(&rule)?);
    plan.approve(world).await?;
    runner.ends(SOON).await?;
    plan.changed_nothing(world, install).await?;
    proxies.runners.set_faults(SEED, Vec::new());
    runner.start_again()
}
