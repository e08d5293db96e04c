//! The customer's change windows: jobs wait for them without an order in the queue, are ordered once when a window opens, and
//! the runner's word counts where the control plane knows less.

use freehold_app::read;
use freehold_app::sweep::Swept;
use freehold_domain::JobState;
use freehold_protocol::api::DeployComponentsRequest;
use freehold_protocol::report::{ChangeTimes, Fence, FreeActions, OpenTime, Refusal, RefusalReason, ReportBody};
use freehold_protocol::{Digest, JobId, Timestamp, WorkflowId};

use crate::support::runner::Behaviour;
use crate::support::walk::At;
use crate::support::{World, globex, member, with_input};

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;

/// Times that open `secs` from now, for an hour.
fn opening_in(world: &World, secs: u64) -> ChangeTimes {
    let from = world.now().plus_secs(secs);
    ChangeTimes {
        windows: "UTC: Sat 22:00-23:00".into(),
        openings: vec![OpenTime { from, until: Some(from.plus_secs(HOUR)) }],
        known_until: world.now().plus_secs(35 * DAY),
        free_actions: FreeActions::All,
        ..ChangeTimes::default()
    }
}

async fn announces(world: &mut World, changes: Option<ChangeTimes>) {
    world.memory.advance_secs(1);
    world.runner("globex").changes = changes;
    let hello = world.runners["globex"].hello(world.now());
    world.accept_report().accept(&hello, world.now()).await.unwrap();
}

/// A world with a deploy whose changes wait until a window opens in ten hours.
async fn waiting() -> (World, WorkflowId, JobId) {
    let mut world = World::with_install().await;
    let times = opening_in(&world, 10 * HOUR);
    announces(&mut world, Some(times)).await;
    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.run().await;
    let job = world.workflow(&workflow).await.active_jobs().next().unwrap().clone();
    (world, workflow, job)
}

async fn sweep(world: &World) -> Swept {
    world.sweeper().sweep().await.unwrap()
}

fn orders_of(world: &World, name: &str) -> usize {
    world.runners["globex"].started.iter().filter(|started| *started == name).count()
}

fn refused(world: &World, job: &JobId, dispatch: u32, until: Option<Timestamp>) -> String {
    let refusal = Refusal {
        reason: RefusalReason::OutsideWindow,
        detail: "the customer holds all changes".into(),
        message: Digest::of(b"order"),
        job: Some((job.clone(), Fence { dispatch, receive: 1 })),
        given_back: true,
        until,
    };
    let runner = &world.runners["globex"];
    runner.sign(&runner.report(ReportBody::Refused(refusal), world.now()))
}

#[tokio::test]
async fn a_deploy_outside_the_window_waits_and_says_until_when_and_continues_once_when_it_opens() {
    let (mut world, workflow, job) = waiting().await;
    let before = orders_of(&world, "storage");
    let opens = world.now().plus_secs(10 * HOUR - 1);

    let view = read::show_job(&*world.memory, &job, world.now()).await.unwrap();
    let nodes = read::show_workflow(&*world.memory, &workflow, world.now()).await.unwrap().nodes;
    let install = read::show_install(&world.versions(), &globex(), world.now()).await.unwrap().changes.unwrap();
    let (_, quiet) = (sweep(&world).await, sweep(&world).await);
    world.memory.advance_secs(10 * HOUR);
    let opened = sweep(&world).await;
    world.run().await;

    assert_eq!((view.state.as_str(), view.opens_at), ("waiting_for_window", Some(opens)));
    assert!(view.reason.contains("UTC: Sat 22:00-23:00"), "{}", view.reason);
    let waits: Vec<_> = nodes.iter().filter(|node| node.state == "waiting_for_window").collect();
    assert!(!waits.is_empty() && waits.iter().all(|node| node.opens_at == Some(opens)), "{nodes:?}");
    assert_eq!((install.open, install.until), (false, Some(opens)));
    assert_eq!((quiet.due, quiet.opened), (0, 0), "nothing is looked at before the window opens");
    assert!(opened.opened > 0);
    assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"));
    assert_eq!(orders_of(&world, "storage"), before + 1);
}

#[tokio::test]
async fn a_lifted_hold_is_acted_on_by_the_next_sweep() {
    let mut world = World::with_install().await;
    let held = ChangeTimes { held: true, ..opening_in(&world, 0) };
    announces(&mut world, Some(held)).await;
    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.run().await;
    let waits = world.workflow(&workflow).await.active_jobs().count();
    sweep(&world).await;

    announces(&mut world, None).await;
    let opened = sweep(&world).await.opened;
    world.run().await;

    assert_eq!(opened as usize, waits);
    assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"));
}

#[tokio::test]
async fn an_order_that_the_runner_gives_back_waits_until_the_time_that_it_says_and_is_ordered_anew() {
    let (mut world, workflow) = World::deploying(Behaviour::Ignores).await;
    let job = world.workflow(&workflow).await.active_jobs().next().unwrap().clone();
    let until = world.now().plus_secs(2 * HOUR);

    for _ in 0..2 {
        let report = refused(&world, &job, 1, Some(until));
        world.accept_report().accept(&report, world.now()).await.unwrap();
    }
    let waits = world.job(&job).await;
    sweep(&world).await;
    world.runner("globex").behaviours.clear();
    world.memory.advance_secs(2 * HOUR);
    sweep(&world).await;
    world.run().await;

    assert_eq!((waits.state.as_str(), waits.opens_at()), ("waiting_for_window", Some(until)));
    let done = world.job(&job).await;
    assert!(matches!(done.state, JobState::Succeeded { fence: Fence { dispatch: 2, .. }, .. }), "{done:?}");
    assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"));
}

#[tokio::test]
async fn an_order_given_back_without_a_time_is_sent_again_after_an_hour_if_nothing_is_announced() {
    let (mut world, workflow) = World::deploying(Behaviour::Ignores).await;
    let job = world.workflow(&workflow).await.active_jobs().next().unwrap().clone();
    let report = refused(&world, &job, 1, None);
    world.accept_report().accept(&report, world.now()).await.unwrap();
    world.runner("globex").behaviours.clear();

    world.memory.advance_secs(HOUR - 60);
    let early = sweep(&world).await.opened;
    world.memory.advance_secs(DAY);
    sweep(&world).await;
    world.run().await;

    assert_eq!(early, 0);
    assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"));
}

#[tokio::test]
async fn with_now_the_order_is_sent_and_says_so_because_only_the_runner_knows_who_may_pass() {
    let mut world = World::with_install().await;
    let times = opening_in(&world, 10 * HOUR);
    announces(&mut world, Some(times)).await;

    let request = DeployComponentsRequest { now: true, ..with_input("days", 8) };
    let workflow = world.deploy(&request, "deploy-1").await.unwrap();
    world.run().await;

    assert!(world.workflow(&workflow).await.now);
    assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"));
}

#[tokio::test]
async fn a_waiting_deploy_is_cancelled_within_a_minute_and_frees_its_install() {
    let (mut world, workflow, job) = waiting().await;
    sweep(&world).await;

    world.cancel_workflow().cancel(&workflow, &Default::default(), member()).await.unwrap();
    world.memory.advance_secs(60);
    sweep(&world).await;
    world.run().await;

    assert_eq!(world.job(&job).await.state.as_str(), "cancelled");
    assert_eq!(world.machines[&workflow].at, At::Ended("cancelled"));
}

#[tokio::test]
async fn an_older_hello_does_not_bring_former_windows_back() {
    let mut world = World::with_install().await;
    let times = opening_in(&world, 10 * HOUR);
    world.runner("globex").changes = Some(times);
    let older = world.now();
    let hello = world.runners["globex"].hello(older);
    world.memory.advance_secs(60);
    announces(&mut world, None).await;

    let _ = world.accept_report().accept(&hello, older).await;

    let view = read::show_install(&world.versions(), &globex(), world.now()).await.unwrap();
    assert_eq!(view.changes, None);
}
