//! Notifications about required checks: when a gate waits for them, and when a component recovers because they passed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use freehold_app::health::report_check::ReportCheck;
use freehold_protocol::api::CheckResult::{Failed, Passed};
use freehold_protocol::api::{CheckHealthRequest, DeployComponentsRequest, ReportCheckRequest};
use freehold_protocol::notification::{Notification, NotificationKind};
use freehold_protocol::order::health::HealthState;

use crate::health::report_check::{pass, passing, report, report_with, request, shown, storage, waiting};
use crate::support::interleaving::Interleaved;
use crate::support::runner::Behaviour;
use crate::support::{World, app, asked_with, globex, member, with_input};

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
    world.find_healthy(&job).await;
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

const ILL: &str = "Freehold: globex: storage is unhealthy";
const WELL_AGAIN: &str = "Freehold: globex: storage is healthy again";

/// Returns a world in which `ci` failed, so that the gate of `storage` is closed, and people were notified.
async fn closed() -> World {
    let (mut world, _, _) = waiting().await;
    report(&world, "ci", Failed).await;
    pass(&mut world, 10).await;
    world.settle().await;
    assert_eq!(health_changes(&mut world).await, [ILL]);
    world
}

/// Checks the health apart from a deploy.
async fn check_apart(world: &mut World, cause: &str) {
    let check = world.check_health();
    check.check(&globex(), &CheckHealthRequest::default(), asked_with(cause)).await.unwrap();
    world.settle().await;
}

#[tokio::test]
async fn a_component_whose_checks_pass_after_its_gate_closed_is_healthy_again_and_told_once() {
    let mut world = closed().await;

    report(&world, "ci", Passed).await;
    let half = (health_changes(&mut world).await, shown(&world).await.health.unwrap().state);
    report(&world, "load", Passed).await;
    let now = world.now();
    let all = (health_changes(&mut world).await, shown(&world).await.health.unwrap());
    let with_reason = ReportCheckRequest { reason: Some("still fast".to_owned()), ..request(Passed) };
    for again in [request(Passed), with_reason] {
        report_with(&world, "load", &again).await.unwrap();
    }
    let later = health_changes(&mut world).await;
    check_apart(&mut world, "check-1").await;

    assert_eq!(half, (Vec::new(), HealthState::Unhealthy));
    assert_eq!(all.0, [WELL_AGAIN]);
    assert_eq!((all.1.state, all.1.since, all.1.reason.as_str()), (HealthState::Healthy, now, ""));
    assert!(later.is_empty(), "{later:?}");
    assert!(health_changes(&mut world).await.is_empty());
}

#[tokio::test]
async fn a_component_that_was_checked_since_its_gate_closed_is_healthy_again_when_all_checks_pass() {
    for first in ["ci", "load"] {
        let mut world = closed().await;
        check_apart(&mut world, "check-1").await;
        let apart = health_changes(&mut world).await;

        report(&world, first, Passed).await;
        let half = health_changes(&mut world).await;
        check_apart(&mut world, "check-2").await;
        report(&world, if first == "ci" { "load" } else { "ci" }, Passed).await;

        let all = health_changes(&mut world).await;
        assert!(apart.is_empty() && half.is_empty(), "{first}: {apart:?} {half:?}");
        assert_eq!(all, [WELL_AGAIN], "{first}");
        assert_eq!(shown(&world).await.health.unwrap().state, HealthState::Healthy);
    }
}

#[tokio::test]
async fn each_recovery_is_told_with_its_own_id_and_a_failed_report_is_not() {
    let mut world = World::with_checks(false).await;
    world.deploy(&DeployComponentsRequest::default(), "deploy-1").await.unwrap();
    world.settle().await;
    report(&world, "load", Passed).await;
    let mut ids = Vec::new();

    for _ in 0..2 {
        report(&world, "ci", Failed).await;
        let failed = health_changes(&mut world).await;
        report(&world, "ci", Passed).await;
        let passed = sent(&mut world, NotificationKind::HealthChanged).await;

        assert!(failed.is_empty(), "{failed:?}");
        assert_eq!(passed.iter().map(|one| one.subject.as_str()).collect::<Vec<_>>(), [WELL_AGAIN]);
        ids.extend(passed.into_iter().map(|one| one.id));
    }

    assert_ne!(ids[0], ids[1]);
}

#[tokio::test]
async fn a_component_whose_checks_never_failed_is_not_told_when_the_last_one_passes() {
    let mut world = World::with_checks(false).await;
    world.deploy(&DeployComponentsRequest::default(), "deploy-1").await.unwrap();
    world.settle().await;

    for check in ["ci", "load"] {
        report(&world, check, Passed).await;
    }

    assert!(health_changes(&mut world).await.is_empty());
    assert_eq!(shown(&world).await.health.unwrap().state, HealthState::Healthy);
}

#[tokio::test]
async fn a_component_that_was_checked_before_the_missing_reports_came_is_healthy_again_when_they_pass() {
    let (mut world, _, _) = waiting().await;
    pass(&mut world, 160).await;
    world.settle().await;
    let closed = health_changes(&mut world).await;
    check_apart(&mut world, "check-1").await;
    let apart = (health_changes(&mut world).await, shown(&world).await.health.unwrap().state);

    for check in ["ci", "load"] {
        report(&world, check, Passed).await;
    }

    assert_eq!(closed, [ILL]);
    assert_eq!(apart, (Vec::new(), HealthState::Unknown));
    assert_eq!(health_changes(&mut world).await, [WELL_AGAIN]);
}

#[tokio::test]
async fn a_component_that_was_checked_since_its_gate_closed_is_healthy_again_after_a_deploy_that_repairs_it() {
    let mut world = closed().await;
    check_apart(&mut world, "check-1").await;
    let apart = health_changes(&mut world).await;

    world.deploy(&with_input("days", 9), "deploy-2").await.unwrap();
    world.run().await;
    for check in ["ci", "load"] {
        report(&world, check, Passed).await;
    }
    pass(&mut world, 10).await;
    world.settle().await;

    assert!(apart.is_empty(), "{apart:?}");
    assert_eq!(health_changes(&mut world).await, [WELL_AGAIN]);
}

/// Deploys a version in which `storage` requires these checks, and checks the health. The component stays as deployed.
async fn require(world: &mut World, checks: &[&str]) {
    let mut document = app::with_checks(false);
    for health in document.components.iter_mut().filter_map(|component| component.settings.health.as_mut()) {
        health.required_checks = checks.iter().map(|check| (*check).to_owned()).collect();
    }
    world.sync(&document).await;
    world.deploy(&DeployComponentsRequest::default(), "deploy-2").await.unwrap();
    world.settle().await;
    check_apart(world, "check-1").await;
}

#[tokio::test]
async fn a_check_that_failed_and_is_not_required_any_more_leads_to_no_notification() {
    let mut world = World::with_checks(false).await;
    world.deploy(&DeployComponentsRequest::default(), "deploy-1").await.unwrap();
    world.settle().await;
    require(&mut world, &["load"]).await;

    for (check, result) in [("ci", Failed), ("ci", Passed), ("load", Passed)] {
        report(&world, check, result).await;
    }

    assert_eq!(shown(&world).await.health.unwrap().state, HealthState::Healthy);
    assert!(health_changes(&mut world).await.is_empty());
}

#[tokio::test]
async fn a_recovery_is_not_told_again_when_a_check_that_is_new_passes() {
    let mut world = World::with_checks(false).await;
    world.deploy(&DeployComponentsRequest::default(), "deploy-1").await.unwrap();
    world.settle().await;
    for (check, result) in [("load", Passed), ("ci", Failed), ("ci", Passed)] {
        report(&world, check, result).await;
    }
    let first = health_changes(&mut world).await;
    require(&mut world, &["ci", "load", "smoke"]).await;
    let unknown = shown(&world).await.health.unwrap().state;

    report(&world, "smoke", Passed).await;

    assert_eq!(first, [WELL_AGAIN]);
    assert_eq!(unknown, HealthState::Unknown);
    assert_eq!(shown(&world).await.health.unwrap().state, HealthState::Healthy);
    assert!(health_changes(&mut world).await.is_empty());
}

#[tokio::test]
async fn a_gate_that_recovered_by_a_report_is_not_asked_again_by_the_next_deploy() {
    let mut world = closed().await;
    for check in ["ci", "load"] {
        report(&world, check, Passed).await;
    }
    world.runner("globex").started.clear();

    let second = world.deploy(&DeployComponentsRequest::default(), "deploy-2").await.unwrap();
    world.settle().await;

    assert_eq!(world.runners["globex"].started, ["info"]);
    assert_eq!(world.workflow(&second).await.state.as_str(), "succeeded");
}

#[tokio::test]
async fn reports_at_the_same_moment_are_one_recovery() {
    let start = closed().await;
    let others: [&'static [&'static str]; 2] = [&["load"], &["load", "ci"]];
    for other in others {
        let mut acts = 0;
        for at in 0.. {
            let mut world = start.copy();
            let called = Arc::new(AtomicBool::new(false));
            let store = Arc::new(Interleaved::new(world.memory.clone(), at, passing(&world, other, &called)));

            let reports = ReportCheck { store, ..world.report_check() };
            let check = "ci".parse().unwrap();
            reports.report(&globex(), (&storage(), &check), &request(Passed), member()).await.unwrap();
            if !called.load(Ordering::Relaxed) {
                break;
            }

            assert_eq!(health_changes(&mut world).await, [WELL_AGAIN], "{other:?} before call {at}");
            assert_eq!(shown(&world).await.health.unwrap().state, HealthState::Healthy);
            acts += 1;
        }
        assert!(acts > 5, "only {acts} calls");
    }
}
