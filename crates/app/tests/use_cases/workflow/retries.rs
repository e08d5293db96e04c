//! Automatic retries of a component: as often as its config says, once for each failure, whatever is repeated.

use freehold_app::read;
use freehold_protocol::WorkflowId;

use crate::support::walk::{At, Rng};
use crate::support::{World, with_input};

async fn retried(world: &World, workflow: &WorkflowId) -> Vec<(String, String, u32)> {
    let view = read::workflow_view(&world.workflow(workflow).await);
    view.nodes.into_iter().map(|node| (node.name, node.state, node.retried)).collect()
}

#[tokio::test]
async fn a_component_that_fails_twice_is_deployed_at_its_third_dispatch() {
    let mut world = World::with_retries(2, 3).await;

    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.settle().await;

    assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"));
    assert_eq!(world.runners["globex"].started, ["storage", "storage", "storage", "info"]);
    let nodes = retried(&world, &workflow).await;
    assert_eq!(nodes[1], ("storage".to_owned(), "succeeded".to_owned(), 2));
    assert_eq!(read::workflow_view(&world.workflow(&workflow).await).jobs, Some(4));
}

#[tokio::test]
async fn with_no_retry_left_it_has_failed() {
    let mut world = World::with_retries(2, 9).await;

    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.settle().await;

    assert_eq!(world.machines[&workflow].at, At::Ended("failed"));
    assert_eq!(world.runners["globex"].started, ["storage"; 3]);
    assert_eq!(world.node_states(&workflow).await, ["info skipped", "storage failed"]);
    assert_eq!(
        read::workflow_view(&world.workflow(&workflow).await).jobs,
        Some(3),
        "a node that is skipped has no job"
    );
}

#[tokio::test]
async fn messages_in_any_order_and_up_to_three_times_retry_no_more_often() {
    let before = World::with_retries(2, 3).await;
    for seed in 0..20 {
        let mut world = before.copy();
        world.chaos = Some(Rng::new(seed));

        let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
        world.settle().await;

        assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"), "seed {seed}");
        assert_eq!(world.runners["globex"].started, ["storage", "storage", "storage", "info"], "seed {seed}");
    }
}

#[tokio::test]
async fn a_second_order_that_was_not_sent_is_sent_with_the_report_that_comes_again() {
    let mut world = World::with_retries(2, 2).await;
    let sends = std::sync::atomic::AtomicU32::new(0);
    // The first order of `storage` is handed over; handing over the second one fails once.
    world.memory.faults.set(move |what| {
        let nth = if what == "dispatch" { sends.fetch_add(1, std::sync::atomic::Ordering::Relaxed) } else { 0 };
        (what == "dispatch" && nth == 1).then_some(freehold_app::testing::Fault::Before)
    });

    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.run().await;

    assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"));
    assert_eq!(world.runners["globex"].started, ["storage", "storage", "info"]);
}
