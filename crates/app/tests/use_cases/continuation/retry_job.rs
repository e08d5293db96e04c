//! Retrying a job: it and what was not reached because of it run, and other failed nodes stay as they are.

use freehold_app::new_workflow::Asked;
use freehold_app::{Kind, read};
use freehold_protocol::api::RetryJobRequest;
use freehold_protocol::{JobId, WorkflowId};

use super::resume_workflow::failed;
use crate::support::walk::At;
use crate::support::{World, caller};

async fn job_of(world: &World, workflow: &WorkflowId, node: &str) -> JobId {
    let view = read::show_workflow(&*world.memory, workflow, world.now()).await.unwrap();
    view.nodes.into_iter().find(|one| one.name == node).unwrap().job.unwrap()
}

#[tokio::test]
async fn a_failed_job_runs_again_with_the_nodes_that_it_kept_back() {
    let (mut world, workflow) = failed().await;
    let job = job_of(&world, &workflow, "storage").await;
    let (request, by) = (RetryJobRequest { reason: None }, caller("bea"));

    for _ in 0..2 {
        world.retry_job().retry(&job, &request, Asked { by: &by, cause: "retry-1", step: None }).await.unwrap();
    }
    world.settle().await;

    assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"));
    assert_eq!(world.runners["globex"].started, ["storage", "info"]);
    let view = read::show_workflow(&*world.memory, &workflow, world.now()).await.unwrap();
    let again = &view.again[0];
    assert_eq!((again.act.as_str(), again.node.as_deref(), again.reason.as_str()), ("retry", Some("storage"), ""));
    assert_eq!(world.job(&job).await.state.dispatch(), 2);
}

#[tokio::test]
async fn a_job_that_succeeded_is_not_retried() {
    let (mut world, workflow) = failed().await;
    let job = job_of(&world, &workflow, "storage").await;
    let (request, by) = (RetryJobRequest::default(), caller("bea"));
    world.retry_job().retry(&job, &request, Asked { by: &by, cause: "retry-1", step: None }).await.unwrap();
    world.settle().await;

    let refused =
        world.retry_job().retry(&job, &request, Asked { by: &by, cause: "retry-2", step: None }).await.unwrap_err();

    assert_eq!(refused.kind, Kind::Conflict);
    assert_eq!(refused.message, format!("workflow `{workflow}` succeeded, so it has nothing left to run"));
}
