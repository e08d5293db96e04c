//! The runner is killed (-9) at each boundary between a plan and the end of its job: one plan is applied, once.

use anyhow::{Context as _, ensure};
use freehold_protocol::Digest;
use freehold_protocol::approval::{PLANS, record_object};
use freehold_skips::have;
use freehold_tests::harness::wait::SOON;
use freehold_tests::harness::{Install, Proxies, Runner, World};
use freehold_tests::proxy::parse_rules;

use super::parts::{Part, app_with_parts};
use super::plans::{Waiting, all_wait, applied, deploy};
use super::{NEEDS, bucket, s3};

const SEED: u64 = 85;

/// The calls at which the runner dies before its plan waits: when it stores the bytes of the plan, when it stores the
/// record, and when the record is stored and no report has proposed the plan.
const BEFORE_IT_WAITS: [&str; 3] = [
    "s3.PutObject 1 kill-before about=/plans/job_ times=1",
    "s3.PutObject 1 kill-before about=/locked/_plans/ times=1",
    "s3.PutObject 1 kill-after about=/locked/_plans/ times=1",
];

/// The call at which it dies when Terraform or Pulumi has applied a plan: it writes its second mark, that the attempt
/// has ended.
const WHEN_ITS_TOOL_HAS_ENDED: &str = "s3.PutObject 1 kill-before about=fence.json skip=1 times=1";
/// The call after which it dies when CloudFormation applies a change set.
const WHEN_A_CHANGE_SET_IS_EXECUTED: &str = "cloudformation.ExecuteChangeSet 1 kill-after times=1";

/// An install whose parts are deployed and whose next plans wait for the vendor, behind proxies.
struct Prepared {
    world: World,
    proxies: Proxies,
    install: Install,
    runner: Runner,
}

impl Prepared {
    async fn start() -> anyhow::Result<Self> {
        let proxies = Proxies::start(SEED).await?;
        let mut world = World::start_behind(&proxies, None).await?;
        let directory = app_with_parts(&mut world)?;
        world.ship(&directory).await?;
        let install = world.install("globex", "small").await?;
        let runner = world.runner(&install).await?;
        world.provisioned(&install).await?;
        world.vendor(&["install", "approvals", "globex", "prompt"]).await?;
        Ok(Self { world, proxies, install, runner })
    }

    /// Lets the runner die at a call that it makes from now on.
    fn dies_at(&self, rule: &str) -> anyhow::Result<()> {
        self.proxies.runners.set_faults(SEED, parse_rules(rule)?);
        Ok(())
    }

    /// Waits until the runner has died.
    async fn has_died(&mut self) -> anyhow::Result<()> {
        self.runner.ends(SOON).await?;
        self.proxies.runners.set_faults(SEED, Vec::new());
        Ok(())
    }

    /// Returns the plans whose records are in the bucket.
    async fn stored_plans(&self) -> anyhow::Result<Vec<Digest>> {
        let s3 = s3(&self.world, &self.install)?;
        let page = s3.list_objects_v2().bucket(bucket(&self.install)).prefix(PLANS).send().await?;
        let keys = page.contents().iter().filter_map(|object| object.key()?.strip_prefix(PLANS)?.strip_suffix(".json"));
        keys.map(|hex| Ok(format!("sha256:{hex}").parse()?)).collect()
    }

    /// Checks that a plan was applied once, by an order that was delivered again.
    async fn was_applied_once(&self, plan: &Waiting) -> anyhow::Result<()> {
        let (world, install) = (&self.world, &self.install);
        let job = plan.succeeds_once(world, install, "2").await?;
        let fence = job.fence.context("no fence")?;
        ensure!(fence.dispatch == 2 && fence.receive > 1, "its order was not delivered again: {job:?}");
        plan.was_applied_once(world, install, &applied(world, install).await?).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_dies_around_a_plan_and_its_approval_applies_one_plan_once() -> anyhow::Result<()> {
    if !have(NEEDS.programs) {
        return Ok(());
    }
    let mut prepared = Prepared::start().await?;
    let part = Part::Module;
    let before = part.content(&prepared.world, &prepared.install).await?;

    prepared.dies_at(BEFORE_IT_WAITS[0])?;
    prepared.world.vendor(&["deploy", "globex", "--component", "module", "--input", "size:=2", "--no-wait"]).await?;
    prepared.has_died().await?;
    for rule in &BEFORE_IT_WAITS[1..] {
        prepared.dies_at(rule)?;
        prepared.runner.start_again()?;
        prepared.has_died().await?;
    }
    let unreported = prepared.stored_plans().await?;
    prepared.runner.start_again()?;
    let plans = all_wait(&prepared.world, &prepared.install, &[part], vec![before]).await?;
    let plan = &plans[0];

    // A plan that was stored and never proposed cannot be approved.
    ensure!(unreported.len() == 1 && unreported[0] != plan.plan, "{unreported:?}, {plan:?}");
    plan.refuses(&prepared.world, &unreported[0]).await?;

    // The runner dies when it has the order with the approval, and again when the plan is applied and the job has not
    // ended.
    prepared.dies_at(&format!("s3.GetObject 1 kill-before about={} times=1", record_object(&plan.plan)))?;
    plan.approve(&prepared.world).await?;
    prepared.has_died().await?;
    plan.changed_nothing(&prepared.world, &prepared.install).await?;
    prepared.dies_at(WHEN_ITS_TOOL_HAS_ENDED)?;
    prepared.runner.start_again()?;
    prepared.has_died().await?;
    prepared.runner.start_again()?;
    prepared.was_applied_once(plan).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_dies_after_an_apply_applies_nothing_again() -> anyhow::Result<()> {
    if !have(NEEDS.programs) {
        return Ok(());
    }
    let mut prepared = Prepared::start().await?;
    let parts = [Part::Program, Part::Stack];
    let options = ["--component", "program", "--component", "stack", "--input", "size:=2"];

    let plans = deploy(&prepared.world, &prepared.install, &parts, &options).await?;
    for (plan, rule) in plans.iter().zip([WHEN_ITS_TOOL_HAS_ENDED, WHEN_A_CHANGE_SET_IS_EXECUTED]) {
        prepared.dies_at(rule)?;
        plan.approve(&prepared.world).await?;
        prepared.has_died().await?;
        prepared.runner.start_again()?;
        prepared.was_applied_once(plan).await?;
    }
    Ok(())
}
