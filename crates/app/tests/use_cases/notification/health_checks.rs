//! Notifications about health checks without a result: the runner refused the order, or the job failed or was lost.

use freehold_protocol::api::{CheckHealthRequest, DeployComponentsRequest};
use freehold_protocol::notification::{Notification, NotificationKind};
use freehold_protocol::report::{Away, AwayReason, Block, Fence, Outcome, Refusal, RefusalReason, ReportBody};
use freehold_protocol::{Digest, JobId};

use crate::support::runner::{Behaviour, sick};
use crate::support::{World, app, asked_with, globex};

const UNKNOWN: &str = "Freehold: globex: the health of storage is unknown";

/// Lets a minute pass, and returns the notifications that people got in it, apart from those about successes.
async fn minute(world: &mut World) -> Vec<Notification> {
    world.memory.advance_secs(60);
    world.handle_due_tasks().handle().await.unwrap();
    world.sweeper().sweep().await.unwrap();
    world.run().await;
    let sent = std::mem::take(&mut *world.memory.notifications.lock().unwrap());
    sent.into_iter().filter(|one| one.kind != NotificationKind::WorkflowSucceeded).collect()
}

/// Deploys while the check of `storage` behaves so, and returns the notifications. With `gate`, `info` waits for the check.
async fn deploy(gate: bool, check: Option<Behaviour>) -> (World, Vec<Notification>) {
    let mut world = World::with_health(gate).await;
    minute(&mut world).await;
    if let Some(behaviour) = check {
        world.runner("globex").behaviours.insert("health:storage".into(), behaviour);
    }
    world.deploy(&DeployComponentsRequest::default(), "deploy-1").await.unwrap();
    world.settle().await;
    world.runner("globex").behaviours.clear();
    let sent = minute(&mut world).await;
    (world, sent)
}

/// Checks the health while the check of `storage` behaves so, and returns the subjects of the notifications.
async fn check(world: &mut World, cause: &str, behaviour: Option<Behaviour>) -> Vec<String> {
    if let Some(behaviour) = behaviour {
        world.runner("globex").behaviours.insert("health:storage".into(), behaviour);
    }
    world.check_health().check(&globex(), &CheckHealthRequest::default(), asked_with(cause)).await.unwrap();
    world.settle().await;
    world.runner("globex").behaviours.clear();
    minute(world).await.into_iter().map(|one| one.subject).collect()
}

fn blocked() -> Behaviour {
    let reason = "the order runs a command that its contract does not have".to_owned();
    Behaviour::Ends(Outcome::Blocked { block: Block::ContractNotAccepted, reason })
}

fn failed() -> Behaviour {
    Behaviour::Ends(Outcome::Failed { reason: "the cluster does not answer".into(), partial: false })
}

#[tokio::test]
async fn checks_without_a_result_are_told_once_until_a_check_has_a_result() {
    let (mut world, _) = deploy(false, None).await;

    let first = check(&mut world, "check-1", Some(blocked())).await;
    let second = check(&mut world, "check-2", Some(failed())).await;
    let result = check(&mut world, "check-3", None).await;
    let later = check(&mut world, "check-4", Some(failed())).await;

    assert_eq!(first, [UNKNOWN]);
    assert_eq!(second, [""; 0]);
    assert_eq!(result, ["Freehold: globex: storage is healthy"]);
    assert_eq!(later, [UNKNOWN]);
}

#[tokio::test]
async fn a_component_that_was_unhealthy_before_its_checks_had_no_result_is_told_again() {
    let (mut world, _) = deploy(false, None).await;
    let mut notices = Vec::new();

    for (cause, behaviour) in [
        ("check-1", Some(sick())),
        ("check-2", Some(failed())),
        ("check-3", Some(sick())),
        ("check-4", Some(sick())),
        ("check-5", None),
    ] {
        notices.push(check(&mut world, cause, behaviour).await);
    }

    let unhealthy = "Freehold: globex: storage is unhealthy";
    let expected: [&[&str]; 5] =
        [&[unhealthy], &[UNKNOWN], &[unhealthy], &[], &["Freehold: globex: storage is healthy again"]];
    assert_eq!(notices, expected);
}

#[tokio::test]
async fn a_check_whose_order_the_runner_refuses_is_told_once_with_its_job() {
    let (mut world, _) = deploy(false, None).await;
    world.runner("globex").behaviours.insert("health:storage".into(), Behaviour::Ignores);
    let request = CheckHealthRequest::default();
    let workflow = world.check_health().check(&globex(), &request, asked_with("check-1")).await.unwrap();
    world.run().await;
    let job = world.workflow(&workflow).await.active_jobs().next().unwrap().clone();
    let refusal = Refusal {
        reason: RefusalReason::NotUnderstood,
        detail: "a runner of version 0.1.0 does not know this work; update the runner".into(),
        message: Digest::of(b"order"),
        job: Some((job.clone(), Fence { dispatch: 1, receive: 1 })),
        given_back: false,
        until: None,
    };
    let runner = &world.runners["globex"];
    let report = runner.sign(&runner.report(ReportBody::Refused(refusal), world.now()));

    // The queue delivers the report twice.
    for _ in 0..2 {
        world.accept_report().accept(&report, world.now()).await.unwrap();
    }
    world.settle().await;

    let notices = minute(&mut world).await;
    let [unknown] = &notices[..] else { panic!("{notices:?}") };
    assert_eq!((unknown.kind, unknown.subject.as_str()), (NotificationKind::HealthChanged, UNKNOWN));
    assert_eq!((unknown.job.as_ref(), unknown.command.clone()), (Some(&job), format!("freehold job show {job}")));
    assert_eq!(world.workflow(&workflow).await.state.as_str(), "succeeded");
    assert_eq!(minute(&mut world).await, []);
}

#[tokio::test]
async fn a_check_after_a_deploy_that_has_no_result_is_told_and_a_gate_fails_its_deploy_instead() {
    let (_, without_gate) = deploy(false, Some(failed())).await;
    let (_, with_gate) = deploy(true, Some(failed())).await;

    let subjects: Vec<&str> = without_gate.iter().map(|one| one.subject.as_str()).collect();
    assert_eq!(subjects, [UNKNOWN]);
    let kinds: Vec<NotificationKind> = with_gate.iter().map(|one| one.kind).collect();
    assert_eq!(kinds, [NotificationKind::WorkflowFailed]);
    assert!(with_gate[0].text.contains("What failed: health:storage"), "{}", with_gate[0].text);
}

/// Returns a world in which `storage` and `info` are deployed, and their checks of the deploy found them healthy.
async fn with_two_checks() -> World {
    let mut document = app::with_health(false);
    let health = document.components.iter().find_map(|component| component.settings.health.clone());
    for component in document.components.iter_mut().filter(|component| component.name.as_str() == "info") {
        component.settings.health.clone_from(&health);
    }
    let mut world = World::with_install().await;
    world.sync(&document).await;
    world.build("build-2").await;
    world.settle().await;
    world.deploy(&DeployComponentsRequest::default(), "deploy-1").await.unwrap();
    world.settle().await;
    minute(&mut world).await;
    world
}

#[tokio::test]
async fn a_pause_notifies_once_and_not_again_for_each_component_whose_check_is_lost() {
    // No runner takes the orders, or the runner leaves two jobs that it has started.
    for behaviour in [Behaviour::Ignores, Behaviour::Hangs] {
        let mut world = with_two_checks().await;
        for check in ["health:info", "health:storage"] {
            world.runner("globex").behaviours.insert(check.into(), behaviour.clone());
        }
        let request = CheckHealthRequest::default();
        let workflow = world.check_health().check(&globex(), &request, asked_with("check-1")).await.unwrap();
        world.run().await;
        let jobs: Vec<JobId> = world.workflow(&workflow).await.active_jobs().cloned().collect();
        let away = ReportBody::Away(Away { reason: AwayReason::SwitchedOff, detail: "because".into() });
        let runner = &world.runners["globex"];
        let report = runner.sign(&runner.report(away, world.now()));
        world.accept_report().accept(&report, world.now()).await.unwrap();

        let mut paused = Vec::new();
        for _ in 0..100 {
            paused.extend(minute(&mut world).await.into_iter().map(|one| one.kind));
        }
        let mut states = Vec::new();
        for job in &jobs {
            states.push(world.job(job).await.state.as_str());
        }
        let runner = world.runner("globex");
        runner.behaviours.clear();
        runner.attempts.clear();
        world.hello("globex");
        world.run().await;
        let back: Vec<_> = minute(&mut world).await.into_iter().map(|one| one.kind).collect();
        let next = check(&mut world, "check-2", None).await;

        assert_eq!(paused, [NotificationKind::RunnerAway], "{behaviour:?}");
        assert_eq!(states, ["lost", "lost"], "{behaviour:?}");
        assert_eq!(back, [NotificationKind::RunnerBack], "{behaviour:?}");
        assert_eq!(next, [""; 0], "{behaviour:?}");
    }
}
