//! Metrics: each event counts once, also when messages are delivered again, and names its app and its install.

use std::collections::BTreeMap;

use freehold_app::metrics::Metric;
use freehold_app::workflow::accept_report::{Accepted, Arrival};
use freehold_protocol::Timestamp;
use freehold_protocol::api::DetectDriftRequest;
use freehold_protocol::approval::Side;
use freehold_protocol::report::{AttemptEvent, Away, AwayReason, Fence, Outcome, ReportBody};

use crate::approval::approve_job::waiting;
use crate::support::runner::{Behaviour, sick};
use crate::support::values::{Recorded, Values, sum, values};
use crate::support::walk::Rng;
use crate::support::{World, app, drifts, globex, with_input};

/// Returns how often each metric was recorded. Deliveries of reports do not count: they may be repeated.
fn counts(events: &[Recorded]) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for (metric, _) in events.iter().flat_map(|event| &event.values) {
        *counts.entry(metric.as_str()).or_default() += 1;
    }
    for delivery in [Metric::ReportsAccepted, Metric::ReportsRefused, Metric::ReportDelay] {
        counts.remove(delivery.as_str());
    }
    counts
}

async fn deploy(world: &mut World) -> usize {
    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.settle().await;
    world.node_states(&workflow).await.len()
}

async fn minutes(world: &mut World, many: u32) {
    for _ in 0..many {
        world.memory.advance_secs(60);
        world.handle_due_tasks().handle().await.unwrap();
        world.sweeper().sweep().await.unwrap();
        world.run().await;
    }
}

#[tokio::test]
async fn a_deploy_counts_its_workflow_and_its_jobs_with_app_and_install() {
    let mut world = World::with_install().await;
    let recorded = Values::collect();

    let jobs = deploy(&mut world).await;

    let events = recorded.take();
    let expected = [
        ("DeployDuration", 1),
        ("JobDuration", jobs),
        ("JobsSucceeded", jobs),
        ("RunnerWait", jobs),
        ("WorkflowsStarted", 1),
        ("WorkflowsSucceeded", 1),
    ];
    assert_eq!(counts(&events), expected.into());
    let reports = sum(&events, Metric::ReportsAccepted);
    assert!(reports >= jobs as u64, "{reports} reports of {jobs} jobs");
    for event in &events {
        assert_eq!(event.app.as_deref(), Some(app::document().app.as_str()), "{event:?}");
        assert_eq!(event.install.as_deref(), Some(globex().as_str()), "{event:?}");
    }
}

#[tokio::test]
async fn messages_that_are_delivered_again_in_any_order_count_nothing_twice() {
    for seed in 0..20 {
        let mut world = World::with_install().await;
        world.chaos = Some(Rng::new(seed));
        let recorded = Values::collect();

        let jobs = deploy(&mut world).await;

        let events = recorded.take();
        let once = [Metric::WorkflowsStarted, Metric::WorkflowsSucceeded, Metric::DeployDuration];
        assert_eq!(once.map(|metric| values(&events, metric).len()), [1; 3], "seed {seed}");
        assert_eq!(sum(&events, Metric::JobsSucceeded), jobs as u64, "seed {seed}");
    }
}

#[tokio::test]
async fn a_job_that_fails_without_a_retry_counts_once() {
    let mut world = World::with_install().await;
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::FailsBefore(99));
    let recorded = Values::collect();

    deploy(&mut world).await;

    let events = recorded.take();
    let counted = [Metric::WorkflowsFailed, Metric::JobsFailed, Metric::WorkflowsSucceeded, Metric::DeployDuration];
    assert_eq!(counted.map(|metric| values(&events, metric).len()), [1, 1, 0, 0]);
}

#[tokio::test]
async fn a_retry_is_neither_a_failed_job_nor_a_second_one() {
    let mut world = World::with_retries(2, 3).await;
    let recorded = Values::collect();

    deploy(&mut world).await;

    let events = recorded.take();
    assert_eq!([Metric::JobsRetried, Metric::JobsFailed].map(|metric| sum(&events, metric)), [2, 0]);
    assert_eq!(sum(&events, Metric::WorkflowsSucceeded), 1);
}

#[tokio::test]
async fn a_job_that_is_lost_counts_with_the_app_of_its_install() {
    let recorded = Values::collect();

    let (_, _, job) = World::with_lost_job().await;

    let mut events = recorded.take();
    events.retain(|event| event.values.contains(&(Metric::JobsLost, 1)));
    let [lost] = &events[..] else { panic!("{events:?}") };
    assert_eq!((lost.app.as_deref(), lost.job.as_deref()), (Some(app::document().app.as_str()), Some(job.as_str())));
}

#[tokio::test]
async fn an_end_that_is_reported_after_the_job_was_lost_counts_once_as_late_and_by_its_outcome() {
    let (world, _, job) = World::with_lost_job().await;
    let outcome = Outcome::Succeeded { outputs: Default::default(), sensitive: Default::default(), artifact: None };
    let event = AttemptEvent::finished(outcome, "");
    let end = world.runners["globex"].says(&job, Fence { dispatch: 1, receive: 1 }, 2, event, world.now());
    let recorded = Values::collect();

    for _ in 0..2 {
        world.accept_report().accept(&end, world.now()).await.unwrap();
    }

    let events = recorded.take();
    let counted = [Metric::ReportsLate, Metric::JobsSucceeded, Metric::JobsLost].map(|metric| sum(&events, metric));
    assert_eq!(counted, [1, 1, 0]);
}

#[tokio::test]
async fn a_plan_that_waits_for_its_approval_counts_once() {
    let recorded = Values::collect();

    let (mut world, workflow, job) = waiting(&[Side::Vendor]).await;
    minutes(&mut world, 3).await;

    let mut events = recorded.take();
    events.retain(|event| event.values.contains(&(Metric::ApprovalsAwaited, 1)));
    let [asked] = &events[..] else { panic!("{events:?}") };
    assert_eq!((asked.workflow.as_deref(), asked.job.as_deref()), (Some(workflow.as_str()), Some(job.as_str())));
}

#[tokio::test]
async fn drift_counts_at_each_check_that_finds_it() {
    let mut world = World::with_install().await;
    deploy(&mut world).await;
    world.runner("globex").behaviours.insert("drift:storage".into(), drifts(&["aws_s3_bucket.a"]));
    let recorded = Values::collect();

    for cause in ["drift-1", "drift-2"] {
        world.detect_drift(&DetectDriftRequest::default(), cause).await.unwrap();
        world.settle().await;
    }

    assert_eq!(sum(&recorded.take(), Metric::DriftFound), 2);
}

#[tokio::test]
async fn a_changed_health_and_a_runner_that_is_away_count_when_their_notification_is_sent() {
    let mut world = World::with_health(true).await;
    minutes(&mut world, 2).await;
    let recorded = Values::collect();
    world.runner("globex").behaviours.insert("health:storage".into(), sick());
    deploy(&mut world).await;
    let away = Away { reason: AwayReason::SwitchedOff, detail: "because".into() };
    let runner = &world.runners["globex"];
    let report = runner.sign(&runner.report(ReportBody::Away(away), world.now()));
    world.accept_report().accept(&report, world.now()).await.unwrap();

    minutes(&mut world, 15).await;

    let events = recorded.take();
    assert_eq!([Metric::HealthChanged, Metric::RunnersAway].map(|metric| sum(&events, metric)), [1, 1]);
}

#[tokio::test]
async fn a_report_that_is_not_authentic_counts_as_refused() {
    let world = World::with_install().await;
    let recorded = Values::collect();

    let answered = world.accept_report().accept_or_drop("{}", world.now().into()).await;

    assert!(answered.is_err());
    assert_eq!(sum(&recorded.take(), Metric::ReportsRefused), 1);
}

#[tokio::test]
async fn a_refused_report_counts_for_the_app_that_it_names_only_if_its_sender_is_known() {
    let world = World::with_install().await;
    let runner = &world.runners["globex"];
    let report = runner.sign(&runner.report(ReportBody::Heartbeat, world.now()));
    // The report came before the install was made, so it is refused before its signature is verified.
    let stranger = Arrival::from(Timestamp::from_millis(0));
    let known = Arrival { install: Some(globex()), ..stranger.clone() };
    let recorded = Values::collect();

    for arrival in [stranger, known] {
        let answer = world.accept_report().accept(&report, arrival).await.unwrap();
        assert!(matches!(answer, Accepted::Refused(_)), "{answer:?}");
    }

    let events = recorded.take();
    let (app, install) = (app::document().app.as_str().to_owned(), globex().as_str().to_owned());
    let refused = Recorded { values: vec![(Metric::ReportsRefused, 1)], ..Recorded::default() };
    assert_eq!(events, [refused.clone(), Recorded { app: Some(app), install: Some(install), ..refused }]);
}

#[test]
fn the_page_names_each_metric_with_its_unit() {
    let page = include_str!("../../../../docs/metrics.md");
    let row = |line: &str| {
        let cells: Vec<&str> = line.strip_prefix("| `")?.split(" | ").collect();
        let name = cells.first()?.strip_suffix('`')?.to_owned();
        Some((name, (*cells.get(1)?).to_owned()))
    };
    let section = page.split("\n## ").find(|part| part.starts_with("The metrics\n")).unwrap();

    let rows: Vec<(String, String)> = section.lines().filter_map(row).collect();

    let expected = Metric::ALL.map(|metric| (metric.as_str().to_owned(), metric.unit().as_str().to_owned()));
    assert_eq!(rows, expected);
}
