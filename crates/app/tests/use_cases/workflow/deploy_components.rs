//! Starting deploys: the refused requests and their messages.

use freehold_app::Kind;
use freehold_app::read;
use freehold_protocol::api::DeployComponentsRequest;
use freehold_protocol::report::Outcome;

use crate::support::runner::Behaviour;
use crate::support::{World, app, globex, with_input};

#[tokio::test]
async fn a_second_deploy_waits_for_the_first_and_an_action_does_not() {
    let mut world = World::with_install().await;
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::Hangs);
    let live = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.run().await;

    let error = world.deploy(&with_input("days", 9), "deploy-2").await.unwrap_err();
    let action = world.action("check", "run-1").await.unwrap();
    world.run().await;

    assert_eq!(error.kind, Kind::Conflict);
    assert_eq!(error.message, format!("install `globex` is being worked on by `{live}`; wait for it or cancel it"));
    assert_eq!(world.workflow(&action).await.state.as_str(), "succeeded");
}

#[tokio::test]
async fn a_key_that_was_used_for_another_request_is_refused() {
    let mut world = World::with_install().await;
    world.deploy(&with_input("days", 8), "key").await.unwrap();
    world.settle().await;

    let error = world.action("check", "key").await.unwrap_err();

    assert_eq!(error.kind, Kind::Conflict);
    assert_eq!(error.message, "idempotency key was used for another request; use a new key");
}

#[tokio::test]
async fn a_deploy_of_what_does_not_exist_is_refused_by_name() {
    let world = World::with_install().await;
    let only = |name: &str| DeployComponentsRequest {
        components: vec![name.parse().unwrap()],
        ..DeployComponentsRequest::default()
    };
    let before = world.memory.rows();

    let typo = world.deploy(&only("storag"), "1").await.unwrap_err();
    let version = freehold_protocol::Digest::of(b"x");
    let unknown =
        world.deploy(&DeployComponentsRequest { version: Some(version), ..Default::default() }, "2").await.unwrap_err();

    assert_eq!(typo.message, "app `demo` has no component `storag`; did you mean `storage`?");
    assert_eq!((typo.kind, unknown.kind), (Kind::NotFound, Kind::NotFound));
    assert_eq!(world.memory.rows(), before);
}

#[tokio::test]
async fn a_deploy_before_its_build_is_refused_and_leaves_no_input_behind() {
    let world = World::with_install().await;
    world.sync(&app::with_source("storage", "example/storage:2")).await;
    let before = world.memory.rows();

    let error = world.deploy(&with_input("days", 99), "deploy-1").await.unwrap_err();

    assert_eq!(error.kind, Kind::Conflict);
    assert_eq!(error.message, "component `storage` has no artifact; run `freehold build demo` and deploy again");
    assert_eq!(world.memory.rows(), before);
}

#[tokio::test]
async fn a_deploy_that_changes_nothing_says_that_nothing_ran() {
    let mut world = World::with_install().await;

    let same = world.deploy(&DeployComponentsRequest::default(), "deploy-1").await.unwrap();
    world.settle().await;
    let changed = world.deploy(&with_input("days", 8), "deploy-2").await.unwrap();
    world.settle().await;

    let nothing_ran = async |id| read::workflow_view(&world.workflow(id).await).nothing_ran;
    let reason = nothing_ran(&same).await;
    assert_eq!(
        reason.as_deref(),
        Some("the deployed components already have the artifacts, values and inputs of this version")
    );
    assert_eq!(nothing_ran(&changed).await, None);
}

/// Deploys `storage`, which fails, and then the version that is deployed already. Returns the nodes of the second deploy.
async fn after_a_failure(partial: bool) -> Vec<String> {
    let mut world = World::with_install().await;
    let failed = Outcome::Failed { reason: "exit status 1".into(), partial };
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::Ends(failed));
    let request =
        DeployComponentsRequest { components: vec!["storage".parse().unwrap()], ..DeployComponentsRequest::default() };
    world.deploy(&request, "deploy-1").await.unwrap();
    world.settle().await;
    world.runner("globex").behaviours.remove("storage");
    let next = world.deploy(&DeployComponentsRequest::default(), "deploy-2").await.unwrap();
    world.settle().await;
    let last = world.deploy(&DeployComponentsRequest::default(), "deploy-3").await.unwrap();
    world.settle().await;
    assert_eq!(world.node_states(&last).await, [""; 0]);
    world.node_states(&next).await
}

#[tokio::test]
async fn a_component_that_failed_half_way_runs_again_with_the_version_that_it_already_has() {
    assert_eq!(after_a_failure(true).await, ["info succeeded", "storage succeeded"]);
    assert_eq!(after_a_failure(false).await, [""; 0]);
}

#[tokio::test]
async fn an_install_shows_which_component_is_deployed_only_partly_since_when_and_by_which_workflow() {
    let mut world = World::with_install().await;
    let partial = async |world: &World| {
        let view = read::show_install(&world.versions(), &globex(), world.now()).await.unwrap();
        let partial = view.components.into_iter().filter_map(|one| Some((one.component.to_string(), one.partial?)));
        partial.collect::<Vec<_>>()
    };
    let failed = Outcome::Failed { reason: "exit status 1".into(), partial: true };
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::Ends(failed));
    world.memory.advance_secs(60);
    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.settle().await;
    let first = partial(&world).await;
    world.memory.advance_secs(60);
    world.deploy(&with_input("days", 9), "deploy-2").await.unwrap();
    world.settle().await;
    let second = partial(&world).await;
    world.runner("globex").behaviours.clear();
    world.deploy(&DeployComponentsRequest::default(), "deploy-3").await.unwrap();
    world.settle().await;

    let [(component, found)] = first.as_slice() else { panic!("{first:?}") };
    let job = world.job(found.job.as_ref().unwrap()).await;
    assert_eq!((component.as_str(), &found.workflow), ("storage", &Some(workflow.clone())));
    assert_eq!(
        (job.workflow, job.node.as_str(), found.since),
        (workflow, "storage", job.history.last().map(|last| last.at))
    );
    assert_eq!(second, first, "partial since the first failure");
    assert_eq!(partial(&world).await, []);
}

#[tokio::test]
async fn chosen_components_take_those_that_depend_on_them_along() {
    let mut world = World::with_install().await;
    let request =
        DeployComponentsRequest { components: vec!["storage".parse().unwrap()], ..DeployComponentsRequest::default() };

    let workflow = world.deploy(&request, "deploy-1").await.unwrap();
    world.settle().await;

    assert_eq!(world.node_states(&workflow).await, ["info succeeded", "storage succeeded"]);
}

#[tokio::test]
async fn a_version_that_cannot_be_deployed_here_yet_is_refused_by_what_is_in_the_way() {
    let mut world = World::with_install().await;
    let mut document = app::document();
    let keyless = serde_json::json!({ "kind": "container_image", "verification": { "require_signature": true } });
    document.components[0].spec = serde_json::from_value(keyless).unwrap();
    world.sync(&document).await;
    let old = DeployComponentsRequest {
        version: Some(app::document().digest().unwrap()),
        all: true,
        ..DeployComponentsRequest::default()
    };

    let error = world.deploy(&DeployComponentsRequest::default(), "deploy-1").await.unwrap_err();
    let workflow = world.deploy(&old, "deploy-2").await.unwrap();
    world.settle().await;

    assert_eq!(error.kind, Kind::Invalid);
    assert_eq!(
        error.message,
        "app `demo` cannot be deployed yet: component `info` requires a keyless signature, which builds do not check"
    );
    assert_eq!(world.workflow(&workflow).await.state.as_str(), "succeeded");
}
