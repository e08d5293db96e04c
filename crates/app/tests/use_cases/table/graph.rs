//! The two rows of a workflow: read as they were written, and the one that is written often stays small.

use freehold_app::Kind;
use freehold_app::ports::{Expect, Store as _, Write};
use freehold_app::table::{find_workflow, graph_write, put_workflow, workflow};
use freehold_domain::workflow::{Node, NodeState, Workflow};
use freehold_protocol::JobId;

use crate::support::{World, globex, with_input};

/// Returns a planned workflow with as many copies of its first node as `states`, in these states.
async fn planned(world: &mut World, states: &[NodeState]) -> Workflow {
    let id = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.walk().await;
    let mut workflow = world.workflow(&id).await;
    let first = workflow.nodes[0].clone();
    let nodes = states.iter().enumerate();
    workflow.nodes =
        nodes.map(|(at, state)| Node { name: format!("n{at}"), state: state.clone(), ..first.clone() }).collect();
    workflow
}

async fn store(world: &World, workflow: &Workflow) {
    let writes = [graph_write(workflow).unwrap().unwrap(), put_workflow(workflow, Expect::Any).unwrap()];
    for write in writes {
        let _ = world.memory.commit(vec![write]).await.unwrap();
    }
}

#[tokio::test]
async fn a_workflow_is_read_as_it_was_written() {
    let mut world = World::with_install().await;
    let mut written = planned(&mut world, &vec![NodeState::Waiting; 5]).await;
    let job = |at: usize| JobId::derive(&written.id, &format!("n{at}"));
    let states = [
        NodeState::Waiting,
        NodeState::Active { job: job(1) },
        NodeState::Succeeded { job: job(2) },
        NodeState::Failed { job: job(3), outcome: "interrupted".into(), reason: "it was".into() },
        NodeState::Skipped { because: "`n3` interrupted".into(), left_out: true },
    ];
    for (node, state) in written.nodes.iter_mut().zip(states) {
        node.state = state;
    }

    store(&world, &written).await;

    assert_eq!(world.workflow(&written.id).await, written);
}

#[tokio::test]
async fn the_row_that_is_written_with_every_job_does_not_hold_the_graph() {
    let mut world = World::with_install().await;
    let mut workflow = planned(&mut world, &vec![NodeState::Waiting; 500]).await;
    for node in &mut workflow.nodes {
        node.state = NodeState::Succeeded { job: JobId::derive(&workflow.id, &node.name) };
    }

    let Write::Put { body, .. } = put_workflow(&workflow, Expect::Any).unwrap() else { panic!("put") };

    // A word for each node, which all compress to one.
    assert!(body.len() < 1000 + 500 * "\"succeeded\",".len(), "{}", body.len());
    assert!(!body.contains("fingerprint"), "{body}");
}

#[tokio::test]
async fn two_plans_of_a_workflow_do_not_mix() {
    let mut world = World::with_install().await;
    let one = planned(&mut world, &vec![NodeState::Waiting; 2]).await;
    let two = Workflow { nodes: one.nodes[..1].to_vec(), ..one.clone() };
    store(&world, &one).await;

    // Another planner wrote its graph, and came too late for the state.
    let _ = world.memory.commit(vec![graph_write(&two).unwrap().unwrap()]).await.unwrap();

    assert_eq!(world.workflow(&one.id).await, one);
}

#[tokio::test]
async fn a_workflow_without_its_graph_is_an_error_that_names_it() {
    let mut world = World::with_install().await;
    let written = planned(&mut world, &vec![NodeState::Waiting; 2]).await;
    store(&world, &written).await;
    let graphs = world.memory.rows().into_iter().filter(|row| row.key.sk.starts_with("graph#"));
    for row in graphs.filter(|row| row.key.pk.ends_with(written.id.as_str())).collect::<Vec<_>>() {
        let _ = world.memory.commit(vec![Write::Delete { key: row.key }]).await.unwrap();
    }

    let error = workflow(&*world.memory, &written.id).await.unwrap_err();

    assert_eq!(error.kind, Kind::Internal);
    assert!(error.message.contains(&format!("workflow `{}` is missing in the table", written.id)), "{error}");
}

#[tokio::test]
async fn a_workflow_that_does_not_exist_is_not_found() {
    let world = World::with_install().await;
    let id = freehold_protocol::WorkflowId::derive(globex().as_str(), "never");

    assert!(find_workflow(&*world.memory, &id).await.unwrap().is_none());
    assert_eq!(workflow(&*world.memory, &id).await.unwrap_err().kind, Kind::NotFound);
}
