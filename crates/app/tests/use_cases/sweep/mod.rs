//! Sweeping: recovers all work that was lost between two steps, and does nothing twice.

mod handle_due_tasks;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use freehold_app::ports::{Committed, Expect, Key, Store, Write};
use freehold_app::sweep::{Sweep, Swept};
use freehold_app::table::{self, NextSweep, OpenWorkflow, Record as _, Sending, TaskToken, due_sweeps, open_key, put};
use freehold_app::testing::{Fault, Memory};
use freehold_domain::JobState;
use freehold_protocol::{JobId, WorkflowId};

use crate::support::doubles::Slow;
use crate::support::runner::Behaviour;
use crate::support::walk::At;
use crate::support::{LOST_SECS, World, asked_with, member, with_input};

async fn sweep_after(world: &World, secs: u64) -> Swept {
    world.memory.advance_secs(secs);
    world.sweeper().sweep().await.unwrap()
}

#[tokio::test]
async fn an_unclaimed_order_is_sent_again_only_while_sqs_knows_its_deduplication_id() {
    let (mut world, _) = World::deploying(Behaviour::Ignores).await;
    let orders = world.memory.orders.lock().unwrap().len();

    let mut resent = Vec::new();
    for _ in 0..10 {
        resent.push(sweep_after(&world, 30).await.resent);
        world.run().await;
    }

    // 30, 60, ... 300 seconds old.
    assert_eq!(resent, [0, 0, 1, 1, 1, 1, 1, 1, 0, 0]);
    assert_eq!(world.memory.orders.lock().unwrap().len(), orders);
}

#[tokio::test]
async fn an_order_that_was_never_sent_is_sent_by_the_sweep() {
    let mut world = World::with_install().await;
    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.walk().await;
    assert_eq!(world.memory.take_dispatched().len(), 1);
    world.run().await;
    assert_eq!(world.node_states(&workflow).await, ["info waiting", "storage active"]);

    sweep_after(&world, 90).await;
    world.run().await;

    assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"));
}

#[tokio::test]
async fn a_job_that_outlived_its_order_is_lost_and_its_dependents_never_start() {
    for behaviour in [Behaviour::Ignores, Behaviour::Hangs] {
        let (mut world, workflow) = World::deploying(behaviour).await;
        let early = world.sweep_with_runner_there(LOST_SECS - 1).await;
        assert_eq!((early.lost, early.waiting, early.stuck), (0, 1, 0));

        let swept = world.sweep_with_runner_there(1).await;
        world.run().await;

        assert_eq!((swept.lost, swept.stuck), (1, 0));
        assert_eq!(world.node_states(&workflow).await, ["info skipped", "storage lost"]);
        assert_eq!(world.machines[&workflow].at, At::Ended("failed"));
        assert!(world.open().is_empty());
        assert!(world.deploy(&with_input("days", 9), "deploy-2").await.is_ok(), "install is free again");
    }
}

#[tokio::test]
async fn an_order_that_never_reached_its_queue_is_ordered_again_when_it_has_expired() {
    let mut world = World::with_install().await;
    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.walk().await;
    // `dispatch-job` does not run until the order has expired.
    world.memory.take_dispatched();
    let job = JobId::derive(&workflow, "storage");
    let swept = world.sweep_with_runner_there(LOST_SECS).await;

    assert_eq!((swept.lost, swept.waiting), (0, 0));
    let again = world.job(&job).await;
    assert_eq!((&again.state, again.start_by() > world.now()), (&JobState::Queued { dispatch: 2 }, true));
    world.run().await;

    assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"));
}

#[tokio::test]
async fn an_order_that_its_queue_refused_each_time_is_ordered_again_when_it_has_expired() {
    let (world, workflow) = World::deploying(Behaviour::Ignores).await;
    let job = JobId::derive(&workflow, "storage");
    let refused = Sending { job: job.clone(), dispatch: 1, first_try: None, by: Default::default() };
    let _ = world.memory.commit(vec![put(&refused, Expect::Any).unwrap()]).await.unwrap();

    let swept = world.sweep_with_runner_there(LOST_SECS).await;

    assert_eq!((swept.lost, swept.waiting, world.job(&job).await.state), (0, 0, JobState::Queued { dispatch: 2 }));
}

#[tokio::test]
async fn a_settled_workflow_that_was_not_resumed_is_resumed() {
    let mut world = World::with_install().await;
    world.memory.faults.set(|what| (what == "succeed").then_some(Fault::Before));
    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.run().await;
    assert_eq!(world.dead.len(), 1, "the last report was given up");
    assert!(matches!(world.machines[&workflow].at, At::Run(Some(_))));
    world.memory.faults.set(|_| None);

    let swept = sweep_after(&world, 60).await;
    world.run().await;

    assert_eq!((swept.failed, swept.stuck), (0, 0));
    assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"));
}

#[tokio::test]
async fn a_settled_workflow_whose_machine_is_gone_is_finished() {
    let mut world = World::with_install().await;
    world.memory.faults.set(|what| (what == "succeed").then_some(Fault::Before));
    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.run().await;
    world.memory.faults.set(|_| None);
    world.machines.get_mut(&workflow).unwrap().at = At::Unfinished;

    let early = sweep_after(&world, 600).await;
    let late = sweep_after(&world, 1).await;

    assert_eq!((early.stuck, late.stuck), (0, 1));
    assert_eq!(world.workflow(&workflow).await.state.as_str(), "succeeded");
    assert!(world.open().is_empty());
}

#[tokio::test]
async fn an_execution_that_was_never_started_is_started_once() {
    let mut world = World::with_install().await;
    world.memory.faults.set(|what| (what == "start").then_some(Fault::Before));
    let install = crate::support::globex();
    let lost = world.deploy_components().deploy(&install, &with_input("days", 8), asked_with("deploy-1")).await;
    assert!(lost.unwrap_err().is_transient());
    world.memory.faults.set(|_| None);
    let before = world.memory.started.lock().unwrap().len();

    sweep_after(&world, 59).await;
    let early = world.memory.started.lock().unwrap().len();
    sweep_after(&world, 1).await;
    sweep_after(&world, 1).await;
    let late = world.memory.started.lock().unwrap().len();
    world.run().await;

    assert_eq!((early, late), (before, before + 1));
    assert!(world.open().is_empty());
}

#[tokio::test]
async fn a_workflow_that_waits_for_a_runner_which_is_there_already_is_resumed() {
    let mut world = World::with_app().await;
    let workflow = world.create().await;
    let hello = world.runners["globex"].hello(world.now());
    world.accept_report().accept(&hello, world.now()).await.unwrap();
    world.run().await;
    assert!(matches!(world.machines[&workflow].at, At::AwaitRunner(Some(_))));

    sweep_after(&world, 60).await;
    world.run().await;

    assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"));
}

#[tokio::test]
async fn a_workflow_that_waits_for_its_customer_is_left_alone() {
    let mut world = World::with_app().await;
    let workflow = world.create().await;
    world.run().await;
    let resumed = world.memory.resumed.lock().unwrap().len();
    // The build that made the app's artifacts has ended.
    sweep_after(&world, 0).await;

    let swept = sweep_after(&world, 3 * 24 * 3600).await;

    assert_eq!(swept, Swept { due: 1, ..Swept::default() });
    assert_eq!(world.memory.resumed.lock().unwrap().len(), resumed);
    // Announced, and not planned yet: late, but not stuck.
    let hello = world.runners["globex"].hello(world.now());
    world.accept_report().accept(&hello, world.now()).await.unwrap();
    assert_eq!(world.sweeper().sweep().await.unwrap().stuck, 0);
    world.run().await;
    assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"));
}

#[tokio::test]
async fn a_waiting_phase_hears_a_heartbeat_while_its_jobs_wait() {
    let (world, workflow) = World::deploying(Behaviour::Ignores).await;

    sweep_after(&world, 60).await;
    sweep_after(&world, 60).await;

    let At::Run(Some(token)) = &world.machines[&workflow].at else { panic!("not waiting") };
    let beats = world.memory.beats.lock().unwrap().clone();
    assert_eq!(beats.iter().filter(|beat| *beat == token).count(), 2);
}

#[tokio::test]
async fn a_job_whose_workflow_ended_before_it_still_ends() {
    let (mut world, workflow) = World::deploying(Behaviour::Ignores).await;
    let job = world.workflow(&workflow).await.active_jobs().next().unwrap().clone();
    world.time_out(&workflow).await;
    assert_eq!(world.machines[&workflow].at, At::Ended("failed"));
    sweep_after(&world, 60).await;
    assert_eq!(world.open(), [workflow.to_string()]);

    sweep_after(&world, 3600 + 600 + 120).await;
    let last = sweep_after(&world, 60).await;

    assert!(matches!(world.job(&job).await.state, JobState::Cancelled { .. }));
    assert_eq!(last.due, 0);
    assert_eq!(world.workflow(&workflow).await.state.as_str(), "failed");
}

#[tokio::test]
async fn a_pending_workflow_whose_machine_is_gone_lets_go_of_its_install_in_the_end() {
    let mut world = World::with_install().await;
    world.memory.faults.set(|what| (what == "start").then_some(Fault::AnswerLost));
    let install = crate::support::globex();
    let _ = world.deploy_components().deploy(&install, &with_input("days", 8), asked_with("deploy-1")).await;
    world.memory.faults.set(|_| None);
    let workflow = WorkflowId::derive("globex", "deploy-1");
    // Its execution exists and has died.
    let warned = sweep_after(&world, 601).await;

    sweep_after(&world, 50 * 60 - 602).await;
    let before = world.workflow(&workflow).await.state.as_str();
    sweep_after(&world, 3).await;

    assert_eq!((warned.stuck, before), (1, "pending"));
    assert_eq!(world.workflow(&workflow).await.state.as_str(), "failed");
    assert!(world.deploy(&with_input("days", 9), "deploy-2").await.is_ok());
    world.run().await;
}

#[tokio::test]
async fn one_workflow_that_cannot_be_looked_at_keeps_no_other_waiting() {
    let (mut world, workflow) = World::deploying(Behaviour::Ignores).await;
    for cause in ["a", "b"] {
        let unreadable = WorkflowId::derive("unreadable", cause);
        let key = Key { pk: table::workflow_pk(&unreadable), sk: "state".into() };
        let row = Write::Put { key, body: "{}".into(), expect: Expect::Any, expires: None };
        let next = NextSweep { workflow: unreadable, from: world.now() };
        let _ = world.memory.commit(vec![row, put(&next, Expect::Any).unwrap()]).await.unwrap();
    }

    let swept = world.sweep_with_runner_there(LOST_SECS).await;
    world.run().await;

    assert_eq!((swept.failed, swept.lost), (2, 1));
    assert!(world.workflow(&workflow).await.state.is_terminal());
}

/// A sweep reads what is due, however many workflows wait for their customers.
#[tokio::test]
async fn workflows_that_wait_for_their_customers_are_looked_at_when_they_are_due() {
    let world = World::with_app().await;
    // What the app's builds left is looked at once.
    let _ = sweep_after(&world, 60).await;
    for number in 0..300 {
        let name = format!("c{number:05}");
        world.create_install().create(&world.creation(&name), member()).await.unwrap();
        let provisioning = world.provisioning(&name).await;
        let token = TaskToken {
            workflow: provisioning,
            attempt: None,
            phase: table::Phase::AwaitRunner,
            token: name,
            needs: std::collections::BTreeSet::new(),
        };
        let _ = world.memory.commit(vec![put(&token, Expect::Any).unwrap()]).await.unwrap();
    }

    let mut due = Vec::new();
    for _ in 0..32 {
        due.push(sweep_after(&world, 60).await.due);
    }

    let busy: Vec<(usize, u32)> = due.into_iter().enumerate().filter(|(_, due)| *due > 0).collect();
    assert_eq!(busy, [(0, 300), (15, 300), (30, 300)]);
}

/// A sweep that runs out of time leaves some for the next one, and begins elsewhere then.
#[tokio::test]
async fn a_sweep_without_time_for_all_leaves_none_out_for_long() {
    let (world, _) = World::deploying(Behaviour::Ignores).await;
    for number in 0..200 {
        let name = format!("c{number:05}");
        world.create_install().create(&world.creation(&name), member()).await.unwrap();
    }
    // Each read of a workflow takes two seconds, so a sweep has time for a dozen.
    let slow = Arc::new(Slow::new(&world.memory, "workflow#"));
    let mut sweeps = 0;
    while slow.read() < 201 {
        let sweep = Sweep { store: slow.clone(), ..world.sweeper() };
        world.memory.advance_secs(35);
        let swept = sweep.sweep().await.unwrap();
        assert!(swept.postponed > 0 && swept.failed == 0, "{swept:?}");
        sweeps += 1;
        assert!(sweeps < 200, "{} workflows were looked at", slow.read());
    }
}

/// The version before kept no next sweeps.
#[tokio::test]
async fn workflows_of_the_version_before_are_looked_at_within_ten_minutes() {
    let (mut world, workflow) = World::deploying(Behaviour::Ignores).await;
    let due = due_sweeps(&*world.memory, world.now()).await.unwrap();
    let mut writes: Vec<Write> = due.iter().map(|next| Write::Delete { key: next.key() }).collect();
    let (install, since) = (crate::support::globex(), world.now());
    let older = OpenWorkflow { workflow: workflow.clone(), install, since, next_sweep: None, due_by: String::new() };
    let body = serde_json::to_string(&older).unwrap();
    assert!(!body.contains("next_sweep"), "{body}");
    writes.push(Write::Put { key: open_key(&workflow), body, expect: Expect::Any, expires: None });
    assert_eq!(world.memory.commit(writes).await.unwrap(), Committed::Done);

    let mut lost = 0;
    for _ in 0..10 {
        lost += sweep_after(&world, 60).await.lost;
    }
    assert_eq!(lost, 0);
    lost += world.sweep_with_runner_there(LOST_SECS).await.lost;
    world.run().await;

    assert_eq!(lost, 1);
    assert!(world.workflow(&workflow).await.state.is_terminal());
}

/// Returns a world in which a build waits for a build runner that does not answer.
async fn building() -> World {
    let mut world = World::new();
    world.sync(&crate::support::app::document()).await;
    world.enrol().await;
    world.hello("build");
    world.run().await;
    for part in ["settings", "info", "storage"] {
        world.runner("build").behaviours.insert(format!("build:{part}"), Behaviour::Ignores);
    }
    world.build("build-1").await;
    world.run().await;
    world
}

/// Returns and removes what the build runner's machine was asked.
fn asked(world: &World) -> Vec<bool> {
    std::mem::take(&mut *world.memory.woken.lock().unwrap())
}

#[tokio::test]
async fn builds_that_wait_start_the_build_runners_machine_once_a_sweep_and_deploys_that_wait_do_not() {
    let world = building().await;
    asked(&world);

    let early = sweep_after(&world, 59).await;
    let unasked = asked(&world);
    let late = sweep_after(&world, 1).await;
    let woken = asked(&world);
    let (other, _) = World::deploying(Behaviour::Ignores).await;
    asked(&other);
    let deploying = sweep_after(&other, 600).await;

    assert_eq!((early.builds, unasked), (0, vec![]));
    assert_eq!((late.builds, woken), (3, vec![true]));
    assert_eq!((deploying.builds, asked(&other).contains(&true)), (0, false));
}

/// A machine may be denied the call by which it gives up its place. The group replaced such a machine again and again.
#[tokio::test]
async fn without_a_build_the_sweep_gives_up_the_place_of_the_machine_every_ten_minutes() {
    let (world, _) = World::deploying(Behaviour::Ignores).await;
    let building = building().await;
    asked(&world);
    asked(&building);

    for _ in 0..20 {
        sweep_after(&world, 60).await;
        sweep_after(&building, 60).await;
    }

    assert_eq!(asked(&world), [false, false]);
    assert_eq!(asked(&building), [true; 20], "a build waits");
}

/// A build begins just before each of the calls of a sweep that sets the number of machines to zero, and asks for its
/// machine at once.
#[tokio::test]
async fn a_build_that_begins_during_a_sweep_has_its_machine_after_it() {
    let mut world = World::new();
    world.sync(&crate::support::app::document()).await;
    world.enrol().await;
    world.hello("build");
    world.run().await;
    while !(world.now().as_millis() / 60_000).is_multiple_of(10) {
        world.memory.advance_secs(60);
    }
    let (before, begun) = (Memory::default(), Arc::new(Memory::default()));
    before.restore(&world.memory);
    for part in ["settings", "info", "storage"] {
        world.runner("build").behaviours.insert(format!("build:{part}"), Behaviour::Ignores);
    }
    world.build("build-1").await;
    world.run().await;
    begun.restore(&world.memory);
    assert!(before.woken.lock().unwrap().is_empty() && asked(&world).contains(&true));

    let mut tried = 0;
    loop {
        world.memory.restore(&before);
        let (memory, begun, calls) = (world.memory.clone(), Arc::clone(&begun), Arc::new(AtomicUsize::new(0)));
        let seen = Arc::clone(&calls);
        world.memory.faults.set(move |_| {
            if seen.fetch_add(1, Ordering::Relaxed) == tried {
                let earlier = memory.woken.lock().unwrap().clone();
                memory.restore(&begun);
                memory.woken.lock().unwrap().splice(0..0, earlier);
            }
            None
        });
        world.sweeper().sweep().await.unwrap();
        world.memory.faults.set(|_| None);
        if calls.load(Ordering::Relaxed) <= tried {
            break;
        }
        assert_eq!(asked(&world).last(), Some(&true), "the build begins before call {tried}");
        tried += 1;
    }

    assert_eq!((tried, asked(&world)), (5, vec![false]), "without a build, the sweep looks, rests and looks again");
}

#[tokio::test]
async fn a_lost_build_does_not_take_the_machine_from_a_build_that_has_just_begun() {
    let mut world = building().await;
    world.memory.advance_secs(24 * 3600);
    world.sync(&crate::support::app::with_source("storage", "example/storage:2")).await;
    world.build("build-2").await;
    world.run().await;
    asked(&world);

    let lost = world.sweeper().sweep().await.unwrap();
    let during = asked(&world);
    let later = sweep_after(&world, 60).await;

    assert_eq!((lost.lost_builds, lost.builds, during), (3, 0, vec![]));
    assert_eq!((later.builds, asked(&world)), (1, vec![true]));
}

#[tokio::test]
async fn a_machine_that_cannot_be_started_now_is_asked_for_by_the_next_sweep() {
    let world = building().await;
    asked(&world);
    world.memory.faults.set(|what| (what == "wake").then_some(Fault::Before));
    let failed = sweep_after(&world, 60).await;
    world.memory.faults.set(|_| None);

    let next = sweep_after(&world, 60).await;

    assert_eq!((failed.builds, failed.failed, next.builds), (3, 0, 3));
    assert_eq!(asked(&world), [true]);
}

#[tokio::test]
async fn after_the_last_lost_build_no_machine_is_asked_for_any_more() {
    let world = building().await;
    asked(&world);

    let lost = sweep_after(&world, 24 * 3600).await;
    let calls = asked(&world);
    let later = sweep_after(&world, 60).await;
    let (other, _) = World::deploying(Behaviour::Ignores).await;
    asked(&other);
    let deploy = other.sweep_with_runner_there(24 * 3600).await;

    assert_eq!((lost.lost_builds, lost.builds, calls), (3, 0, vec![false]));
    assert_eq!((later.lost_builds, asked(&world).contains(&true)), (0, false));
    assert_eq!((deploy.lost, deploy.lost_builds, asked(&other).contains(&true)), (1, 0, false));
}

#[tokio::test]
async fn a_cancelled_build_that_its_runner_has_to_end_starts_the_machine_too() {
    let world = building().await;
    let workflow: WorkflowId = world.open()[0].parse().unwrap();
    world.cancel_workflow().cancel(&workflow, &Default::default(), member()).await.unwrap();
    asked(&world);

    assert_eq!((sweep_after(&world, 60).await.builds, asked(&world)), (3, vec![true]));
}
