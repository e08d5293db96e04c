//! A customer's pause: jobs wait for their runner and continue, the connection says what is known, and a runner that has
//! lost its access gets neither orders nor grants until its next hello.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use freehold_app::ports::{Committed, Key, PortError, Row, Store, Write};
use freehold_app::read;
use freehold_app::sweep::{Sweep, Swept};
use freehold_app::testing::{Fault, Memory};
use freehold_app::workflow::cancel_workflow::CancelWorkflow;
use freehold_domain::JobState;
use freehold_protocol::audit::ChainHead;
use freehold_protocol::report::{Away, AwayReason, Fence, Refusal, RefusalReason, Report, ReportBody};
use freehold_protocol::{Digest, JobId, WorkflowId};

use crate::support::runner::Behaviour;
use crate::support::walk::At;
use crate::support::{World, globex, member, with_input};

const DAY: u64 = 24 * 3600;

/// Returns a world whose only open job is ordered and not claimed, and the job.
async fn unclaimed() -> (World, WorkflowId, JobId) {
    let (world, workflow) = World::deploying(Behaviour::Ignores).await;
    let job = world.workflow(&workflow).await.active_jobs().next().unwrap().clone();
    (world, workflow, job)
}

/// Lets three days pass with a sweep each hour.
async fn weekend(world: &World) {
    for _ in 0..72 {
        world.memory.advance_secs(3600);
        world.sweeper().sweep().await.unwrap();
    }
}

fn given_back(world: &World, job: &JobId, dispatch: u32) -> String {
    let refusal = Refusal {
        reason: RefusalReason::Expired,
        detail: "too late".into(),
        message: Digest::of(b"order"),
        job: Some((job.clone(), Fence { dispatch, receive: 1 })),
        given_back: true,
        until: None,
    };
    let runner = &world.runners["globex"];
    runner.sign(&runner.report(ReportBody::Refused(refusal), world.now()))
}

async fn says_away(world: &World, reason: AwayReason) {
    let runner = &world.runners["globex"];
    let away = Away { reason, detail: "because".into() };
    let report = runner.sign(&runner.report(ReportBody::Away(away), world.now()));
    world.accept_report().accept(&report, world.now()).await.unwrap();
}

async fn says_hello(world: &World) {
    let hello = world.runners["globex"].hello(world.now());
    world.accept_report().accept(&hello, world.now()).await.unwrap();
}

/// Returns the state of the connection, and the seconds since when it has it.
async fn connection(world: &World) -> (String, u64) {
    let of_install = read::show_install(&world.versions(), &globex(), world.now()).await.unwrap().connection.unwrap();
    let installs = read::list_installs(&*world.memory, None, world.now(), &|_| true).await.unwrap();
    let in_list = installs.items.into_iter().find(|one| one.install == globex()).unwrap().connection;
    assert_eq!(in_list.as_ref(), Some(&of_install));
    (of_install.state, world.now().since(of_install.since) / 1000)
}

#[tokio::test]
async fn a_weekend_with_the_runner_off_ends_with_everything_done_once() {
    let (mut world, workflow, job) = unclaimed().await;
    let ordered = world.now();
    world.memory.advance_secs(1);
    says_away(&world, AwayReason::SwitchedOff).await;

    weekend(&world).await;
    let paused = connection(&world).await;
    let view = read::show_job(&*world.memory, &job, world.now()).await.unwrap();
    let nodes = read::show_workflow(&*world.memory, &workflow, world.now()).await.unwrap().nodes;
    world.runner("globex").behaviours.clear();
    says_hello(&world).await;
    for _ in 0..2 {
        let report = given_back(&world, &job, 1);
        world.accept_report().accept(&report, world.now()).await.unwrap();
    }
    world.run().await;

    assert_eq!(paused, ("paused".to_owned(), 3 * DAY));
    assert_eq!((view.state.as_str(), view.waits_since), ("waiting_for_runner", Some(ordered)));
    assert_eq!(view.waits_until, Some(ordered.plus_secs(13 * DAY)));
    let storage = nodes.iter().find(|node| node.name == "storage").unwrap();
    assert_eq!((storage.state.as_str(), storage.waits_since), ("waiting_for_runner", Some(ordered)));
    assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"));
    assert_eq!(world.runners["globex"].started.iter().filter(|name| *name == "storage").count(), 2, "one each deploy");
    assert_eq!(connection(&world).await, ("connected".to_owned(), 0));
    assert!(world.open().is_empty() && world.refusals().iter().all(|why| why.contains("expired")));
}

#[tokio::test]
async fn an_order_that_comes_back_is_ordered_again_once_whichever_call_fails() {
    let (world, workflow, job) = unclaimed().await;
    weekend(&world).await;
    let mut failed = 0;
    for fault in [Fault::Before, Fault::AnswerLost] {
        for at in 0.. {
            let mut world = world.copy();
            world.runner("globex").behaviours.clear();
            let report = given_back(&world, &job, 1);
            let calls = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
            let seen = calls.clone();
            world
                .memory
                .faults
                .set(move |_| (seen.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == at).then_some(fault));
            let first = world.accept_report().accept(&report, world.now()).await;
            world.memory.faults.set(|_| None);
            if calls.load(std::sync::atomic::Ordering::Relaxed) <= at {
                break;
            }
            failed += 1;
            if first.is_err() {
                world.accept_report().accept(&report, world.now()).await.unwrap();
            }
            world.run().await;

            assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"), "{fault:?} at {at}");
            let job = world.job(&job).await;
            assert!(
                matches!(job.state, JobState::Succeeded { fence: Fence { dispatch: 2, receive: 1 }, .. }),
                "{job:?}"
            );
        }
    }
    assert!(failed > 8, "{failed}");
}

#[tokio::test]
async fn a_job_that_waits_is_cancelled_within_a_minute_and_frees_its_install() {
    let (mut world, workflow, job) = unclaimed().await;
    weekend(&world).await;
    world.cancel_workflow().cancel(&workflow, &Default::default(), member()).await.unwrap();

    world.memory.advance_secs(60);
    world.sweeper().sweep().await.unwrap();
    world.run().await;

    assert_eq!(world.job(&job).await.state.as_str(), "cancelled");
    assert_eq!(world.machines[&workflow].at, At::Ended("cancelled"));
    assert!(world.deploy(&with_input("days", 9), "deploy-2").await.is_ok());
    // The old order comes back after all: nothing is ordered again.
    let orders = world.memory.orders.lock().unwrap().len();
    let report = given_back(&world, &job, 1);
    world.accept_report().accept(&report, world.now()).await.unwrap();
    assert_eq!(world.job(&job).await.state.as_str(), "cancelled");
    assert_eq!(world.memory.orders.lock().unwrap().len(), orders);
}

async fn sweep_after(world: &World, secs: u64) -> Swept {
    world.memory.advance_secs(secs);
    world.sweeper().sweep().await.unwrap()
}

#[tokio::test]
async fn a_workflow_that_waits_for_its_runner_is_looked_at_every_quarter_of_an_hour_until_somebody_does_something() {
    let (world, workflow, job) = unclaimed().await;
    let began = sweep_after(&world, DAY).await;
    let mut due = Vec::new();
    for _ in 0..32 {
        due.push(sweep_after(&world, 60).await.due);
    }
    world.cancel_workflow().cancel(&workflow, &Default::default(), member()).await.unwrap();
    let cancelled = sweep_after(&world, 1).await;

    let busy: Vec<usize> = (0..).zip(due).filter(|(_, due)| *due > 0).map(|(minute, _)| minute).collect();
    assert_eq!((began.waiting, busy), (1, vec![14, 29]));
    assert_eq!((cancelled.due, cancelled.failed), (1, 0));
    assert_eq!(world.job(&job).await.state.as_str(), "cancelled");
}

/// Cancels a workflow when the sweep has looked at its jobs, before it puts off the next look.
struct Meanwhile {
    memory: Arc<Memory>,
    cancel: CancelWorkflow,
    workflow: WorkflowId,
    done: AtomicBool,
}

#[async_trait::async_trait]
impl Store for Meanwhile {
    async fn get(&self, key: &Key) -> Result<Option<Row>, PortError> {
        if key.pk.starts_with("token#") && !self.done.swap(true, Ordering::Relaxed) {
            self.cancel.cancel(&self.workflow, &Default::default(), member()).await.unwrap();
        }
        self.memory.get(key).await
    }

    async fn query(&self, pk: &str, prefix: &str, after: Option<&str>, limit: u32) -> Result<Vec<Row>, PortError> {
        self.memory.query(pk, prefix, after, limit).await
    }

    async fn commit(&self, writes: Vec<Write>) -> Result<Committed, PortError> {
        self.memory.commit(writes).await
    }
}

#[tokio::test]
async fn a_cancel_in_the_middle_of_a_look_is_seen_by_the_next_sweep() {
    let (world, workflow, job) = unclaimed().await;
    sweep_after(&world, DAY).await;
    let cancel = world.cancel_workflow();
    let meanwhile = Meanwhile { memory: world.memory.clone(), cancel, workflow, done: AtomicBool::new(false) };
    let sweep = Sweep { store: Arc::new(meanwhile), ..world.sweeper() };

    world.memory.advance_secs(3600);
    let first = sweep.sweep().await.unwrap();
    let between = world.job(&job).await.state.as_str();
    let second = sweep_after(&world, 60).await;

    assert_eq!((first.due, first.failed, between), (1, 0, "waiting_for_runner"));
    assert_eq!((second.due, second.failed), (1, 0));
    assert_eq!(world.job(&job).await.state.as_str(), "cancelled");
}

#[tokio::test]
async fn the_audit_record_that_a_runner_names_when_it_goes_away_is_kept() {
    let world = World::with_install().await;
    let runner = &world.runners["globex"];
    let head = ChainHead { seq: 44, digest: Digest::of(b"record") };
    let away = Away { reason: AwayReason::Stopped, detail: "because".into() };
    let report = runner.report(ReportBody::Away(away), world.now());
    let report = runner.sign(&Report { head: Some(head.clone()), ..report });
    world.memory.advance_secs(1);
    world.accept_report().accept(&report, world.now()).await.unwrap();
    says_hello(&world).await;

    let view = read::show_install(&world.versions(), &globex(), world.now()).await.unwrap();
    assert_eq!(view.audit, Some(head));
}

#[tokio::test]
async fn a_job_that_waits_for_thirteen_days_is_lost_with_a_reason_that_says_so() {
    let (mut world, workflow, job) = unclaimed().await;
    for _ in 0..13 * 24 {
        world.memory.advance_secs(3600);
        world.sweeper().sweep().await.unwrap();
    }
    world.run().await;

    let view = read::show_job(&*world.memory, &job, world.now()).await.unwrap();
    assert_eq!(view.state, "lost");
    assert!(view.reason.starts_with("the job waited for its runner until "), "{}", view.reason);
    assert_eq!(world.machines[&workflow].at, At::Ended("failed"));
}

#[tokio::test]
async fn the_connection_is_what_the_runner_said_last_and_silence_after_two_hours() {
    let world = World::with_install().await;
    says_hello(&world).await;
    let connected = connection(&world).await.0;
    world.memory.advance_secs(7200);
    let silent = connection(&world).await;
    says_away(&world, AwayReason::Stopped).await;
    let stopped = connection(&world).await;
    says_hello(&world).await;
    world.memory.advance_secs(1);
    let back = connection(&world).await;

    assert_eq!(connected, "connected");
    assert_eq!(silent, ("silent".to_owned(), 7200));
    assert_eq!(stopped, ("paused".to_owned(), 0));
    // The hello came in the same millisecond as the word before it, so the word still holds.
    assert_eq!(back.0, "paused");
    says_hello(&world).await;
    assert_eq!(connection(&world).await, ("connected".to_owned(), 0));
}

#[tokio::test]
async fn a_deleted_stack_closes_the_queue_and_a_new_one_opens_it_and_the_job_continues() {
    let (mut world, workflow, job) = unclaimed().await;
    world.memory.advance_secs(1);
    says_away(&world, AwayReason::StackDeleted).await;
    let before = world.turn_queues().turn().await.unwrap();
    let closed = world.queues.closed.lock().unwrap().contains(&globex());
    weekend(&world).await;
    let cut_off = connection(&world).await;
    let started = world.memory.started.lock().unwrap().len();

    world.runner("globex").behaviours.clear();
    says_hello(&world).await;
    world.memory.faults.set(|what| (what == "turn_orders_queue").then_some(Fault::Before));
    assert_eq!(world.turn_queues().turn().await.unwrap(), 0, "SQS does not answer");
    world.memory.faults.set(|_| None);
    let after = world.turn_queues().turn().await.unwrap();
    let report = given_back(&world, &job, 1);
    world.accept_report().accept(&report, world.now()).await.unwrap();
    world.run().await;

    assert_eq!((before, closed, after), (1, true, 1));
    assert_eq!(cut_off, ("cut_off".to_owned(), 3 * DAY));
    assert_eq!(started, world.memory.started.lock().unwrap().len(), "nothing was deprovisioned");
    assert!(world.queues.closed.lock().unwrap().is_empty());
    assert_eq!(world.turn_queues().turn().await.unwrap(), 0);
    assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"));
}

#[tokio::test]
async fn no_artifact_is_granted_to_an_install_that_is_cut_off() {
    let mut world = World::with_install().await;
    world.runner("globex").blobs.clear();
    world.memory.advance_secs(1);
    says_away(&world, AwayReason::NoOrders).await;

    world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.run().await;

    let refused = &world.runners["globex"].refused_grants;
    assert!(refused.iter().all(|why| why.contains("has lost its access")) && !refused.is_empty(), "{refused:?}");
}
