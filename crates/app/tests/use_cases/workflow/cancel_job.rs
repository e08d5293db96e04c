//! Cancelling a job: it is asked to stop, unless it has ended.

use crate::support::runner::Behaviour;
use crate::support::{World, with_input};

#[tokio::test]
async fn a_job_that_ends_by_itself_before_it_hears_of_the_cancel_has_ended_so() {
    let mut world = World::with_install().await;
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::Hangs);
    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.run().await;
    let job = world.workflow(&workflow).await.active_jobs().next().unwrap().clone();
    world.cancel_job().cancel(&job).await.unwrap();
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

    world.cancel_job().cancel(&job).await.unwrap();

    assert_eq!(world.memory.rows(), before);
    assert!(world.memory.take_dispatched().is_empty());
}
