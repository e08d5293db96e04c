//! Actions that events start: once for each event, in their order, whatever is delivered twice.

use freehold_domain::workflow::NodeState;
use freehold_protocol::api::{DeployComponentsRequest, TeardownInstallRequest};
use freehold_protocol::app_version::{AppVersion, Trigger};
use freehold_protocol::order::Mode;
use freehold_protocol::report::Outcome;

use crate::support::runner::Behaviour;
use crate::support::walk::{At, Rng};
use crate::support::{World, app, with_input};

fn on(event: &str, component: Option<&str>) -> Trigger {
    Trigger::Event { event: event.to_owned(), component: component.map(|name| name.parse().unwrap()) }
}

/// Returns the app, in which `welcome` is started by many events, and `check` before `storage`.
fn document() -> AppVersion {
    let mut version = app::document();
    version.actions[0].triggers.insert(on("pre-deploy-component", Some("storage")));
    version.actions[1].triggers = [
        on("pre-update-inputs", None),
        Trigger::PostDeployAllComponents,
        Trigger::PostDeployComponent { component: "storage".parse().unwrap() },
        on("pre-deprovision", None),
    ]
    .into();
    version
}

/// Returns a world in which `globex` has the app with these triggers, and its runner has started nothing since.
async fn world() -> World {
    let mut world = World::with_install().await;
    world.sync(&document()).await;
    world.deploy(&DeployComponentsRequest::default(), "deploy-0").await.unwrap();
    world.settle().await;
    world.runner("globex").started.clear();
    world
}

#[tokio::test]
async fn each_event_of_a_deploy_starts_its_actions_in_order() {
    let mut world = world().await;

    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.settle().await;

    assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"));
    let started = &world.runners["globex"].started;
    assert_eq!(started[..3], ["action:welcome", "action:check", "storage"]);
    assert_eq!(started.iter().filter(|name| *name == "action:welcome").count(), 3);
    assert_eq!(started.len(), 6, "{started:?}");
}

#[tokio::test]
async fn messages_in_any_order_and_up_to_three_times_start_each_action_once() {
    let before = world().await;
    for seed in 0..20 {
        let mut world = before.copy();
        world.chaos = Some(Rng::new(seed));

        let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
        let again = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
        world.settle().await;

        assert_eq!(workflow, again);
        assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"), "seed {seed}");
        let mut started = world.runners["globex"].started.clone();
        started.sort();
        let expected = ["action:check", "action:welcome", "action:welcome", "action:welcome", "info", "storage"];
        assert_eq!(started, expected, "seed {seed}");
    }
}

#[tokio::test]
async fn a_deploy_does_not_happen_when_the_action_before_it_fails() {
    let mut world = world().await;
    let no = Outcome::Failed { reason: "no backup".into(), partial: false };
    world.runner("globex").behaviours.insert("action:check".into(), Behaviour::Ends(no));

    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.settle().await;

    assert_eq!(world.machines[&workflow].at, At::Ended("failed"));
    let states = world.node_states(&workflow).await;
    assert!(states.contains(&"storage skipped".to_owned()), "{states:?}");
}

#[tokio::test]
async fn a_run_by_hand_during_a_deploy_does_not_keep_the_deploys_own_run_from_starting() {
    let mut world = world().await;
    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    let by_hand = world.action("welcome", "run-1").await.unwrap();
    world.settle().await;

    assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"));
    assert_eq!(world.machines[&by_hand].at, At::Ended("succeeded"));
    // A runner refuses an order that is older than another of its group: here the deploy's are older than the one by hand.
    let orders = world.memory.orders.lock().unwrap();
    let mut groups: Vec<&str> = orders.iter().map(|(_, group, ..)| group.as_str()).collect();
    groups.retain(|group| group.starts_with("action:welcome"));
    groups.sort_unstable();
    groups.dedup();
    assert_eq!(groups, ["action:welcome", "action:welcome.1", "action:welcome.2", "action:welcome.3"]);
}

#[tokio::test]
async fn a_teardown_starts_the_actions_before_and_after_it_under_its_mode() {
    let mut version = app::document();
    version.actions[0].triggers = [on("pre-teardown-component", Some("storage")), on("post-deprovision", None)].into();
    version.actions[1].triggers = [on("pre-deprovision", None), on("post-teardown-all-components", None)].into();
    let mut world = World::with_install().await;
    world.sync(&version).await;
    world.deploy(&DeployComponentsRequest::default(), "deploy-0").await.unwrap();
    world.settle().await;
    world.runner("globex").started.clear();

    let workflow = world.teardown(&TeardownInstallRequest::default(), "teardown-1").await.unwrap();
    world.settle().await;

    assert_eq!(world.workflow(&workflow).await.state.as_str(), "succeeded");
    let started = &world.runners["globex"].started;
    let places = |name: &str| -> Vec<usize> { (0..started.len()).filter(|at| started[*at] == name).collect() };
    assert_eq!((places("action:welcome")[0], places("action:check").len(), started.len()), (0, 2, 8), "{started:?}");
    assert!(places("action:check")[0] < places("remove:storage")[0], "{started:?}");
    assert!(places("remove:storage")[0] < places("action:check")[1], "{started:?}");
    let job = world.workflow(&workflow).await.nodes.iter().find_map(|node| match &node.state {
        NodeState::Succeeded { job } if node.name.starts_with("action:") => Some(job.clone()),
        _ => None,
    });
    assert_eq!(world.job(&job.unwrap()).await.mode, Mode::Deprovision);
}
