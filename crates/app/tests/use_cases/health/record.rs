//! What reports and the end of a gate's job store about a component, also if they come at the same moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use freehold_app::health::report_check::ReportCheck;
use freehold_app::sweep::Sweep;
use freehold_app::table;
use freehold_protocol::JobId;
use freehold_protocol::api::CheckResult::{Failed, Passed};
use freehold_protocol::api::DeployComponentsRequest;
use freehold_protocol::order::health::HealthState;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::report_check::{pass, passing, report, request, shown, storage, waiting};
use crate::support::interleaving::Interleaved;
use crate::support::walk::At;
use crate::support::{World, globex, member, with_input};

#[tokio::test]
async fn of_reports_of_two_checks_at_the_same_moment_none_is_lost() {
    let (start, workflow, _) = waiting().await;
    let mut acts = 0;
    for at in 0.. {
        let mut world = start.copy();
        let called = Arc::new(AtomicBool::new(false));
        let store = Arc::new(Interleaved::new(world.memory.clone(), at, passing(&world, &["load"], &called)));

        let report = ReportCheck { store, ..world.report_check() };
        let check = "ci".parse().unwrap();
        report.report(&globex(), (&storage(), &check), &request(Passed), member()).await.unwrap();
        if !called.load(Ordering::Relaxed) {
            break;
        }
        let stored = table::reported_checks(&*world.memory, &globex()).await.unwrap();
        pass(&mut world, 10).await;

        assert_eq!(stored.len(), 2, "before call {at}");
        assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"), "before call {at}");
        acts += 1;
    }
    assert!(acts > 5, "only {acts} calls");
}

/// Returns what stores in `has_ended` whether the job has ended, and then reports that both checks passed.
fn passing_since(
    world: &World,
    job: &JobId,
    has_ended: &Arc<AtomicBool>,
    called: &Arc<AtomicBool>,
) -> Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync> {
    let (memory, job, has_ended) = (world.memory.clone(), job.clone(), Arc::clone(has_ended));
    let reports = passing(world, &["ci", "load"], called);
    Box::new(move || {
        let (memory, job, has_ended, reports) = (memory.clone(), job.clone(), Arc::clone(&has_ended), reports());
        async move {
            let found = table::job(&*memory, &job).await.unwrap().value;
            has_ended.store(found.state.is_terminal(), Ordering::Relaxed);
            reports.await;
        }
        .boxed()
    })
}

#[tokio::test]
async fn results_that_are_stored_before_the_job_ends_decide_how_it_ends() {
    let (start, _, job) = waiting().await;
    report(&start, "ci", Failed).await;
    let mut acts = 0;
    for at in 0.. {
        let mut world = start.copy();
        let (called, has_ended) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let reports = passing_since(&world, &job, &has_ended, &called);
        let store = Arc::new(Interleaved::new(world.memory.clone(), at, reports));

        let sweeper = Sweep { store, ..world.sweeper() };
        let _ = sweeper.sweep().await.unwrap();
        if !called.load(Ordering::Relaxed) {
            break;
        }
        pass(&mut world, 10).await;

        let expected = if has_ended.load(Ordering::Relaxed) { "blocked" } else { "succeeded" };
        assert_eq!(world.job(&job).await.state.as_str(), expected, "before call {at}");
        assert_eq!(shown(&world).await.health.unwrap().state, HealthState::Healthy, "before call {at}");
        acts += 1;
    }
    assert!(acts > 5, "only {acts} calls");
}

/// Returns a world in which the gate of `storage` waits for the checks of its second deploy. The first one was healthy.
async fn waiting_again() -> (World, JobId) {
    let (mut world, _, _) = waiting().await;
    for check in ["ci", "load"] {
        report(&world, check, Passed).await;
    }
    pass(&mut world, 10).await;
    world.settle().await;
    let second = world.deploy(&with_input("days", 9), "deploy-2").await.unwrap();
    world.run().await;
    let job = world.workflow(&second).await.active_jobs().next().unwrap().clone();
    (world, job)
}

#[tokio::test]
async fn checks_that_pass_too_late_make_the_component_healthy_before_any_call_of_the_sweep_that_ends_the_job() {
    let (first, _, job) = waiting().await;
    for (start, job) in [(first, job), waiting_again().await] {
        start.memory.advance_secs(160);
        let mut acts = 0;
        for at in 0.. {
            let mut world = start.copy();
            let called = Arc::new(AtomicBool::new(false));
            let reports = passing(&world, &["ci", "load"], &called);
            let store = Arc::new(Interleaved::new(world.memory.clone(), at, reports));

            let sweeper = Sweep { store, ..world.sweeper() };
            let _ = sweeper.sweep().await.unwrap();
            if !called.load(Ordering::Relaxed) {
                break;
            }
            pass(&mut world, 10).await;

            assert_eq!(world.job(&job).await.state.as_str(), "blocked", "before call {at}");
            assert_eq!(shown(&world).await.health.unwrap().state, HealthState::Healthy, "before call {at}");
            acts += 1;
        }
        assert!(acts > 5, "only {acts} calls");
    }
}

#[tokio::test]
async fn the_next_deploy_does_not_ask_a_gate_again_whose_checks_passed_too_late() {
    let (mut world, _, _) = waiting().await;
    pass(&mut world, 40).await;
    for check in ["ci", "load"] {
        report(&world, check, Passed).await;
    }
    pass(&mut world, 125).await;
    world.settle().await;
    world.runner("globex").started.clear();

    let second = world.deploy(&DeployComponentsRequest::default(), "deploy-2").await.unwrap();
    world.settle().await;

    assert_eq!(world.runners["globex"].started, ["info"]);
    assert_eq!(world.workflow(&second).await.state.as_str(), "succeeded");
}
