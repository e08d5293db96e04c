//! Skipping a node: what depends on it continues with the outputs of its last success, and the workflow says who and why.

use freehold_app::new_workflow::Asked;
use freehold_app::{AppError, Kind, read, table};
use freehold_domain::workflow::Workflow;
use freehold_protocol::WorkflowId;
use freehold_protocol::api::{DeployComponentsRequest, DeployedView, SkipNodeRequest};

use super::resume_workflow::{failed, failed_provisioning};
use crate::support::walk::At;
use crate::support::{World, caller, globex};

async fn skip(world: &World, workflow: &WorkflowId, node: &str, reason: &str) -> Result<Workflow, AppError> {
    let request = SkipNodeRequest { node: node.into(), reason: reason.into() };
    let by = caller("bea");
    world.skip_node().skip(workflow, &request, Asked { by: &by, cause: "skip-1", step: None }).await
}

/// Returns `storage` as `freehold install show` has it.
async fn storage(world: &World) -> DeployedView {
    let view = read::show_install(&world.versions(), &globex(), world.now()).await.unwrap();
    view.components.into_iter().find(|one| one.component.as_str() == "storage").unwrap()
}

#[tokio::test]
async fn what_depends_on_a_skipped_node_continues_and_the_version_of_the_install_stays() {
    let (mut world, workflow) = failed().await;
    let before = table::install(&*world.memory, &globex()).await.unwrap().value;

    for _ in 0..2 {
        skip(&world, &workflow, "storage", "the bucket is moved on Monday").await.unwrap();
    }
    world.settle().await;

    assert_eq!(world.node_states(&workflow).await, ["info succeeded", "storage skipped"]);
    assert_eq!(world.runners["globex"].started, ["info"]);
    assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"));
    let view = read::show_workflow(&*world.memory, &workflow, world.now()).await.unwrap();
    let reason = format!("skipped by {}: the bucket is moved on Monday", caller("bea"));
    assert_eq!((view.again.len(), &view.nodes[1].reason), (1, &reason));
    let skipped = storage(&world).await.skipped.unwrap();
    assert_eq!(
        (skipped.workflow, skipped.by, skipped.reason.as_str()),
        (workflow, caller("bea"), "the bucket is moved on Monday")
    );
    let after = table::install(&*world.memory, &globex()).await.unwrap().value;
    assert_eq!((after.version(), after.live.as_ref()), (before.version(), None));
}

#[tokio::test]
async fn the_next_deploy_runs_the_skipped_component() {
    let (mut world, workflow) = failed().await;
    skip(&world, &workflow, "storage", "the bucket is moved on Monday").await.unwrap();
    world.settle().await;
    world.runner("globex").started.clear();

    world.deploy(&DeployComponentsRequest::default(), "deploy-2").await.unwrap();
    world.settle().await;

    assert_eq!(world.runners["globex"].started.first().map(String::as_str), Some("storage"));
    assert_eq!(storage(&world).await.skipped, None);
}

#[tokio::test]
async fn a_component_without_outputs_of_an_earlier_deploy_is_not_skipped() {
    let (world, workflow) = failed_provisioning().await;

    let refused = skip(&world, &workflow, "storage", "later").await.unwrap_err();

    assert_eq!(refused.kind, Kind::Conflict);
    let why = "`storage` was never deployed in this install, so it has no outputs for `info`, `action:welcome` to read";
    assert!(refused.message.ends_with(why), "{refused}");
    assert!(world.node_states(&workflow).await.contains(&"storage failed".to_owned()));
}

#[tokio::test]
async fn a_skip_needs_a_reason_and_a_node() {
    let (world, workflow) = failed().await;

    let (without, unknown) = (
        skip(&world, &workflow, "storage", " ").await.unwrap_err(),
        skip(&world, &workflow, "db", "x").await.unwrap_err(),
    );

    assert_eq!((without.kind, unknown.kind), (Kind::Invalid, Kind::NotFound));
    assert!(unknown.message.contains("has no node `db`"), "{unknown}");
}
