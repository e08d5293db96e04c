//! What people are told of a life of workflows, jobs, runs and runners, when, and how often.

use freehold_app::ports::NotificationTopic as _;
use freehold_app::testing::Fault;
use freehold_protocol::api::{DeployComponentsRequest, DetectDriftRequest};
use freehold_protocol::approval::Side;
use freehold_protocol::notification::{Notification, NotificationKind};
use freehold_protocol::report::{Away, AwayReason, ChangeTimes, FreeActions, OpenTime, ReportBody};

use crate::approval::approve_job::waiting;
use crate::support::runner::{Behaviour, sick};
use crate::support::{World, app, drifts, globex, with_input};

const HOUR: u64 = 3600;

/// Lets a minute pass, and returns what people were told in it.
async fn minute(world: &mut World) -> Vec<Notification> {
    world.memory.advance_secs(60);
    world.handle_due_tasks().handle().await.unwrap();
    world.sweeper().sweep().await.unwrap();
    world.run().await;
    std::mem::take(&mut *world.memory.notifications.lock().unwrap())
}

/// Returns the kinds that people were told in these minutes.
async fn kinds_sent(world: &mut World, minutes: u32) -> Vec<NotificationKind> {
    let mut kinds = Vec::new();
    for _ in 0..minutes {
        kinds.extend(minute(world).await.into_iter().map(|one| one.kind));
    }
    kinds
}

/// Returns a world with `globex`, whose first deploy was told.
async fn quiet() -> World {
    let mut world = World::with_install().await;
    kinds_sent(&mut world, 2).await;
    world
}

async fn says(world: &mut World, reason: AwayReason) {
    let away = Away { reason, detail: "because".into() };
    let runner = &world.runners["globex"];
    let report = runner.sign(&runner.report(ReportBody::Away(away), world.now()));
    world.accept_report().accept(&report, world.now()).await.unwrap();
}

async fn says_hello(world: &mut World) {
    world.hello("globex");
    world.run().await;
}

#[tokio::test]
async fn the_end_of_a_workflow_is_told_once_within_a_minute_and_names_what_failed() {
    let mut world = quiet().await;
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::FailsBefore(99));
    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.settle().await;

    let [failed] = &minute(&mut world).await[..] else { panic!("one notification") };

    assert_eq!(failed.kind, NotificationKind::WorkflowFailed);
    assert_eq!(failed.workflow.as_ref(), Some(&workflow));
    assert!(failed.text.ends_with("What failed: storage."), "{}", failed.text);
    assert_eq!(kinds_sent(&mut world, 3).await, []);
}

#[tokio::test]
async fn a_success_is_told_and_writes_nothing_more_than_before() {
    let mut world = quiet().await;
    world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.settle().await;
    let rows =
        |world: &World| world.memory.rows().into_iter().filter(|row| row.key.pk != "next-sweep").collect::<Vec<_>>();
    let before = rows(&world);

    let kinds = kinds_sent(&mut world, 1).await;

    assert_eq!(kinds, [NotificationKind::WorkflowSucceeded]);
    assert_eq!(rows(&world), before);
}

#[tokio::test]
async fn a_plan_that_waits_is_told_once_with_the_app_of_its_install() {
    let (mut world, workflow, job) = waiting(&[Side::Vendor]).await;

    let told_first: Vec<_> =
        minute(&mut world).await.into_iter().filter(|one| one.kind == NotificationKind::ApprovalAsked).collect();

    let [asked] = &told_first[..] else { panic!("{told_first:?}") };
    assert_eq!((asked.job.as_ref(), asked.workflow.as_ref()), (Some(&job), Some(&workflow)));
    assert_eq!((asked.install.as_ref(), asked.app.as_ref()), (Some(&globex()), Some(&app::document().app)));
    assert_eq!(kinds_sent(&mut world, 3).await, []);
}

#[tokio::test]
async fn a_change_that_is_held_is_told_once() {
    let mut world = quiet().await;
    let from = world.now().plus_secs(10 * HOUR);
    let changes = ChangeTimes {
        windows: "UTC: Sat 22:00-23:00".into(),
        openings: vec![OpenTime { from, until: Some(from.plus_secs(HOUR)) }],
        known_until: from.plus_secs(HOUR),
        free_actions: FreeActions::All,
        ..ChangeTimes::default()
    };
    world.memory.advance_secs(1);
    world.runner("globex").changes = Some(changes);
    says_hello(&mut world).await;
    world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.run().await;

    assert_eq!(kinds_sent(&mut world, 3).await, [NotificationKind::ChangeHeld]);
}

#[tokio::test]
async fn a_verified_deploy_that_fails_is_told_and_so_is_its_roll_back() {
    let mut world = World::with_health(true).await;
    kinds_sent(&mut world, 2).await;
    world.runner("globex").behaviours.insert("health:storage".into(), sick());
    let request = DeployComponentsRequest { verified: true, ..with_input("days", 8) };
    world.deploy(&request, "deploy-1").await.unwrap();
    world.settle().await;

    let mut kinds = kinds_sent(&mut world, 3).await;

    kinds.sort();
    assert_eq!(
        kinds,
        [NotificationKind::WorkflowFailed, NotificationKind::DeployRolledBack, NotificationKind::HealthChanged]
    );
}

#[tokio::test]
async fn a_run_that_stops_is_told_once_and_its_step_is_not() {
    let mut world = World::with_runbook(&app::with_runbook()).await;
    kinds_sent(&mut world, 2).await;
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::FailsBefore(99));
    world.run_runbook("fix", "runbook-1").await.unwrap();

    let kinds = kinds_sent(&mut world, 8).await;

    assert_eq!(kinds, [NotificationKind::RunStopped]);
}

#[tokio::test]
async fn drift_is_told_when_it_is_new_and_not_at_each_check() {
    let mut world = quiet().await;
    world.runner("globex").behaviours.insert("drift:storage".into(), drifts(&["aws_s3_bucket.a"]));
    world.detect_drift(&DetectDriftRequest::default(), "drift-1").await.unwrap();
    world.settle().await;
    let first = kinds_sent(&mut world, 2).await;
    world.detect_drift(&DetectDriftRequest::default(), "drift-2").await.unwrap();
    world.settle().await;
    let second = kinds_sent(&mut world, 2).await;

    assert_eq!(first, [NotificationKind::DriftFound]);
    assert_eq!(second, [NotificationKind::WorkflowSucceeded]);
}

#[tokio::test]
async fn a_runner_that_is_silent_for_two_hours_is_told_once_and_so_is_its_return() {
    let mut world = quiet().await;
    world.memory.advance_secs(HOUR);
    says_hello(&mut world).await;
    world.memory.advance_secs(2 * HOUR - 600);
    let before = kinds_sent(&mut world, 3).await;

    world.memory.advance_secs(600);
    let away = kinds_sent(&mut world, 3).await;
    world.memory.advance_secs(24 * HOUR);
    let later = kinds_sent(&mut world, 3).await;
    says_hello(&mut world).await;
    let back = kinds_sent(&mut world, 3).await;
    world.memory.advance_secs(3 * HOUR);
    let again = kinds_sent(&mut world, 3).await;

    assert_eq!(before, []);
    assert_eq!(away, [NotificationKind::RunnerAway]);
    assert_eq!(later, []);
    assert_eq!(back, [NotificationKind::RunnerBack]);
    assert_eq!(again, [NotificationKind::RunnerAway]);
}

#[tokio::test]
async fn a_machine_that_is_replaced_within_ten_minutes_is_not_told_and_a_runner_that_is_cut_off_is_told_at_once() {
    let mut world = quiet().await;
    says(&mut world, AwayReason::Stopped).await;
    world.memory.advance_secs(300);
    says_hello(&mut world).await;
    let replaced = kinds_sent(&mut world, 15).await;

    says(&mut world, AwayReason::SwitchedOff).await;
    let paused = kinds_sent(&mut world, 15).await;
    says(&mut world, AwayReason::StackDeleted).await;
    let cut_off = kinds_sent(&mut world, 3).await;

    assert_eq!(replaced, []);
    assert_eq!(paused, [NotificationKind::RunnerAway]);
    assert_eq!(cut_off, [NotificationKind::RunnerAway]);
}

#[tokio::test]
async fn a_topic_that_is_down_holds_nothing_up_and_loses_nothing() {
    let mut world = quiet().await;
    world.memory.faults.set(|what| (what == "publish").then_some(Fault::Before));
    world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.settle().await;
    let down = kinds_sent(&mut world, 20).await;

    world.memory.faults.set(|_| None);
    let up = kinds_sent(&mut world, 6).await;

    assert_eq!(down, []);
    assert_eq!(up, [NotificationKind::WorkflowSucceeded]);
    assert_eq!(kinds_sent(&mut world, 6).await, []);
}

#[tokio::test]
async fn a_notification_that_is_sent_again_has_the_same_id() {
    let mut world = quiet().await;
    let mut left = 1;
    world
        .memory
        .faults
        .set(move |what| (what == "publish" && std::mem::take(&mut left) == 1).then_some(Fault::AnswerLost));
    world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.settle().await;

    let mut ids = Vec::new();
    for _ in 0..8 {
        ids.extend(minute(&mut world).await.into_iter().map(|one| one.id));
    }

    assert_eq!(ids.len(), 2);
    assert_eq!(ids[0], ids[1]);
}

#[tokio::test]
async fn a_notification_that_nobody_takes_for_two_weeks_is_given_up() {
    let mut world = quiet().await;
    world.memory.faults.set(|what| (what == "publish").then_some(Fault::Before));
    world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.settle().await;
    kinds_sent(&mut world, 1).await;
    world.memory.advance_secs(15 * 24 * HOUR);
    kinds_sent(&mut world, 1).await;
    world.memory.faults.set(|_| None);

    let kinds = kinds_sent(&mut world, 10).await;

    assert!(!kinds.contains(&NotificationKind::WorkflowSucceeded), "{kinds:?}");
    let probe = freehold_domain::notification::test(None, None, "probe", world.now());
    world.memory.publish(&probe).await.unwrap();
    assert_eq!(world.memory.notifications.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_workflow_that_ends_while_a_job_still_runs_is_told_at_once() {
    let (mut world, workflow) = World::deploying(Behaviour::Ignores).await;
    kinds_sent(&mut world, 1).await;
    world.time_out(&workflow).await;

    let kinds = kinds_sent(&mut world, 2).await;

    assert_eq!(kinds, [NotificationKind::WorkflowFailed]);
}
