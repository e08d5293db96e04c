//! A local cloud of its own behind fault proxies, with a tenant, one install of the ledger app and its runner: where faults are
//! tried one after the other, beside other cells.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use freehold_app::table;
use freehold_aws::store::DynamoStore;
use freehold_domain::job::Job;
use freehold_domain::workflow::{NodeState, Workflow, WorkflowState};
use freehold_protocol::WorkflowId;
use serde_json::Value;
use tokio::time::Instant;

use super::calls::{Calls, Work};
use super::queues::Queues;
use crate::harness::command::environment;
use crate::harness::wait::until;
use crate::harness::{Install, Proxies, Runner, World};
use crate::proxy::{Effects, parse_rules};
use crate::releases::public_key;
use crate::workspace::workspace_root;

/// The install that faults are tried on, and its app.
pub const INSTALL: &str = "globex";
pub const APP: &str = "ledger";
/// The app with a Terraform module, and its install.
const STEPS: &str = "steps";
/// The longest that a workflow may take, whatever fails.
pub const LIMIT: Duration = Duration::from_secs(240);
/// Internal queues give a failed message back after this time, in seconds, instead of after the stack's minute and a half:
/// the tries are about what happens then, not about the wait.
pub(super) const VISIBILITY_SECS: u32 = 3;
/// So long a poll of a runner that was killed stays open: the local cloud gives it the next order, which comes again
/// only when its lease ends.
pub const POLL: Duration = Duration::from_secs(22);
/// A runner gets a new session of its role after this time: a session ends after an hour.
const SESSION: Duration = Duration::from_secs(40 * 60);
/// The key whose releases may replace the runner.
pub(super) const RELEASE_KEY: u8 = 7;
/// What the jobs of an action and of a component may take of the machine.
const LIMITS: &str = "\n[limits]\nmemory_mib = 384\ndisk_mib = 64\n";

/// One local cloud and what runs on it.
#[derive(Debug)]
pub struct Cell {
    pub proxies: Proxies,
    pub world: World,
    pub install: Install,
    pub runner: Runner,
    pub queues: Queues,
    /// Builds the app with a Terraform module. A rule that kills who calls may meet it too.
    builder: Runner,
    store: DynamoStore,
    /// The number of this cell, which is part of its seed.
    seed: u64,
    round: u64,
    tries: u32,
    /// How many calls work made in which nothing failed.
    pub(super) counted: BTreeMap<(Work, Calls), usize>,
    /// Since when the runner has the session of its role.
    session: Instant,
    /// The install of the app with a Terraform module, from the first time that a try needs it, and its runner, which works
    /// during these tries only: rules for the runner's calls would meet both.
    steps: Option<(Install, Option<Runner>)>,
}

/// A workflow that was asked for.
#[derive(Debug, Clone)]
pub struct Begun {
    pub workflow: WorkflowId,
    /// The number of lines in the ledger before, and when the next one was asked for.
    lines: usize,
    until: Option<usize>,
    /// The round that a deploy sets.
    round: Option<u64>,
    /// The round that its stacks show.
    shown: Option<u64>,
}

impl Begun {
    /// Returns it without what was written since `next` was asked for.
    #[must_use]
    pub fn before(&self, next: &Self) -> Self {
        Self { until: Some(next.lines), ..self.clone() }
    }

    /// Returns it as it is after the deploy `next`, which gave the stacks a round of its own.
    #[must_use]
    pub fn followed_by(&self, next: &Self) -> Self {
        Self { shown: next.round, ..self.clone() }
    }

    /// Returns whether a line is of its round; what has no round has all lines.
    fn has(&self, line: &str) -> bool {
        self.round.is_none_or(|round| line.split(' ').nth(2) == Some(round.to_string().as_str()))
    }
}

impl Cell {
    /// Starts a cell with an install that is ready.
    ///
    /// # Errors
    /// What failed.
    pub async fn start(seed: u64) -> anyhow::Result<Self> {
        let proxies = Proxies::start(seed).await?;
        let world = World::start_behind(&proxies, None).await?;
        let builder = world.build_runner().await?;
        let app = workspace_root()?.join("tests/figures").join(APP);
        world.sync_and_build(&app, APP).await?;
        let install = world.install_with_inputs(INSTALL, APP, &["round:=1"]).await?;
        let config = std::fs::read_to_string(&install.config)?;
        let (none, key) = ("release_key = \"none\"", public_key(RELEASE_KEY));
        ensure!(config.contains(none), "`{}` names a release key already", install.config.display());
        let config = config.replace(none, &format!("release_key = \"{key}\""));
        std::fs::write(&install.config, format!("{config}{LIMITS}"))?;
        let runner = world.runner(&install).await?;
        let provisioned = world.provisioned(&install).await?;
        ensure!(provisioned["state"] == "succeeded", "{provisioned}\n{}", runner.log());
        let store = DynamoStore::new(&world.administrator(world.tenant_account())?, format!("fh-{}", world.tenant()));
        let queues = Queues::new(&world)?;
        queues.hide_failed_for(VISIBILITY_SECS).await?;
        Ok(Self {
            proxies,
            world,
            install,
            runner,
            queues,
            builder,
            store,
            seed,
            round: 1,
            tries: 0,
            counted: BTreeMap::new(),
            session: Instant::now(),
            steps: None,
        })
    }

    /// Returns a number that no other try of this cell has.
    pub fn next_try(&mut self) -> u32 {
        self.tries += 1;
        self.tries
    }

    /// Starts the runner again with a new session of its role, before the old one ends.
    ///
    /// # Errors
    /// When that does not work.
    pub async fn renew(&mut self) -> anyhow::Result<()> {
        if self.session.elapsed() < SESSION {
            return Ok(());
        }
        let role = format!("fh-{}--{INSTALL}--runner", self.world.tenant());
        let keys = self.world.role(&self.install.account, &role).await?;
        let fresh = environment(Some(&self.proxies.runners.url()), &keys);
        let mut how = self.runner.how();
        how.environment.retain(|(name, _)| !fresh.iter().any(|(new, _)| new == name));
        how.environment.extend(fresh);
        self.runner.kill().await?;
        self.runner = Runner::start(how)?;
        self.session = Instant::now();
        tokio::time::sleep(POLL).await;
        Ok(())
    }

    /// Starts the build runner again if it has died.
    fn revive_builder(&mut self) -> anyhow::Result<()> {
        if !self.builder.is_alive()? {
            self.builder.start_again()?;
        }
        Ok(())
    }

    /// What jobs wrote.
    pub fn effects(&self) -> &Effects {
        self.proxies.runners.effects()
    }

    // Faults

    /// Lets calls of the functions fail by these rules, from zero counts on.
    ///
    /// # Errors
    /// When they are not rules.
    pub fn on_functions(&self, rules: &str) -> anyhow::Result<()> {
        self.forget_hits();
        self.proxies.functions.set_faults(self.seed ^ u64::from(self.tries), parse_rules(rules)?);
        Ok(())
    }

    /// Lets calls of the runner fail by these rules, from zero counts on.
    ///
    /// # Errors
    /// When they are not rules.
    pub fn on_runner(&self, rules: &str) -> anyhow::Result<()> {
        self.forget_hits();
        self.proxies.runners.set_faults(self.seed ^ u64::from(self.tries), parse_rules(rules)?);
        Ok(())
    }

    /// Forgets the faults of both sides: those of the other one may be of an earlier try.
    fn forget_hits(&self) {
        self.proxies.functions.reset_counts();
        self.proxies.runners.reset_counts();
    }

    /// Lets nothing fail, and jobs continue.
    pub fn calm(&self) {
        self.proxies.functions.set_faults(self.seed, Vec::new());
        self.proxies.runners.set_faults(self.seed, Vec::new());
        self.effects().hold(false);
    }

    /// Returns how many calls met a fault since rules were set last.
    pub fn hits(&self) -> u64 {
        self.proxies.functions.counts().injected("*") + self.proxies.runners.counts().injected("*")
    }

    /// Waits for at most `limit` until a call has met a fault.
    pub async fn hit_within(&self, limit: Duration) {
        let hit = || async { Ok((self.hits() > 0).then_some(())) };
        drop(until("a call meets a fault", limit, hit).await);
    }

    // Work

    /// Starts an action.
    ///
    /// # Errors
    /// When the tenant refuses it.
    pub async fn act(&self, action: &str) -> anyhow::Result<Begun> {
        self.act_with(action, &[]).await
    }

    /// As [`Cell::act`], with inputs (`name=text`).
    ///
    /// # Errors
    /// When the tenant refuses it.
    pub async fn act_with(&self, action: &str, inputs: &[&str]) -> anyhow::Result<Begun> {
        let lines = self.effects().lines().len();
        let inputs: Vec<&str> = inputs.iter().flat_map(|input| ["--input", input]).collect();
        let start = [&["action", "run", INSTALL, action, "--no-wait"], &inputs[..]].concat();
        let started = self.world.vendor(&start).await?;
        Ok(Begun { workflow: id(&started)?, lines, until: None, round: None, shown: None })
    }

    /// Asks for a deploy of everything with a new round, again and again with the same key until the tenant has taken it.
    ///
    /// # Errors
    /// When that takes too long.
    pub async fn deploy(&mut self) -> anyhow::Result<Begun> {
        self.deploy_with(&[]).await
    }

    /// As [`Cell::deploy`], with further inputs (`name:=value`).
    ///
    /// # Errors
    /// When that takes too long.
    pub async fn deploy_with(&mut self, inputs: &[&str]) -> anyhow::Result<Begun> {
        self.round = self.round % 900 + 1;
        let lines = self.effects().lines().len();
        let (key, input) = (format!("try-{}-{}", self.tries, self.round), format!("round:={}", self.round));
        let start = ["deploy", INSTALL, "--no-wait", "--idempotency-key", &key, "--input", &input];
        let inputs: Vec<&str> = inputs.iter().flat_map(|input| ["--input", input]).collect();
        let start = [&start[..], &inputs].concat();
        let started =
            until("the deploy is taken", LIMIT, || async { Ok(self.world.vendor(&start).await.ok()) }).await?;
        Ok(Begun { workflow: id(&started)?, lines, until: None, round: Some(self.round), shown: Some(self.round) })
    }

    /// Asks for a deploy of the Terraform module, with `input`.
    ///
    /// # Errors
    /// When the tenant refuses it.
    pub async fn deploy_steps(&mut self, input: &str) -> anyhow::Result<Begun> {
        self.revive_builder()?;
        if self.steps.is_none() {
            self.world.sync_and_build(&workspace_root()?.join("tests/figures").join(STEPS), STEPS).await?;
            let install = self.world.install(STEPS, STEPS).await?;
            let runner = self.world.runner(&install).await?;
            self.world.provisioned(&install).await?;
            self.steps = Some((install, Some(runner)));
        }
        if let Some((install, runner @ None)) = &mut self.steps {
            *runner = Some(self.world.runner(install).await?);
        }
        let lines = self.effects().lines().len();
        let started = self.world.vendor(&["deploy", STEPS, "--all", "--no-wait", "--input", input]).await?;
        Ok(Begun { workflow: id(&started)?, lines, until: None, round: None, shown: None })
    }

    /// Ends the runner of the Terraform module.
    ///
    /// # Errors
    /// When it cannot be killed.
    pub async fn end_steps(&mut self) -> anyhow::Result<()> {
        if let Some(mut runner) = self.steps.as_mut().and_then(|(_, runner)| runner.take()) {
            runner.kill().await?;
        }
        Ok(())
    }

    /// Waits until a workflow has ended, and all of its jobs with it.
    ///
    /// # Errors
    /// When it does not end in time.
    pub async fn ended(&self, begun: &Begun) -> anyhow::Result<Workflow> {
        let look = || async {
            let workflow = self.workflow(&begun.workflow).await?;
            Ok(workflow.state.is_terminal().then_some(workflow))
        };
        match until("the workflow ends", LIMIT, look).await {
            Ok(workflow) => Ok(workflow),
            Err(error) => {
                let stuck = self.workflow(&begun.workflow).await?;
                bail!("{error}: {:?}, nodes {:?}", stuck.state, states(&stuck))
            }
        }
    }

    /// Returns a workflow as the table has it.
    ///
    /// # Errors
    /// When the table cannot be read.
    pub async fn workflow(&self, id: &WorkflowId) -> anyhow::Result<Workflow> {
        Ok(table::workflow(&self.store, id).await?.value)
    }

    /// Returns the jobs of a workflow, each with the name of its node.
    ///
    /// # Errors
    /// When the table cannot be read.
    pub async fn jobs(&self, workflow: &Workflow) -> anyhow::Result<Vec<(String, Job)>> {
        let mut jobs = Vec::new();
        for node in &workflow.nodes {
            let id = match &node.state {
                NodeState::Active { job } | NodeState::Succeeded { job } | NodeState::Failed { job, .. } => job,
                NodeState::Waiting
                | NodeState::Skipped { .. }
                | NodeState::SkippedByRequest { .. }
                | NodeState::Refused { .. } => continue,
            };
            jobs.push((node.name.clone(), table::job(&self.store, id).await?.value));
        }
        Ok(jobs)
    }

    /// Waits until a job of `begun` has written a line that begins with `word`, after `seen` such lines.
    ///
    /// # Errors
    /// When none does.
    pub async fn wrote(&self, begun: &Begun, word: &str, seen: usize) -> anyhow::Result<()> {
        let deadline = Instant::now() + LIMIT;
        loop {
            let lines = self.effects().lines();
            if lines.iter().skip(begun.lines).filter(|line| line.starts_with(word)).count() > seen {
                return Ok(());
            }
            let more = tokio::time::timeout_at(deadline, self.effects().more_than(lines.len())).await;
            more.with_context(|| format!("no job wrote `{word}` in {} s", LIMIT.as_secs()))?;
        }
    }

    /// Returns the effects of `begun`: the ids of all lines `end`.
    pub fn effects_of(&self, begun: &Begun) -> Vec<String> {
        self.ids_of(begun, "end ")
    }

    /// Returns what `begun` has begun so far: the ids of all lines `begin`.
    pub fn begun_of(&self, begun: &Begun) -> Vec<String> {
        self.ids_of(begun, "begin ")
    }

    fn ids_of(&self, begun: &Begun, word: &str) -> Vec<String> {
        let lines = self.effects().lines();
        let own = lines.iter().take(begun.until.unwrap_or(lines.len())).skip(begun.lines);
        let with_word = own.filter(|line| line.starts_with(word) && begun.has(line));
        with_word.filter_map(|line| line.rsplit(' ').next().map(str::to_owned)).collect()
    }

    // Verdicts

    /// Waits for the end of `begun`, and checks that it succeeded and did everything once.
    ///
    /// # Errors
    /// What is wrong.
    pub async fn succeeds(&self, begun: &Begun) -> anyhow::Result<()> {
        let workflow = self.ended(begun).await?;
        let succeeded = matches!(workflow.state, WorkflowState::Succeeded { .. });
        ensure!(succeeded, "{:?}, nodes {:?}", workflow.state, states(&workflow));
        self.everything_once(begun, &workflow).await
    }

    /// Checks that nothing of an ended workflow is lost, doubled or stale.
    ///
    /// # Errors
    /// What is.
    pub async fn everything_once(&self, begun: &Begun, workflow: &Workflow) -> anyhow::Result<()> {
        let effects = self.effects_of(begun);
        for (node, job) in self.jobs(workflow).await? {
            let done = job.state.as_str() == "succeeded";
            if let Some(action) = node.strip_prefix("action:") {
                let accepted = accepted(&job);
                // An action that may be run again promises its result alone.
                let once = action == "again" || effects.len() <= 1;
                ensure!(once, "doubled: `{node}` had the effects {effects:?}");
                match &accepted {
                    Some(one) => ensure!(effects.contains(one), "lost: `{node}` reports {one}, found {effects:?}"),
                    None => ensure!(!done, "`{node}` succeeded without its output"),
                }
                let stale = effects.last() != accepted.as_ref() && done;
                ensure!(!stale, "stale: the last of {effects:?} is not {accepted:?}");
            } else if let (true, Some(round)) = (done, begun.shown) {
                let delay = self.queues.delay(&self.world, &self.install, &format!("{INSTALL}-{node}")).await?;
                ensure!(delay == round, "lost: `{node}` shows round {delay}, not {round}");
            }
        }
        Ok(())
    }

    /// Brings the cell back to where a try can begin, whatever the last one left.
    ///
    /// # Errors
    /// When that does not work.
    pub async fn recover(&mut self) -> anyhow::Result<()> {
        self.calm();
        self.end_steps().await?;
        self.queues.enable_all(true).await?;
        self.queues.hide_failed_for(VISIBILITY_SECS).await?;
        self.revive_builder()?;
        if !self.runner.is_alive()? {
            self.runner.start_again()?;
        }
        if let Ok(newest) = self.world.newest_workflow(INSTALL).await
            && let Some(id) = newest["workflow"].as_str()
        {
            drop(self.world.run(&["workflow", "cancel", id]).await?);
        }
        let free = || async {
            let view = self.world.vendor(&["install", "show", INSTALL]).await?;
            Ok(view["live"].is_null().then_some(()))
        };
        until("the install is free", LIMIT, free).await?;
        // The try may have killed a runner just before it went wrong.
        tokio::time::sleep(POLL).await;
        let begun = self.act("again").await?;
        self.succeeds(&begun).await
    }
}

/// Returns the states of the nodes, with their reasons.
pub fn states(workflow: &Workflow) -> Vec<String> {
    workflow.nodes.iter().map(|node| format!("{}: {:?}", node.name, node.state)).collect()
}

/// Returns the effect that a job reported.
fn accepted(job: &Job) -> Option<String> {
    match &job.state {
        freehold_domain::job::JobState::Succeeded { outputs, .. } => Some(outputs.get("effect")?.as_str()?.to_owned()),
        _ => None,
    }
}

fn id(started: &Value) -> anyhow::Result<WorkflowId> {
    Ok(started["workflow"].as_str().context("no workflow")?.parse()?)
}
