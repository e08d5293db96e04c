//! Notifications about roles that trust a stranger, as reports of ends of attempts name them.

use freehold_protocol::JobId;
use freehold_protocol::notification::{Notification, NotificationKind};
use freehold_protocol::report::{AttemptEvent, Fence, Outcome};

use crate::support::doubles::queue_url;
use crate::support::runner::{Behaviour, Runner};
use crate::support::{World, app, globex, member, with_input};

const FIRST: Fence = Fence { dispatch: 1, receive: 1 };

/// Returns the end of an attempt after which these roles trust a stranger.
fn ended(roles: &[&str]) -> AttemptEvent {
    AttemptEvent::Finished {
        outcome: Outcome::Failed { reason: "a stranger".into(), partial: true },
        log: String::new(),
        policies: Vec::new(),
        roles_trusting_strangers: Some(roles.iter().map(|role| role.parse().unwrap()).collect()),
    }
}

/// Returns a world in which `globex` runs the job of `storage`, with this job.
async fn deploying() -> (World, JobId) {
    let (world, workflow) = World::deploying(Behaviour::Hangs).await;
    let job = world.workflow(&workflow).await.active_jobs().next().unwrap().clone();
    (world, job)
}

/// Lets a minute pass, and then the runner report the end of its attempt at `job`. The queue delivers the report twice.
async fn ends(world: &World, job: &JobId, event: AttemptEvent) {
    world.memory.advance_secs(60);
    let (end, at) = (world.runners["globex"].says(job, FIRST, 2, event, world.now()), world.now());
    for _ in 0..2 {
        world.accept_report().accept(&end, at).await.unwrap();
        world.memory.advance_secs(60);
    }
}

/// Returns the notifications about strangers that the tasks of the time sent.
async fn sent(world: &World) -> Vec<Notification> {
    world.handle_due_tasks().handle().await.unwrap();
    let sent = std::mem::take(&mut *world.memory.notifications.lock().unwrap());
    sent.into_iter().filter(|one| one.kind == NotificationKind::StrangerTrusted).collect()
}

#[tokio::test]
async fn people_hear_once_of_a_role_that_trusts_a_stranger_with_its_install_and_job() {
    let (world, job) = deploying().await;

    ends(&world, &job, ended(&["api"])).await;
    let first = sent(&world).await;

    let [found] = &first[..] else { panic!("{first:?}") };
    assert_eq!((found.install.as_ref(), found.app.as_ref()), (Some(&globex()), Some(&app::document().app)));
    assert_eq!(found.job.as_ref(), Some(&job));
    assert!(found.text.starts_with("Role api of install globex trusts"), "{}", found.text);
    assert!(sent(&world).await.is_empty());
}

#[tokio::test]
async fn another_job_that_finds_the_same_trust_is_not_told_until_a_job_found_the_role_clean() {
    let (mut world, first) = deploying().await;
    ends(&world, &first, ended(&["api"])).await;
    assert_eq!(sent(&world).await.len(), 1);
    world.settle().await;
    let workflow = world.deploy(&with_input("days", 9), "deploy-2").await.unwrap();
    world.run().await;
    let second = world.workflow(&workflow).await.active_jobs().next().unwrap().clone();

    let reports: [(&[&str], &[&str]); 4] = [
        (&["api"], &[]),
        (&["api", "db"], &["Freehold: globex: a stranger may assume role db"]),
        (&[], &[]),
        (&["api"], &["Freehold: globex: a stranger may assume role api"]),
    ];
    for (roles, subjects) in reports {
        ends(&world, &second, ended(roles)).await;

        let found = sent(&world).await;
        assert_eq!(found.iter().map(|one| one.subject.as_str()).collect::<Vec<_>>(), subjects, "{roles:?}");
        assert!(found.iter().all(|one| one.job.as_ref() == Some(&second)));
    }
}

#[tokio::test]
async fn an_end_without_a_check_of_roles_changes_nothing_that_is_known() {
    let (world, job) = deploying().await;
    ends(&world, &job, ended(&["api"])).await;
    assert_eq!(sent(&world).await.len(), 1);

    ends(&world, &job, AttemptEvent::finished(Outcome::Cancelled, "")).await;
    ends(&world, &job, ended(&["api"])).await;

    assert!(sent(&world).await.is_empty());
}

/// The attempt may have lost its lease before it found the trust.
#[tokio::test]
async fn a_trust_is_told_although_the_job_rejects_the_report() {
    let (world, job) = deploying().await;
    let late = Fence { dispatch: 1, receive: 2 };
    world.memory.advance_secs(60);
    let started = world.runners["globex"].says(&job, late, 1, AttemptEvent::Started, world.now());
    world.accept_report().accept(&started, world.now()).await.unwrap();

    ends(&world, &job, ended(&["api"])).await;

    assert_eq!(sent(&world).await.len(), 1);
    assert!(!world.job(&job).await.state.is_terminal());
}

#[tokio::test]
async fn a_runner_that_names_a_job_of_another_install_notifies_nobody() {
    let (mut world, job) = deploying().await;
    world.runners.insert("initech".into(), Runner::new(&world.tenant, "initech", queue_url("initech"), 30));
    world.create_install().create(&world.creation("initech"), member()).await.unwrap();
    let hello = world.runners["initech"].hello(world.now());
    world.accept_report().accept(&hello, world.now()).await.unwrap();
    let end = world.runners["initech"].says(&job, FIRST, 2, ended(&["api"]), world.now());

    world.accept_report().accept(&end, world.now()).await.unwrap_err();

    assert!(sent(&world).await.is_empty());
}
