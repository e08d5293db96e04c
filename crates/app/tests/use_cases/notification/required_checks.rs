//! Notifications about required checks: when a gate waits for them, and when a component recovers because they passed.

use freehold_protocol::api::CheckResult::{Failed, Passed};
use freehold_protocol::api::DeployComponentsRequest;
use freehold_protocol::notification::{Notification, NotificationKind};
use freehold_protocol::report::Outcome;
use serde_json::json;

use crate::health::report_check::{pass, report, waiting};
use crate::support::runner::Behaviour;
use crate::support::walk::Mail;
use crate::support::{World, app, asked_with, globex, with_input};

/// Lets a minute pass, and returns the notifications of this kind that the tasks of the time sent.
async fn sent(world: &mut World, kind: NotificationKind) -> Vec<Notification> {
    world.memory.advance_secs(60);
    world.handle_due_tasks().handle().await.unwrap();
    let sent = std::mem::take(&mut *world.memory.notifications.lock().unwrap());
    sent.into_iter().filter(|one| one.kind == kind).collect()
}

/// Returns the subjects of the notifications about changed health.
async fn health_changes(world: &mut World) -> Vec<String> {
    sent(world, NotificationKind::HealthChanged).await.into_iter().map(|one| one.subject).collect()
}

/// Returns the notifications about gates that wait for checks.
async fn waits(world: &mut World) -> Vec<Notification> {
    sent(world, NotificationKind::ChecksAwaited).await
}

/// Returns a world whose runner found `storage` healthy after these checks had passed. The queue delivers the report twice.
async fn answered_after(passed: &[&str]) -> World {
    let mut world = World::with_checks(true).await;
    world.runner("globex").behaviours.insert("health:storage".into(), Behaviour::Hangs);
    let workflow = world.deploy(&DeployComponentsRequest::default(), "deploy-1").await.unwrap();
    world.run().await;
    let job = world.workflow(&workflow).await.active_jobs().next().unwrap().clone();
    for check in passed {
        report(&world, check, Passed).await;
    }
    let outputs = [("health".to_owned(), json!({ "state": "healthy" }))].into();
    let healthy = Outcome::Succeeded { outputs, sensitive: Default::default(), artifact: None };
    let now = world.now();
    for end in world.runner("globex").finish(&job, healthy, now) {
        world.post(Mail::Report(end.clone(), now));
        world.post(Mail::Report(end, now));
    }
    world.run().await;
    world
}

#[tokio::test]
async fn a_gate_that_begins_to_wait_is_told_once_with_its_version_and_how_to_report() {
    let (mut world, workflow, job) = waiting().await;
    let version = world.workflow(&workflow).await.version.unwrap();
    report(&world, "ci", Passed).await;
    pass(&mut world, 10).await;

    let first = waits(&mut world).await;
    let later = waits(&mut world).await;

    let [asked] = &first[..] else { panic!("{first:?}") };
    assert_eq!((asked.job.as_ref(), asked.workflow.as_ref()), (Some(&job), Some(&workflow)));
    assert_eq!((asked.install.as_ref(), asked.app.as_ref()), (Some(&globex()), Some(&app::document().app)));
    for part in
        ["storage", version.short(), "checks `ci`, `load`", "`freehold check report globex storage NAME passed`"]
    {
        assert!(asked.text.contains(part), "{part}: {}", asked.text);
    }
    assert!(later.is_empty(), "{later:?}");
}

#[tokio::test]
async fn a_report_that_is_delivered_twice_is_told_once_and_names_what_is_missing() {
    let mut world = answered_after(&["load"]).await;

    let first = waits(&mut world).await;

    let [asked] = &first[..] else { panic!("{first:?}") };
    assert!(asked.text.contains("waits for check `ci` until"), "{}", asked.text);
}

#[tokio::test]
async fn a_gate_whose_checks_passed_before_waits_for_nobody() {
    let mut world = answered_after(&["ci", "load"]).await;

    let asked = waits(&mut world).await;

    assert!(asked.is_empty(), "{asked:?}");
}

#[tokio::test]
async fn a_gate_that_waits_again_after_a_retry_is_told_again() {
    let (mut world, _, job) = waiting().await;
    pass(&mut world, 160).await;
    world.settle().await;

    world.retry_job().retry(&job, &Default::default(), asked_with("retry-1")).await.unwrap();
    world.run().await;

    let asked = waits(&mut world).await;
    let [one, other] = &asked[..] else { panic!("{asked:?}") };
    assert_ne!(one.id, other.id);
}

#[tokio::test]
async fn a_check_that_failed_after_another_deploy_is_told_as_after_the_first_one() {
    let (mut world, _, _) = waiting().await;
    for check in ["ci", "load"] {
        report(&world, check, Passed).await;
    }
    pass(&mut world, 10).await;
    world.settle().await;
    let healthy = health_changes(&mut world).await;

    world.deploy(&with_input("days", 9), "deploy-2").await.unwrap();
    world.run().await;
    report(&world, "ci", Failed).await;
    pass(&mut world, 10).await;
    world.settle().await;

    assert!(healthy.is_empty(), "{healthy:?}");
    assert_eq!(health_changes(&mut world).await, ["Freehold: globex: storage is unhealthy"]);
}
