//! Toggles: what is off is not deployed and is removed, what is on again is deployed, and what needs it is told.

use freehold_app::install::create_install::CreateInstall;
use freehold_app::{Kind, read, table};
use freehold_protocol::api::{CreateInstallRequest, DeployComponentsRequest, TeardownInstallRequest, ToggledBy};
use freehold_protocol::app_version::{AppVersion, Trigger};
use freehold_protocol::order::{Mode, Order};
use freehold_protocol::report::Outcome;
use freehold_protocol::{Envelope, Payload as _, WorkflowId};
use serde_json::{Value, json};

use crate::support::runner::Behaviour;
use crate::support::walk::{At, Rng};
use crate::support::{World, app, globex, member};

async fn deploy(world: &mut World, cause: &str) -> WorkflowId {
    let workflow = world.deploy(&DeployComponentsRequest::default(), cause).await.unwrap();
    world.settle().await;
    workflow
}

async fn deployed(world: &World) -> Vec<String> {
    table::deployed(&*world.memory, &globex()).await.unwrap().into_keys().map(String::from).collect()
}

/// Returns the last order of a kind of work.
fn order_of(world: &World, kind: &str) -> Order {
    let sent = world.memory.orders.lock().unwrap();
    let envelopes = sent.iter().map(|(_, _, _, body)| Envelope::parse(body.as_bytes()).unwrap());
    let mut orders = envelopes.filter(|one| one.payload_type == Order::TYPE).map(|one| one.peek::<Order>().unwrap());
    orders.rfind(|order| order.work.kind() == kind).unwrap()
}

/// Returns the app in which `check` reads an output of `info` after every deploy.
fn reading() -> AppVersion {
    let mut version = app::with_toggles(true);
    version.actions[0].triggers.insert(Trigger::PostDeployAllComponents);
    version.actions[0].dependencies.insert("info".parse().unwrap());
    version
}

#[tokio::test]
async fn what_is_switched_off_is_removed_by_the_next_deploy_and_deployed_when_it_is_on_again() {
    let mut world = World::with_toggles().await;
    let off = world.switch(&[("info", false), ("storage", false)]).await.unwrap();
    let before = deployed(&world).await;

    let removes = deploy(&mut world, "deploy-1").await;
    let left = deployed(&world).await;
    let nothing = deploy(&mut world, "deploy-2").await;
    world.switch(&[("storage", true), ("info", true)]).await.unwrap();
    let again = deploy(&mut world, "deploy-3").await;

    let states: Vec<_> =
        off.toggles.iter().map(|one| (one.component.as_str(), one.on, one.from, one.deployed)).collect();
    assert_eq!(states, [("info", false, ToggledBy::Vendor, true), ("storage", false, ToggledBy::Vendor, true)]);
    assert_eq!((before.len(), left), (3, vec!["settings".to_owned()]));
    assert_eq!(world.node_states(&removes).await, ["remove:info succeeded", "remove:storage succeeded"]);
    assert_eq!(world.node_states(&nothing).await, [""; 0]);
    assert_eq!(world.node_states(&again).await, ["info succeeded", "storage succeeded"]);
    let started = ["remove:info", "remove:storage", "storage", "info"];
    assert_eq!(world.runners["globex"].started, started);
    assert_eq!(order_of(&world, "remove").mode, Mode::Deprovision);
    assert_eq!(deployed(&world).await, ["info", "settings", "storage"]);
}

#[tokio::test]
async fn a_component_that_others_need_is_not_switched_off_alone() {
    let world = World::with_toggles().await;
    let before = world.memory.rows();

    let needed = world.switch(&[("storage", false)]).await.unwrap_err();
    let fixed = world.switch(&[("settings", false)]).await.unwrap_err();
    let unknown = world.switch(&[("stoarge", false)]).await.unwrap_err();

    assert_eq!((needed.kind, fixed.kind, unknown.kind), (Kind::Invalid, Kind::Invalid, Kind::NotFound));
    let both = "component `info` needs component `storage`, which is switched off in this install; switch `storage` on \
                with `freehold install toggles`, or switch `info` off too";
    assert_eq!(needed.message, both);
    assert!(unknown.message.ends_with("did you mean `storage`?"), "{}", unknown.message);
    assert_eq!(world.memory.rows(), before);
}

#[tokio::test]
async fn a_new_version_whose_component_needs_one_that_is_off_is_refused_before_anything_is_stored() {
    let mut world = World::with_toggles().await;
    world.switch(&[("info", false)]).await.unwrap();
    deploy(&mut world, "deploy-1").await;
    let mut version = app::with_toggles(true);
    version.components[1].dependencies.insert("info".parse().unwrap());
    world.sync(&version).await;
    let before = world.memory.rows();

    let refused = world.deploy(&DeployComponentsRequest::default(), "deploy-2").await.unwrap_err();
    let named = DeployComponentsRequest { components: vec!["info".parse().unwrap()], ..Default::default() };
    let off = world.deploy(&named, "deploy-3").await.unwrap_err();

    assert_eq!((refused.kind, off.kind), (Kind::Conflict, Kind::Conflict));
    assert_eq!(
        refused.message,
        "component `settings` needs component `info`, which is switched off in this install; switch `info` on with \
         `freehold install toggles`, because `settings` is not `toggleable`"
    );
    assert_eq!(
        off.message,
        "component `info` is switched off in this install; switch it on with `freehold install toggles`"
    );
    assert_eq!(world.memory.rows(), before);
}

#[tokio::test]
async fn a_removal_that_fails_leaves_the_component_and_the_next_deploy_tries_again() {
    let mut world = World::with_toggles().await;
    world.switch(&[("info", false), ("storage", false)]).await.unwrap();
    let failed = Outcome::Failed { reason: "access denied".into(), partial: true };
    world.runner("globex").behaviours.insert("remove:info".into(), Behaviour::Ends(failed));

    let first = deploy(&mut world, "deploy-1").await;
    world.runner("globex").behaviours.clear();
    let second = deploy(&mut world, "deploy-2").await;

    assert_eq!(world.node_states(&first).await, ["remove:info failed", "remove:storage skipped"]);
    assert_eq!(world.node_states(&second).await, ["remove:info succeeded", "remove:storage succeeded"]);
    assert_eq!(deployed(&world).await, ["settings"]);
}

#[tokio::test]
async fn an_action_that_needs_a_component_that_is_off_names_both() {
    let mut world = World::with_toggles().await;
    world.sync(&reading()).await;
    world.switch(&[("info", false)]).await.unwrap();
    world.deploy(&DeployComponentsRequest { all: true, ..Default::default() }, "deploy-1").await.unwrap();
    world.settle().await;
    world.runner("globex").started.clear();

    let by_hand = world.action("check", "run-1").await.unwrap_err();
    let all = world.deploy(&DeployComponentsRequest { all: true, ..Default::default() }, "deploy-2").await.unwrap();
    world.settle().await;

    let both = "action `check` needs component `info`, which is switched off in this install";
    assert_eq!(by_hand.kind, Kind::Conflict);
    assert_eq!(
        by_hand.message,
        format!("{both}; switch it on with `freehold install toggles globex --on info` and deploy")
    );
    let view = read::workflow_view(&world.workflow(&all).await);
    let node = view.nodes.iter().find(|node| node.name == "action:check").unwrap();
    assert_eq!((view.state.as_str(), node.state.as_str(), node.reason.as_str()), ("succeeded", "skipped", both));
    assert_eq!(world.runners["globex"].started, ["settings", "storage"]);
}

#[tokio::test]
async fn a_deploy_with_nothing_but_skipped_actions_ends() {
    let mut world = World::with_toggles().await;
    let mut version = reading();
    version.actions[0].triggers = [Trigger::Event { event: "post-update-inputs".into(), component: None }].into();
    // No component reads the input.
    version.inputs.push(serde_json::from_value(json!({ "name": "note", "type": "string" })).unwrap());
    world.sync(&version).await;
    world.switch(&[("info", false)]).await.unwrap();
    deploy(&mut world, "deploy-1").await;

    let workflow = world.deploy(&crate::support::with_input("note", "x"), "deploy-2").await.unwrap();
    world.settle().await;

    assert_eq!(world.node_states(&workflow).await, ["action:check skipped"]);
    assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"));
}

#[tokio::test]
async fn a_new_install_has_the_defaults_and_what_its_request_switches() {
    let world = World::with_app().await;
    world.sync(&app::with_toggles(false)).await;
    let create = |name: &str, toggles: Value| {
        let toggles = serde_json::from_value(toggles).unwrap();
        let request = CreateInstallRequest { toggles, ..world.creation(name) };
        let use_case: CreateInstall = world.create_install();
        async move { use_case.create(&request, member()).await }
    };

    create("globex", json!({})).await.unwrap();
    create("initech", json!({ "info": true })).await.unwrap();
    let refused = create("hooli", json!({ "info": true, "storage": false })).await.unwrap_err();

    let off = async |name: &str| {
        read::show_install(&world.versions(), &name.parse().unwrap(), world.now()).await.unwrap().off
    };
    assert_eq!(off("globex").await, ["info".parse().unwrap()]);
    assert_eq!(off("initech").await, []);
    assert_eq!(refused.kind, Kind::Invalid);
    assert!(refused.message.starts_with("component `info` needs component `storage`"), "{}", refused.message);
}

#[tokio::test]
async fn a_repeated_request_with_other_toggles_is_refused_with_the_way_out() {
    let world = World::with_app().await;
    world.sync(&app::with_toggles(false)).await;
    let create = async |toggles: Value| {
        let toggles = serde_json::from_value(toggles).unwrap();
        let request = CreateInstallRequest { toggles, ..world.creation("globex") };
        world.create_install().create(&request, member()).await
    };
    let first = create(json!({ "info": true })).await.unwrap();

    let same = create(json!({ "info": true })).await.unwrap();
    let none = create(json!({})).await.unwrap();
    let other = create(json!({ "info": false })).await.unwrap_err();
    let more = create(json!({ "info": true, "storage": false })).await.unwrap_err();

    assert_eq!([&same.1, &none.1], [&first.1, &first.1]);
    assert_eq!([other.kind, more.kind], [Kind::Conflict, Kind::Conflict]);
    let text = "install `globex` exists already, with other components switched on or off; `freehold install toggles \
                globex` shows and switches them";
    assert_eq!([other.message.as_str(), more.message.as_str()], [text, text]);
}

#[tokio::test]
async fn provisioning_leaves_out_what_is_off_by_default_and_a_teardown_does_not_miss_it() {
    let mut world = World::with_app().await;
    world.sync(&app::with_toggles(false)).await;
    world.create().await;
    world.run().await;
    world.hello("globex");
    world.settle().await;
    let provisioned = deployed(&world).await;

    let workflow = world.teardown(&TeardownInstallRequest::default(), "teardown-1").await.unwrap();
    world.settle().await;

    assert_eq!(provisioned, ["settings", "storage"]);
    let states = ["settings succeeded", "storage succeeded", "leftovers:list succeeded"];
    assert_eq!(world.node_states(&workflow).await, states);
}

#[tokio::test]
async fn toggles_do_not_change_while_a_workflow_runs_and_a_repeated_request_changes_nothing() {
    let mut world = World::with_toggles().await;
    world.switch(&[("info", false)]).await.unwrap();
    let before = world.memory.rows();

    world.switch(&[("info", false)]).await.unwrap();
    let same = world.memory.rows();
    deploy_without_settling(&mut world).await;
    let refused = world.switch(&[("info", true)]).await.unwrap_err();

    assert_eq!(same, before);
    assert_eq!(refused.kind, Kind::Conflict);
    assert!(refused.message.contains("is being worked on by"), "{}", refused.message);
}

async fn deploy_without_settling(world: &mut World) {
    world.deploy(&DeployComponentsRequest::default(), "deploy-1").await.unwrap();
}

#[tokio::test]
async fn messages_in_any_order_and_up_to_three_times_remove_and_deploy_once() {
    let before = World::with_toggles().await;
    for seed in 0..10 {
        let mut world = before.copy();
        world.chaos = Some(Rng::new(seed));
        world.switch(&[("info", false)]).await.unwrap();
        deploy(&mut world, "deploy-1").await;
        world.switch(&[("info", true)]).await.unwrap();

        deploy(&mut world, "deploy-2").await;

        assert_eq!(world.runners["globex"].started, ["remove:info", "info"], "seed {seed}");
        assert_eq!(deployed(&world).await, ["info", "settings", "storage"], "seed {seed}");
    }
}
