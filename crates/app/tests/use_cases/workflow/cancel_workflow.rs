//! Cancelling a workflow: no further job starts, running jobs are asked to stop, and the workflow ends.

use std::sync::Arc;

use freehold_app::messages::DispatchMessage;
use freehold_app::new_workflow::Asked;
use freehold_app::table;
use freehold_app::workflow::cancel_workflow::CancelWorkflow;
use freehold_protocol::envelope::PublicKey;
use freehold_protocol::report::{AttemptEvent, Fence, Outcome};
use futures_util::FutureExt as _;

use crate::support::interleaving::Interleaved;
use crate::support::runner::Behaviour;
use crate::support::walk::At;
use crate::support::{World, caller, globex, member, with_input};

#[tokio::test]
async fn a_running_workflow_stops_and_ends_as_cancelled() {
    let (mut world, workflow) = World::deploying(Behaviour::Hangs).await;

    world.cancel_workflow().cancel(&workflow, &Default::default(), member()).await.unwrap();
    world.settle().await;

    assert_eq!(world.node_states(&workflow).await, ["info skipped", "storage cancelled"]);
    assert_eq!(world.machines[&workflow].at, At::Ended("cancelled"));
    assert_eq!(world.runners["globex"].started.iter().filter(|name| *name == "info").count(), 1, "of provisioning");
    assert!(world.refusals().is_empty());
}

#[tokio::test]
async fn cancelling_twice_sends_one_message() {
    let (mut world, workflow) = World::deploying(Behaviour::Ignores).await;

    for _ in 0..2 {
        world.cancel_workflow().cancel(&workflow, &Default::default(), member()).await.unwrap();
        world.settle().await;
    }

    let orders = world.memory.orders.lock().unwrap().clone();
    assert_eq!(orders.iter().filter(|(_, group, ..)| group == "control").count(), 1);
}

#[tokio::test]
async fn a_workflow_that_waits_for_its_runner_ends_with_the_next_sweep() {
    let mut world = World::with_app().await;
    let workflow = world.create().await;
    world.run().await;

    world.cancel_workflow().cancel(&workflow, &Default::default(), member()).await.unwrap();
    world.settle().await;

    assert_eq!(world.machines[&workflow].at, At::Ended("cancelled"));
    assert_eq!(table::install(&*world.memory, &globex()).await.unwrap().value.live, None);
}

#[tokio::test]
async fn a_workflow_that_was_planned_and_not_started_starts_nothing() {
    let world = World::with_install().await;
    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.plan_workflow().plan(&workflow, 0).await.unwrap();

    world.cancel_workflow().cancel(&workflow, &Default::default(), member()).await.unwrap();
    world.plan_workflow().run(&workflow, 0, "token".into()).await.unwrap();
    world.sweeper().sweep().await.unwrap();

    assert!(world.memory.take_dispatched().is_empty());
    assert!(world.memory.resumed.lock().unwrap().iter().any(|(token, _)| token == "token"));
    assert_eq!(world.finish_workflow().finish(&workflow, 0, None).await.unwrap().state, "cancelled");
}

#[tokio::test]
async fn a_job_whose_cancel_overtakes_its_order_ends_when_the_runner_refuses_to_start_it() {
    let mut world = World::with_install().await;
    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.walk().await;
    let order = world.memory.take_dispatched();
    world.dispatch_job().perform(&order[0]).await.unwrap();
    world.cancel_workflow().cancel(&workflow, &Default::default(), member()).await.unwrap();
    world.sweeper().sweep().await.unwrap();
    let cancel = world.memory.take_dispatched();
    world.dispatch_job().perform(&cancel[0]).await.unwrap();
    let last = world.memory.orders.lock().unwrap().len() - 1;
    // Two groups of a FIFO queue have no order between them.
    world.memory.orders.lock().unwrap().swap(last - 1, last);
    world.runner("globex").started.clear();

    world.run().await;

    assert!(world.runners["globex"].started.is_empty());
    assert_eq!(world.node_states(&workflow).await, ["info skipped", "storage cancelled"]);
    assert_eq!(world.machines[&workflow].at, At::Ended("cancelled"));
}

#[tokio::test]
async fn a_job_that_is_cancelled_before_its_order_is_made_ends_without_the_runner() {
    let mut world = World::with_install().await;
    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.walk().await;
    let order = world.memory.take_dispatched();
    world.cancel_workflow().cancel(&workflow, &Default::default(), member()).await.unwrap();
    world.runner("globex").started.clear();
    let sent = world.memory.orders.lock().unwrap().len();

    // Twice, as the queue may deliver it.
    world.dispatch_job().perform(&order[0]).await.unwrap();
    world.dispatch_job().perform(&order[0]).await.unwrap();
    let orders = world.memory.orders.lock().unwrap().len();
    world.settle().await;

    assert_eq!((orders, world.runners["globex"].started.len()), (sent, 0));
    assert_eq!(world.node_states(&workflow).await, ["info skipped", "storage cancelled"]);
    assert_eq!(world.machines[&workflow].at, At::Ended("cancelled"));
}

#[tokio::test]
async fn a_report_of_a_cancelled_job_is_answered_with_the_cancel() {
    let (world, workflow) = World::deploying(Behaviour::Hangs).await;
    let job = world.workflow(&workflow).await.active_jobs().next().unwrap().clone();
    world.cancel_workflow().cancel(&workflow, &Default::default(), member()).await.unwrap();
    let event = AttemptEvent::Progress { log: String::new() };
    let fence = Fence { dispatch: 1, receive: 1 };
    let progress = world.runners["globex"].says(&job, fence, 2, event, world.now());

    world.accept_report().accept(&progress, world.now()).await.unwrap();

    let key: PublicKey = world.runners["globex"].key.verifying_key().into();
    let cancel = DispatchMessage::Cancel { job, dispatch: 1, receive: None, runner: Some(key.key_id()) };
    assert_eq!(world.memory.take_dispatched(), [cancel]);
}

#[tokio::test]
async fn a_workflow_whose_jobs_ended_well_before_they_heard_of_the_cancel_succeeded() {
    let (mut world, workflow) = World::deploying(Behaviour::Hangs).await;
    world.runner("globex").behaviours.insert("info".into(), Behaviour::Hangs);
    let outcome = freehold_protocol::report::Outcome::Succeeded {
        outputs: Default::default(),
        sensitive: Default::default(),
        artifact: None,
    };
    let now = world.now();

    for last in [false, true] {
        let job = world.workflow(&workflow).await.active_jobs().next().unwrap().clone();
        if last {
            world.cancel_workflow().cancel(&workflow, &Default::default(), member()).await.unwrap();
        }
        let end = world.runner("globex").finish(&job, outcome.clone(), now);
        world.accept_report().accept(&end[0], world.now()).await.unwrap();
        world.run().await;
    }

    assert_eq!(world.node_states(&workflow).await, ["info succeeded", "storage succeeded"]);
    assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"));
    let view = freehold_app::read::workflow_view(&world.workflow(&workflow).await);
    assert_eq!(view.cancel_requested, Some(now));
}

#[tokio::test]
async fn a_workflow_that_has_ended_does_not_change() {
    let mut world = World::with_install().await;
    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.settle().await;
    let before = world.memory.rows();

    world.cancel_workflow().cancel(&workflow, &Default::default(), member()).await.unwrap();

    assert_eq!(world.memory.rows(), before);
    assert!(world.memory.take_dispatched().is_empty());
}

#[tokio::test]
async fn a_cancel_that_is_late_leaves_the_jobs_of_the_continued_workflow_alone() {
    let mut left_alone = 0;
    for at in 0..6 {
        let (mut world, workflow) = World::deploying(Behaviour::Hangs).await;
        let job = world.workflow(&workflow).await.active_jobs().next().unwrap().clone();
        let now = world.now();
        let failed = Outcome::Failed { reason: "exit status 1".into(), partial: false };
        let end = world.runner("globex").finish(&job, failed, now).remove(0);
        let (accept, finish) = (world.accept_report(), world.finish_workflow());
        let (resume, plan) = (world.resume_workflow(), world.plan_workflow());
        let id = workflow.clone();
        // Between two calls of the cancel, the job fails, its workflow ends, and somebody resumes it.
        let act = move || {
            let (accept, finish, resume, plan) = (accept.clone(), finish.clone(), resume.clone(), plan.clone());
            let (id, end) = (id.clone(), end.clone());
            async move {
                accept.accept(&end, now).await.unwrap();
                finish.finish(&id, 0, None).await.unwrap();
                let asked = Asked { by: &caller("bea"), cause: "resume-1", step: None };
                resume.resume(&id, &Default::default(), asked).await.unwrap();
                plan.run(&id, 1, "token".into()).await.unwrap();
            }
            .boxed()
        };
        let store = Arc::new(Interleaved::new(world.memory.clone(), at, Box::new(act)));
        let cancel = CancelWorkflow { store, clock: world.memory.clone() };

        cancel.cancel(&workflow, &Default::default(), member()).await.unwrap();

        let (job, workflow) = (world.job(&job).await, world.workflow(&workflow).await);
        let cancels = (job.cancel_requested.is_some(), workflow.cancel_requested.is_some());
        assert_eq!(cancels.0, cancels.1, "of the job and of its workflow, when it was continued before call {at}");
        left_alone += u32::from(job.state.dispatch() == 2 && !cancels.0);
    }
    assert!(left_alone > 0, "no cancel was late");
}
