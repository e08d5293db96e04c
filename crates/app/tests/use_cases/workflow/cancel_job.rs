//! Cancelling a job: it is asked to stop, unless it has ended.

use freehold_app::{Kind, read};
use freehold_protocol::api::CancelJobRequest;
use freehold_protocol::limits::LOST_GRACE_SECS;
use freehold_protocol::order::Cancel;
use freehold_protocol::{Envelope, Payload as _};

use crate::support::runner::Behaviour;
use crate::support::{World, caller, with_input};

#[tokio::test]
async fn a_job_that_ends_by_itself_before_it_hears_of_the_cancel_has_ended_so() {
    let mut world = World::with_install().await;
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::Hangs);
    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.run().await;
    let job = world.workflow(&workflow).await.active_jobs().next().unwrap().clone();
    world.cancel_job().cancel(&job, &Default::default(), crate::support::member()).await.unwrap();
    let now = world.now();
    let outcome = freehold_protocol::report::Outcome::Succeeded {
        outputs: Default::default(),
        sensitive: Default::default(),
        artifact: None,
    };
    let end = world.runner("globex").finish(&job, outcome, now);

    world.accept_report().accept(&end[0], world.now()).await.unwrap();
    world.run().await;

    assert_eq!(world.job(&job).await.state.as_str(), "succeeded");
    assert_eq!(world.node_states(&workflow).await, ["info succeeded", "storage succeeded"]);
}

#[tokio::test]
async fn a_job_that_has_ended_does_not_change() {
    let mut world = World::with_install().await;
    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.settle().await;
    let before = world.memory.rows();
    let job = world.workflow(&workflow).await.nodes[0].state.clone();
    let freehold_domain::workflow::NodeState::Succeeded { job } = job else { panic!("not succeeded") };

    world.cancel_job().cancel(&job, &Default::default(), crate::support::member()).await.unwrap();

    assert_eq!(world.memory.rows(), before);
    assert!(world.memory.take_dispatched().is_empty());
}

#[tokio::test]
async fn a_cancel_that_its_runner_has_not_answered_says_who_why_and_until_when_the_job_could_start() {
    let (mut world, workflow) = World::deploying(Behaviour::Ignores).await;
    let id = world.workflow(&workflow).await.active_jobs().next().unwrap().clone();
    let request = CancelJobRequest { reason: Some("the wrong week".into()) };
    let job = world.cancel_job().cancel(&id, &request, &caller("bea")).await.unwrap();

    let view = read::job_view(job.clone(), world.now());
    world.sweeper().sweep().await.unwrap();
    world.run().await;

    let ends_by = job.not_after.plus_secs(LOST_GRACE_SECS);
    assert_eq!((view.state.as_str(), view.ends_by), ("queued", Some(ends_by)));
    let wish = format!("the wrong week, asked for by {}", caller("bea"));
    assert_eq!(view.history.last().map(|one| one.reason.as_str()), Some(wish.as_str()));
    let sent = world.memory.orders.lock().unwrap().clone();
    let cancels = sent.iter().map(|(.., body)| Envelope::parse(body.as_bytes()).unwrap());
    let cancels: Vec<Cancel> =
        cancels.filter(|one| one.payload_type == Cancel::TYPE).map(|one| one.peek().unwrap()).collect();
    assert_eq!(cancels.len(), 1);
    assert_eq!((&cancels[0].asked_by, cancels[0].asked_why.as_deref()), (&Some(caller("bea")), Some("the wrong week")));
    assert_eq!(world.job(&id).await.state.as_str(), "queued", "it counts as cancelled before its runner can know");

    world.memory.advance_secs(ends_by.since(world.now()) / 1000 + 1);
    world.sweeper().sweep().await.unwrap();
    let ended = read::job_view(world.job(&id).await, world.now());
    assert_eq!((ended.state.as_str(), ended.ends_by), ("cancelled", None));
}

#[tokio::test]
async fn a_reason_of_two_lines_is_refused() {
    let (world, workflow) = World::deploying(Behaviour::Ignores).await;
    let id = world.workflow(&workflow).await.active_jobs().next().unwrap().clone();
    let request = CancelJobRequest { reason: Some("a\nb".into()) };

    let refused = world.cancel_job().cancel(&id, &request, &caller("bea")).await.unwrap_err();

    assert_eq!((refused.kind, world.job(&id).await.cancel_requested), (Kind::Invalid, None));
}
