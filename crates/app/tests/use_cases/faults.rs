//! Every port call fails once, before its effect or after it; every message is delivered up to three times, in any
//! order. The final state is the same.
//!
//! Two ports are left out. Only the daily prune calls `ArtifactRemover`, which is not a part of an install's life:
//! `artifact/prune_artifacts.rs` makes it fail. No use case calls `SourceQueue`: `freehold_functions::batch` does, around the
//! use cases, and its tests make it fail.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use freehold_app::testing::Fault;
use freehold_protocol::WorkflowId;
use freehold_protocol::api::{
    CheckResult, DeployComponentsRequest, DetectDriftRequest, ForgetInstallRequest, ReportCheckRequest,
    ResumeWorkflowRequest, TeardownInstallRequest, WebhookTask,
};
use proptest::prelude::*;

use crate::support::channels::{demo, move_to, stable};
use crate::support::runner::{Behaviour, sick};
use crate::support::state::effects;
use crate::support::walk::Rng;
use crate::support::{World, app, asked_with, client, drifts, globex, member, with_input};

/// Calls without effect: a lost answer is the same as no answer.
const READS: [&str; 10] = [
    "get",
    "query",
    "get_version",
    "subscriptions",
    "delegate",
    "manifest",
    "blob_url",
    "source_url",
    "public_key",
    "look",
];

/// What is there to pick up what fell between two steps.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Rescue {
    /// Queues, Step Functions and clients that try again.
    Redelivery,
    /// And `sweep`, a minute later.
    Sweep,
}

impl Rescue {
    async fn rest(self, world: &mut World) {
        match self {
            Self::Redelivery => world.run().await,
            Self::Sweep => world.settle().await,
        }
    }
}

/// A part of an install's life.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Part {
    SyncAndBuild,
    Provision,
    Deploy,
    Action,
    NewVersion,
    Teardown,
    Forget,
    Retries,
    Resume,
    Schedule,
    Toggles,
    Upgrade,
    Runbook,
    AfterDeploy,
    Drift,
    RollBack,
    Checks,
    Channel,
    Notify,
    RunnerAway,
    Webhook,
}

impl Part {
    async fn before(self) -> World {
        match self {
            Self::SyncAndBuild => World::new(),
            Self::Provision => World::with_app().await,
            Self::Deploy | Self::Action | Self::NewVersion | Self::Teardown | Self::Upgrade | Self::RunnerAway => {
                World::with_install().await
            }
            Self::Forget => {
                let mut world = World::with_install().await;
                world.letters[1].add_refused(&world.memory.orders.lock().unwrap().last().unwrap().3.clone());
                world.teardown(&TeardownInstallRequest::default(), "teardown-1").await.unwrap();
                world.settle().await;
                world.memory.advance_secs(2 * 3600);
                // The ends of the workflows are told. Those of an install that is forgotten at once may never be.
                let _ = world.sweeper().sweep().await;
                world
            }
            Self::Retries => World::with_retries(2, 3).await,
            Self::Resume => {
                let mut world = World::with_retries(0, 2).await;
                world.deploy(&with_input("days", 9), "deploy-3").await.unwrap();
                world.settle().await;
                world
            }
            Self::Schedule => World::with_schedule().await,
            Self::Toggles => World::with_toggles().await,
            Self::Runbook => World::with_runbook(&app::with_runbook()).await,
            Self::AfterDeploy => World::with_runbook(&app::with_post_deploy_runbooks(&["verify", "confirm"])).await,
            Self::Drift => {
                let mut world = World::with_install().await;
                world.runner("globex").behaviours.insert("drift:storage".into(), drifts(&["aws_s3_bucket.a"]));
                world
            }
            Self::Channel => World::with_channel().await,
            Self::Webhook => {
                let world = World::with_channel().await;
                world.with_webhook(WebhookTask::MoveChannel { app: demo(), channel: stable() }).await;
                world
            }
            Self::Notify => {
                let mut world = World::with_install().await;
                world.runner("globex").behaviours.insert("storage".into(), Behaviour::FailsBefore(99));
                world
            }
            Self::Checks => World::with_checks(true).await,
            Self::RollBack => {
                let mut world = World::with_health(true).await;
                world.runner("globex").behaviours.insert("health:storage".into(), sick());
                world
            }
        }
    }

    async fn happen(self, world: &mut World, rescue: Rescue) {
        match self {
            Self::SyncAndBuild => {
                world.sync(&app::document()).await;
                world.enrol().await;
                world.hello("build");
                rescue.rest(world).await;
                world.build("build-1").await;
            }
            Self::Provision => {
                world.create().await;
                rescue.rest(world).await;
                world.hello("globex");
            }
            Self::Deploy => {
                world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
            }
            Self::Action => {
                world.action("check", "run-1").await.unwrap();
            }
            Self::Retries => {
                world.deploy(&with_input("days", 9), "deploy-3").await.unwrap();
            }
            Self::Resume => {
                let (resume, workflow) = (world.resume_workflow(), WorkflowId::derive("globex", "deploy-3"));
                let request = ResumeWorkflowRequest::default();
                client(async || resume.resume(&workflow, &request, asked_with("resume-1")).await).await.unwrap();
            }
            Self::Schedule => {
                // The schedule calls again every minute, here at once.
                for _ in 0..2 {
                    let _ = world.handle_due_tasks().handle().await;
                }
            }
            Self::NewVersion => {
                world.sync(&app::with_source("storage", "example/storage:2")).await;
                world.build("build-2").await;
                rescue.rest(world).await;
                world.deploy(&DeployComponentsRequest::default(), "deploy-2").await.unwrap();
            }
            Self::Toggles => {
                world.switch(&[("info", false), ("storage", false)]).await.unwrap();
                world.deploy(&DeployComponentsRequest::default(), "deploy-4").await.unwrap();
                rescue.rest(world).await;
                world.switch(&[("storage", true)]).await.unwrap();
                world.deploy(&DeployComponentsRequest::default(), "deploy-5").await.unwrap();
            }
            Self::Teardown => {
                world.teardown(&TeardownInstallRequest::default(), "teardown-1").await.unwrap();
            }
            Self::Upgrade => {
                world.upgrade(&app::runner_release(), "upgrade-1").await.unwrap();
            }
            Self::Runbook => {
                world.run_runbook("fix", "runbook-1").await.unwrap();
                // The schedule calls every minute. A call that dies leaves the run to the next one.
                for _ in 0..6 {
                    rescue.rest(world).await;
                    let _ = world.handle_due_tasks().handle().await;
                }
            }
            Self::AfterDeploy => {
                for _ in 0..8 {
                    let _ = world.handle_due_tasks().handle().await;
                    rescue.rest(world).await;
                }
            }
            Self::Drift => {
                world.detect_drift(&DetectDriftRequest::default(), "drift-1").await.unwrap();
                rescue.rest(world).await;
                world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
            }
            Self::Channel => {
                client(async || move_to(world, "two").await).await.unwrap();
                // The schedule calls every minute: it stores the task of the install, which the next call handles.
                for _ in 0..3 {
                    let _ = world.handle_due_tasks().handle().await;
                    rescue.rest(world).await;
                }
            }
            Self::Webhook => {
                let now = world.now();
                let call = async || world.call_webhook("build-7", now, r#"{"release":"two"}"#).await;
                client(call).await.unwrap();
                for _ in 0..3 {
                    let _ = world.handle_due_tasks().handle().await;
                    rescue.rest(world).await;
                }
            }
            Self::Notify => {
                world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
                rescue.rest(world).await;
                minutes(world, 3).await;
            }
            Self::RunnerAway => {
                world.memory.advance_secs(2 * 3600);
                minutes(world, 3).await;
                world.hello("globex");
                rescue.rest(world).await;
                minutes(world, 3).await;
            }
            Self::RollBack => {
                let request = DeployComponentsRequest { verified: true, ..with_input("days", 8) };
                world.deploy(&request, "deploy-1").await.unwrap();
                for _ in 0..2 {
                    rescue.rest(world).await;
                    let _ = world.handle_due_tasks().handle().await;
                }
            }
            Self::Checks => {
                world.deploy(&DeployComponentsRequest::default(), "deploy-1").await.unwrap();
                rescue.rest(world).await;
                for name in ["ci", "load"] {
                    passes(world, name).await;
                }
                // A job that is ready and whose dispatch failed is dispatched again after a while.
                for _ in 0..5 {
                    world.memory.advance_secs(60);
                    let _ = world.sweeper().sweep().await;
                    rescue.rest(world).await;
                }
            }
            Self::Forget => {
                let (forget, request) = (world.forget_install(), ForgetInstallRequest::default());
                client(async || forget.forget(&globex(), &request).await).await.unwrap();
                world.forgotten().await;
            }
        }
        rescue.rest(world).await;
    }

    /// Returns what is left in the end. Where a later sweep continues the work, the times of the work are later too.
    fn outcome(self, world: &World) -> String {
        let mut outcome = world.outcome();
        for key in ["\"last_report\":", "\"wait_until\":"].into_iter().filter(|_| matches!(self, Self::Checks)) {
            let parts = outcome.split(key).enumerate();
            let without =
                parts.map(|(at, part)| if at == 0 { part } else { part.trim_start_matches(char::is_numeric) });
            outcome = without.collect::<Vec<_>>().join(key);
        }
        outcome
    }
}

/// Reports that a required check of `storage` passed, as a client does.
async fn passes(world: &World, check: &str) {
    let (component, check) = ("storage".parse().unwrap(), check.parse().unwrap());
    let request = ReportCheckRequest { result: CheckResult::Passed, reason: None, url: None, deploy: None };
    let report = async || world.report_check().report(&globex(), (&component, &check), &request, member()).await;
    client(report).await.unwrap();
}

/// Lets minutes pass, with the schedule's call in each. A call that dies leaves its work to the next one.
async fn minutes(world: &World, count: u32) {
    for _ in 0..count {
        world.memory.advance_secs(60);
        let _ = world.handle_due_tasks().handle().await;
        let _ = world.sweeper().sweep().await;
    }
}

/// Lets each call of `part` fail once, in each way, and compares the ends.
async fn each_call_fails_once(part: Part) {
    let start = part.before().await;
    let calls: Arc<Mutex<Vec<&'static str>>> = Arc::default();
    let mut world = start.copy();
    let seen = Arc::clone(&calls);
    world.memory.faults.set(move |what| {
        seen.lock().unwrap().push(what);
        None
    });
    part.happen(&mut world, Rescue::Redelivery).await;
    let expected = part.outcome(&world);
    assert!(world.open().is_empty());
    assert!(world.dead.is_empty());
    assert!(world.refusals().is_empty());

    let calls = calls.lock().unwrap().clone();
    for (at, what) in calls.iter().enumerate() {
        for fault in [Fault::Before, Fault::AnswerLost] {
            if fault == Fault::AnswerLost && READS.contains(what) {
                continue;
            }
            println!("{part:?}: call {at} of {}, `{what}`, fails: {fault:?}", calls.len());
            let mut world = start.copy();
            let mut left = at;
            world.memory.faults.set(move |_| {
                let now = left == 0;
                left = left.wrapping_sub(1);
                now.then_some(fault)
            });
            part.happen(&mut world, Rescue::Redelivery).await;
            similar_asserts(&part.outcome(&world), &expected);
        }
    }
}

/// Fails with the lines that differ.
fn similar_asserts(found: &str, expected: &str) {
    if found == expected {
        return;
    }
    let only =
        |a: &str, b: &str| a.lines().filter(|line| !b.lines().any(|l| l == *line)).collect::<Vec<_>>().join("\n");
    panic!("only without the fault:\n{}\nonly with it:\n{}", only(expected, found), only(found, expected));
}

#[tokio::test]
async fn a_build_ends_the_same_whichever_call_fails() {
    each_call_fails_once(Part::SyncAndBuild).await;
}

#[tokio::test]
async fn provisioning_ends_the_same_whichever_call_fails() {
    each_call_fails_once(Part::Provision).await;
}

#[tokio::test]
async fn a_deploy_ends_the_same_whichever_call_fails() {
    each_call_fails_once(Part::Deploy).await;
}

#[tokio::test]
async fn an_action_ends_the_same_whichever_call_fails() {
    each_call_fails_once(Part::Action).await;
}

#[tokio::test]
async fn a_new_version_ends_the_same_whichever_call_fails() {
    each_call_fails_once(Part::NewVersion).await;
}

#[tokio::test]
async fn a_call_of_a_webhook_moves_a_channel_once_whichever_call_fails() {
    each_call_fails_once(Part::Webhook).await;
}

#[tokio::test]
async fn a_teardown_ends_the_same_whichever_call_fails() {
    each_call_fails_once(Part::Teardown).await;
}

#[tokio::test]
async fn a_forgotten_install_leaves_the_same_whichever_call_fails() {
    each_call_fails_once(Part::Forget).await;
}

#[tokio::test]
async fn a_retried_deploy_ends_the_same_whichever_call_fails() {
    each_call_fails_once(Part::Retries).await;
}

#[tokio::test]
async fn a_workflow_is_resumed_the_same_whichever_call_fails() {
    each_call_fails_once(Part::Resume).await;
}

#[tokio::test]
async fn a_run_by_cron_is_started_once_whichever_call_fails() {
    each_call_fails_once(Part::Schedule).await;
}

#[tokio::test]
async fn components_are_switched_the_same_whichever_call_fails() {
    each_call_fails_once(Part::Toggles).await;
}

#[tokio::test]
async fn a_runner_is_upgraded_the_same_whichever_call_fails() {
    each_call_fails_once(Part::Upgrade).await;
}

#[tokio::test]
async fn what_a_check_finds_and_a_deploy_repairs_is_the_same_whichever_call_fails() {
    each_call_fails_once(Part::Drift).await;
}

#[tokio::test]
async fn each_step_of_a_runbook_runs_once_whichever_call_fails() {
    each_call_fails_once(Part::Runbook).await;
}

#[tokio::test]
async fn each_runbook_after_a_deploy_runs_once_whichever_call_fails() {
    each_call_fails_once(Part::AfterDeploy).await;
}

#[tokio::test]
async fn a_deploy_is_rolled_back_once_whichever_call_fails() {
    each_call_fails_once(Part::RollBack).await;
}

#[tokio::test]
async fn a_gate_opens_when_its_checks_have_passed_whichever_call_fails() {
    each_call_fails_once(Part::Checks).await;
}

#[tokio::test]
async fn an_install_follows_its_channel_once_whichever_call_fails() {
    each_call_fails_once(Part::Channel).await;
}

#[tokio::test]
async fn what_failed_is_told_whichever_call_fails() {
    each_call_fails_once(Part::Notify).await;
}

#[tokio::test]
async fn a_runner_that_goes_away_and_comes_back_is_told_whichever_call_fails() {
    each_call_fails_once(Part::RunnerAway).await;
}

/// Runs the whole life with mail in any order, and with calls failing one time in `one_in`. What a message's last delivery
/// calls does not fail: a message that is given up goes to the dead letters, which is another test's matter.
async fn life(seed: Option<u64>, one_in: Option<usize>) -> String {
    let mut world = World::new();
    world.chaos = seed.map(Rng::new);
    if let (Some(seed), Some(one_in)) = (seed, one_in) {
        let (mut rng, last) = (Rng::new(seed ^ 0x5eed), Arc::clone(&world.last_delivery));
        world.memory.faults.set(move |_| match rng.below(one_in) {
            _ if last.load(Ordering::Relaxed) => None,
            0 if rng.below(2) == 0 => Some(Fault::Before),
            0 => Some(Fault::AnswerLost),
            _ => None,
        });
    }
    for part in [Part::SyncAndBuild, Part::Provision, Part::Deploy, Part::NewVersion, Part::Action, Part::Teardown] {
        part.happen(&mut world, Rescue::Sweep).await;
    }
    world.outcome()
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn mail_that_comes_up_to_three_times_in_any_order_changes_nothing(seed in any::<u64>()) {
        let expected = block_on(life(None, None));

        let found = block_on(life(Some(seed), None));

        similar_asserts(&effects(&found), &effects(&expected));
    }

    #[test]
    fn neither_do_calls_that_fail_on_top_of_that(seed in any::<u64>()) {
        let expected = block_on(life(None, None));

        let found = block_on(life(Some(seed), Some(120)));

        similar_asserts(&effects(&found), &effects(&expected));
    }
}
