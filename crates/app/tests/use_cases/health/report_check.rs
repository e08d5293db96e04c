//! Reports of required checks: a gate waits for them, each counts once for the deploy that it is about, and no report is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use freehold_app::health::report_check::ReportCheck;
use freehold_app::sweep::Sweep;
use freehold_app::{AppError, Kind, read, table};
use freehold_protocol::api::{
    CancelWorkflowRequest, CheckHealthRequest, CheckResult, CheckView, DeployComponentsRequest, DeployedView,
    ForgetInstallRequest, ReportCheckRequest, SkipNodeRequest,
};
use freehold_protocol::notification::NotificationKind;
use freehold_protocol::order::health::HealthState;
use freehold_protocol::{ComponentName, JobId, WorkflowId};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use crate::support::interleaving::Interleaved;
use crate::support::runner::Behaviour;
use crate::support::walk::At;
use crate::support::{World, app, asked_with, client, globex, member, with_input};

use CheckResult::{Failed, Passed};

pub(crate) fn storage() -> ComponentName {
    "storage".parse().unwrap()
}

pub(crate) fn request(result: CheckResult) -> ReportCheckRequest {
    ReportCheckRequest { result, reason: None, url: None, deploy: None }
}

pub(crate) async fn report_with(
    world: &World,
    check: &str,
    request: &ReportCheckRequest,
) -> Result<CheckView, AppError> {
    let check = check.parse().unwrap();
    let report = world.report_check();
    client(async || report.report(&globex(), (&storage(), &check), request, member()).await).await
}

pub(crate) async fn report(world: &World, check: &str, result: CheckResult) -> CheckView {
    report_with(world, check, &request(result)).await.unwrap()
}

/// Lets time pass, and sweeps.
pub(crate) async fn pass(world: &mut World, secs: u64) {
    world.memory.advance_secs(secs);
    world.sweeper().sweep().await.unwrap();
    world.run().await;
}

/// Returns a world in which the gate of `storage` waits for `ci` and `load` for 30 seconds.
pub(crate) async fn waiting() -> (World, WorkflowId, JobId) {
    let mut world = World::with_checks(true).await;
    let workflow = world.deploy(&DeployComponentsRequest::default(), "deploy-1").await.unwrap();
    world.run().await;
    let job = world.workflow(&workflow).await.active_jobs().next().unwrap().clone();
    (world, workflow, job)
}

async fn state(world: &World, job: &JobId) -> &'static str {
    world.job(job).await.state.as_str()
}

/// Returns what `install show` has about `storage`.
pub(crate) async fn shown(world: &World) -> DeployedView {
    let view = read::show_install(&world.versions(), &globex(), world.now()).await.unwrap();
    view.components.into_iter().find(|one| one.component == storage()).unwrap()
}

/// Returns the checks of `storage` with their results, as `install show` has them.
async fn results(world: &World) -> Vec<String> {
    let word = |view: CheckView| format!("{} {}", view.check, view.result.map_or("missing", CheckResult::as_str));
    shown(world).await.checks.into_iter().map(word).collect()
}

#[tokio::test]
async fn a_gate_waits_without_a_look_until_the_last_check_has_passed() {
    let (mut world, workflow, job) = waiting().await;

    let view = read::show_job(&*world.memory, &job, world.now()).await.unwrap();
    let graph = read::show_workflow(&*world.memory, &workflow, world.now()).await.unwrap();
    let before = results(&world).await;
    world.sweeper().sweep().await.unwrap();
    world.memory.advance_secs(10);
    let quiet = world.sweeper().sweep().await.unwrap();
    report(&world, "ci", Passed).await;
    pass(&mut world, 10).await;
    let half = world.job(&job).await.reason().unwrap();
    report(&world, "load", Passed).await;
    pass(&mut world, 5).await;

    assert_eq!(view.state, "waiting_for_checks");
    assert!(view.reason.contains("waits for checks `ci`, `load` to pass until "), "{}", view.reason);
    let node = graph.nodes.iter().find(|node| node.name == "health:storage").unwrap();
    assert_eq!((node.state.as_str(), &node.reason), ("waiting_for_checks", &view.reason));
    assert_eq!(before, ["ci missing", "load missing"]);
    assert_eq!(quiet.due, 0, "nothing is looked at while it waits");
    assert!(half.contains("waits for check `load` to pass"), "{half}");
    assert_eq!(results(&world).await, ["ci passed", "load passed"]);
    assert_eq!(world.runners["globex"].started, ["storage", "health:storage", "info"]);
    assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"));
    assert_eq!(shown(&world).await.health.unwrap().state, HealthState::Healthy);
}

#[tokio::test]
async fn a_gate_whose_checks_passed_before_its_runner_answered_opens_at_once() {
    let mut world = World::with_checks(true).await;
    world.runner("globex").behaviours.insert("health:storage".into(), Behaviour::Hangs);
    let workflow = world.deploy(&DeployComponentsRequest::default(), "deploy-1").await.unwrap();
    world.run().await;
    let job = world.workflow(&workflow).await.active_jobs().next().unwrap().clone();

    for check in ["ci", "load"] {
        report(&world, check, Passed).await;
    }
    world.find_healthy(&job).await;

    assert_eq!(world.node_states(&workflow).await, ["info succeeded", "storage succeeded", "health:storage succeeded"]);
    assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"));
}

#[tokio::test]
async fn a_check_that_failed_closes_the_gate_until_it_passes_and_the_job_is_retried() {
    let (mut world, workflow, job) = waiting().await;
    let slow = ReportCheckRequest { reason: Some("too slow".to_owned()), ..request(Failed) };

    report(&world, "ci", Passed).await;
    report_with(&world, "load", &slow).await.unwrap();
    pass(&mut world, 10).await;
    world.settle().await;
    let closed = world.node_states(&workflow).await;
    let reason = world.job(&job).await.reason().unwrap();
    let ill = shown(&world).await.health.unwrap();
    report(&world, "load", Passed).await;
    world.retry_job().retry(&job, &Default::default(), asked_with("retry-1")).await.unwrap();
    world.run().await;

    assert_eq!(closed, ["info skipped", "storage succeeded", "health:storage blocked"]);
    assert!(reason.starts_with("component `storage` is not healthy: check `load` failed: too slow; "), "{reason}");
    assert!(reason.contains(&format!("`freehold job retry {job}`")), "{reason}");
    assert_eq!(ill.state, HealthState::Unhealthy);
    assert_eq!(world.node_states(&workflow).await, ["info succeeded", "storage succeeded", "health:storage succeeded"]);
    assert_eq!(shown(&world).await.health.unwrap().state, HealthState::Healthy);
}

#[tokio::test]
async fn checks_that_nobody_reports_in_time_close_the_gate_and_a_late_report_counts_for_a_retry() {
    let (mut world, workflow, job) = waiting().await;

    pass(&mut world, 40).await;
    for check in ["ci", "load"] {
        report(&world, check, Passed).await;
    }
    pass(&mut world, 5).await;
    let late = state(&world, &job).await;
    pass(&mut world, 120).await;
    world.settle().await;
    let reason = world.job(&job).await.reason().unwrap();
    let (closed, health) = (world.node_states(&workflow).await, shown(&world).await.health.unwrap().state);
    world.retry_job().retry(&job, &Default::default(), asked_with("retry-1")).await.unwrap();
    world.run().await;

    assert_eq!((late, health), ("waiting_for_checks", HealthState::Healthy));
    assert!(reason.contains("no result of checks `ci`, `load` came before "), "{reason}");
    assert_eq!(closed, ["info skipped", "storage succeeded", "health:storage blocked"]);
    assert_eq!(state(&world, &job).await, "succeeded");
}

#[tokio::test]
async fn a_closed_gate_can_be_skipped_and_is_asked_again_by_the_next_deploy() {
    let (mut world, workflow, _) = waiting().await;
    report(&world, "ci", Failed).await;
    pass(&mut world, 10).await;
    world.settle().await;

    let skip = SkipNodeRequest { node: "health:storage".to_owned(), reason: "known".to_owned() };
    world.skip_node().skip(&workflow, &skip, asked_with("skip-1")).await.unwrap();
    world.settle().await;
    world.runner("globex").started.clear();
    let second = world.deploy(&DeployComponentsRequest::default(), "deploy-2").await.unwrap();
    world.run().await;

    assert!(world.node_states(&workflow).await.contains(&"info succeeded".to_owned()));
    assert_eq!(world.runners["globex"].started, ["health:storage"]);
    assert!(world.node_states(&second).await.contains(&"health:storage blocked".to_owned()));
}

#[tokio::test]
async fn a_verified_deploy_whose_check_fails_is_rolled_back() {
    let mut world = World::with_checks(true).await;
    let request = DeployComponentsRequest { verified: true, ..with_input("days", 8) };
    let workflow = world.deploy(&request, "deploy-1").await.unwrap();
    world.run().await;

    report(&world, "ci", Failed).await;
    pass(&mut world, 10).await;
    world.settle().await;

    let failed = world.workflow(&workflow).await;
    assert_eq!(failed.state.as_str(), "failed");
    assert_eq!(world.workflow(&failed.roll_back_id()).await.state.as_str(), "succeeded");
}

#[tokio::test]
async fn a_roll_back_waits_for_no_required_checks_although_both_versions_have_them() {
    let (mut world, _, _) = waiting().await;
    for check in ["ci", "load"] {
        report(&world, check, Passed).await;
    }
    pass(&mut world, 10).await;
    world.settle().await;
    let request = DeployComponentsRequest { verified: true, ..with_input("days", 9) };
    let workflow = world.deploy(&request, "deploy-2").await.unwrap();
    world.run().await;

    report(&world, "ci", Failed).await;
    pass(&mut world, 10).await;
    world.settle().await;

    let failed = world.workflow(&workflow).await;
    let roll_back = world.workflow(&failed.roll_back_id()).await;
    assert_eq!((failed.state.as_str(), roll_back.state.as_str()), ("failed", "succeeded"));
    assert!(roll_back.nodes.iter().any(|node| node.name == "health:storage"), "{:?}", roll_back.nodes);
}

#[tokio::test]
async fn a_check_apart_from_a_deploy_does_not_open_a_gate_whose_checks_are_missing() {
    let (mut world, _, _) = waiting().await;
    pass(&mut world, 160).await;
    world.settle().await;
    let check = world.check_health();
    check.check(&globex(), &CheckHealthRequest::default(), asked_with("check-1")).await.unwrap();
    world.settle().await;
    let apart = shown(&world).await.health.unwrap();

    let second = world.deploy(&DeployComponentsRequest::default(), "deploy-2").await.unwrap();
    world.run().await;

    assert_eq!(apart.state, HealthState::Unknown);
    assert_eq!(apart.reason, "no result of checks `ci`, `load` was reported");
    assert_eq!(world.node_states(&second).await, ["info waiting", "health:storage active"]);
}

#[tokio::test]
async fn results_of_an_earlier_deploy_do_not_count() {
    let (mut world, _, _) = waiting().await;
    for check in ["ci", "load"] {
        report(&world, check, Passed).await;
    }
    pass(&mut world, 10).await;
    world.settle().await;

    let second = world.deploy(&with_input("days", 9), "deploy-2").await.unwrap();
    world.run().await;
    let job = world.workflow(&second).await.active_jobs().next().unwrap().clone();
    pass(&mut world, 10).await;

    assert_eq!(state(&world, &job).await, "waiting_for_checks");
    assert_eq!(results(&world).await, ["ci missing", "load missing"]);
}

#[tokio::test]
async fn a_deploy_that_is_cancelled_while_it_waits_ends_with_the_next_sweep() {
    let (mut world, workflow, job) = waiting().await;
    world.sweeper().sweep().await.unwrap();

    world.cancel_workflow().cancel(&workflow, &CancelWorkflowRequest::default(), member()).await.unwrap();
    let ends_by = world.job(&job).await.ends_by();
    pass(&mut world, 5).await;
    report(&world, "ci", Passed).await;
    world.settle().await;

    assert!(ends_by.is_some());
    assert_eq!(state(&world, &job).await, "cancelled");
    assert_eq!(world.machines[&workflow].at, At::Ended("cancelled"));
}

#[tokio::test]
async fn without_a_gate_nothing_waits_and_the_checks_count_in_the_shown_health() {
    let mut world = World::with_checks(false).await;
    let workflow = world.deploy(&DeployComponentsRequest::default(), "deploy-1").await.unwrap();
    world.run().await;

    let mut found = Vec::new();
    for results in [&[][..], &[("ci", Failed)], &[("ci", Passed), ("load", Passed)]] {
        for (check, result) in results {
            report(&world, check, *result).await;
        }
        let health = shown(&world).await.health.unwrap();
        found.push((health.state, health.reason));
    }

    assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"));
    assert_eq!(
        found,
        [
            (HealthState::Unknown, "no result of checks `ci`, `load` was reported".to_owned()),
            (HealthState::Unhealthy, "check `ci` failed".to_owned()),
            (HealthState::Healthy, String::new()),
        ]
    );
}

#[tokio::test]
async fn the_same_report_again_changes_nothing_and_another_result_replaces_it() {
    let (world, _, _) = waiting().await;
    let first = report(&world, "ci", Passed).await;
    let rows = world.memory.rows();
    world.memory.advance_secs(5);

    let again = report(&world, "ci", Passed).await;
    let same = world.memory.rows() == rows;
    let other = report(&world, "ci", Failed).await;

    assert!(same);
    assert_eq!(again, first);
    assert_eq!((other.result, other.at > first.at), (Some(Failed), true));
    assert_eq!(results(&world).await, ["ci failed", "load missing"]);
    assert_eq!((first.by.as_ref(), first.deploy), (Some(member()), Some(shown(&world).await.job)));
}

#[tokio::test]
async fn a_check_that_is_new_without_another_deploy_of_its_component_can_be_reported() {
    for gate in [false, true] {
        let mut world = World::with_health(gate).await;
        world.deploy(&DeployComponentsRequest::default(), "deploy-1").await.unwrap();
        world.settle().await;
        let before = report_with(&world, "ci", &request(Passed)).await.unwrap_err();
        world.runner("globex").started.clear();
        world.sync(&app::with_checks(gate)).await;
        world.deploy(&DeployComponentsRequest::default(), "deploy-2").await.unwrap();
        world.settle().await;

        let reported = report(&world, "ci", Passed).await;

        assert_eq!(before.kind, Kind::NotFound);
        assert_eq!((reported.result, reported.deploy), (Some(Passed), Some(shown(&world).await.job)));
        assert!(!world.runners["globex"].started.contains(&"storage".to_owned()), "only the check is new");
    }
}

#[tokio::test]
async fn a_result_that_is_repeated_after_the_end_of_the_time_keeps_the_time_of_the_first_report() {
    let (mut world, _, job) = waiting().await;
    let first = report(&world, "ci", Passed).await;
    report(&world, "load", Passed).await;
    world.memory.advance_secs(40);
    let again = ReportCheckRequest { reason: Some("still fast".to_owned()), ..request(Passed) };

    let repeated = report_with(&world, "ci", &again).await.unwrap();
    pass(&mut world, 5).await;

    assert_eq!((repeated.at, repeated.reason.as_str()), (first.at, "still fast"));
    assert_eq!(state(&world, &job).await, "succeeded");
}

#[tokio::test]
async fn people_hear_of_a_closed_gate_once_while_its_check_has_failed() {
    let (mut world, _, _) = waiting().await;
    report(&world, "ci", Failed).await;
    pass(&mut world, 10).await;
    world.settle().await;
    let check = world.check_health();
    check.check(&globex(), &CheckHealthRequest::default(), asked_with("check-1")).await.unwrap();
    world.settle().await;
    world.memory.advance_secs(60);
    world.handle_due_tasks().handle().await.unwrap();

    let sent = std::mem::take(&mut *world.memory.notifications.lock().unwrap());
    let changes: Vec<_> = sent.into_iter().filter(|one| one.kind == NotificationKind::HealthChanged).collect();
    let subjects: Vec<_> = changes.iter().map(|one| one.subject.as_str()).collect();

    assert_eq!(shown(&world).await.health.unwrap().state, HealthState::Unhealthy);
    assert_eq!(subjects, ["Freehold: globex: storage is unhealthy"]);
}

/// Returns what reports that these checks passed, and then says so in `called`.
pub(crate) fn passing(
    world: &World,
    checks: &'static [&'static str],
    called: &Arc<AtomicBool>,
) -> Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync> {
    let (reports, called) = (world.report_check(), Arc::clone(called));
    Box::new(move || {
        let (reports, called) = (reports.clone(), Arc::clone(&called));
        async move {
            for check in checks {
                let check = check.parse().unwrap();
                reports.report(&globex(), (&storage(), &check), &request(Passed), member()).await.unwrap();
            }
            called.store(true, Ordering::Relaxed);
        }
        .boxed()
    })
}

#[tokio::test]
async fn a_report_between_any_two_calls_of_another_or_of_a_sweep_is_not_lost() {
    let (start, workflow, _) = waiting().await;
    let mut acts = 0;
    for sweeps in [false, true] {
        for at in 0.. {
            let mut world = start.copy();
            let called = Arc::new(AtomicBool::new(false));
            let store = Arc::new(Interleaved::new(world.memory.clone(), at, passing(&world, &["load", "ci"], &called)));

            if sweeps {
                let sweeper = Sweep { store, ..world.sweeper() };
                let _ = sweeper.sweep().await.unwrap();
            } else {
                let report = ReportCheck { store, ..world.report_check() };
                let check = "ci".parse().unwrap();
                report.report(&globex(), (&storage(), &check), &request(Passed), member()).await.unwrap();
            }
            if !called.load(Ordering::Relaxed) {
                break;
            }
            pass(&mut world, 10).await;

            assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"), "before call {at}, sweeps: {sweeps}");
            acts += 1;
        }
    }
    assert!(acts > 5, "only {acts} calls");
}

#[tokio::test]
async fn what_a_report_cannot_be_about_is_refused_with_a_way_out() {
    let (world, _, _) = waiting().await;
    let never = World::with_install().await;
    let mut report_of = Vec::new();
    let line = ReportCheckRequest { reason: Some("two\nlines".to_owned()), ..request(Passed) };
    let address = ReportCheckRequest { url: Some("ci.example.com".to_owned()), ..request(Passed) };
    let deploy: JobId = "job_00000000000000000001".parse().unwrap();
    let earlier = ReportCheckRequest { deploy: Some(deploy), ..request(Passed) };
    for (world, check, request) in [
        (&world, "lod", &request(Passed)),
        (&never, "ci", &request(Passed)),
        (&world, "ci", &line),
        (&world, "ci", &address),
        (&world, "ci", &earlier),
    ] {
        report_of.push(report_with(world, check, request).await.unwrap_err());
    }
    let (cache, ci) = ("cache".parse().unwrap(), "ci".parse().unwrap());
    let absent = world.report_check().report(&globex(), (&cache, &ci), &request(Passed), member()).await.unwrap_err();
    let initech = "initech".parse().unwrap();
    let unknown = world.report_check().report(&initech, (&storage(), &ci), &request(Passed), member()).await;
    report_of.extend([absent, unknown.unwrap_err()]);

    for (error, (kind, text)) in report_of.into_iter().zip([
        (Kind::NotFound, "component `storage` does not require check `lod`; it requires checks `ci`, `load`"),
        (
            Kind::NotFound,
            "component `storage` does not require check `ci`; it requires none; add \
             `required_checks` to `[health]` of `storage` in the app config, and deploy it",
        ),
        (Kind::Invalid, "a reason must be one line of 1 to 500 characters"),
        (Kind::Invalid, "`url` must begin with `https://` or `http://`"),
        (
            Kind::Conflict,
            "job `job_00000000000000000001` did not make the last deploy of component `storage`, job `job_",
        ),
        (Kind::NotFound, "component `cache` is not deployed in install `globex`"),
        (Kind::NotFound, "install `initech` does not exist"),
    ]) {
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.message.starts_with(text), "{error}");
    }
    assert!(table::reported_checks(&*world.memory, &globex()).await.unwrap().is_empty());
}

#[tokio::test]
async fn an_install_that_is_being_forgotten_takes_no_report() {
    let (mut world, _, _) = waiting().await;
    report(&world, "ci", Failed).await;
    pass(&mut world, 10).await;
    world.settle().await;
    let forget = ForgetInstallRequest { customer_gone: true };

    world.forget_install().forget(&globex(), &forget).await.unwrap();
    let refused = report_with(&world, "load", &request(Passed)).await.unwrap_err();

    assert_eq!(refused.kind, Kind::NotFound);
}
