//! Finishing: a workflow ends with the result of its nodes, releases its install, and does not change afterwards.

use freehold_app::table;
use freehold_protocol::report::{Block, Outcome};

use crate::support::runner::Behaviour;
use crate::support::walk::At;
use crate::support::{World, globex, with_input};

#[tokio::test]
async fn finishing_again_answers_the_same_and_changes_nothing() {
    let mut world = World::with_install().await;
    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.settle().await;
    let before = world.memory.rows();

    let again = world.finish_workflow().finish(&workflow, 0, None).await.unwrap();
    let with_error = world.finish_workflow().finish(&workflow, 0, Some("States.Timeout")).await.unwrap();

    assert_eq!((again.state, with_error.state), ("succeeded", "succeeded"));
    assert_eq!(world.memory.rows(), before);
}

#[tokio::test]
async fn a_failed_deploy_says_which_node_failed_and_why_and_a_next_one_resumes_there() {
    let outcomes = [
        (Outcome::Failed { reason: "disk is full".into(), partial: true }, "`storage` failed: disk is full (partial)"),
        (Outcome::Blocked { block: Block::ModeDisabled, reason: "off".into() }, "`storage` blocked: off"),
    ];
    for (outcome, reason) in outcomes {
        let mut world = World::with_install().await;
        world.runner("globex").behaviours.insert("storage".into(), Behaviour::Ends(outcome));
        let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
        world.settle().await;
        assert_eq!(world.machines[&workflow].at, At::Ended("failed"));
        let view = freehold_app::read::workflow_view(&world.workflow(&workflow).await);
        assert_eq!(view.reason, reason);
        assert_eq!(world.node_states(&workflow).await[0], "info skipped");

        world.runner("globex").behaviours.clear();
        let next = world.deploy(&Default::default(), "deploy-2").await.unwrap();
        world.settle().await;

        assert_eq!(world.node_states(&next).await, ["info succeeded", "storage succeeded"]);
    }
}

#[tokio::test]
async fn an_error_of_the_machine_cancels_what_runs_and_frees_the_install() {
    let mut world = World::with_install().await;
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::Hangs);
    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.run().await;
    let job = world.workflow(&workflow).await.active_jobs().next().unwrap().clone();

    world.time_out(&workflow).await;

    let view = freehold_app::read::workflow_view(&world.workflow(&workflow).await);
    assert_eq!((view.state.as_str(), view.reason.as_str()), ("failed", "States.Timeout"));
    assert_eq!(world.job(&job).await.state.as_str(), "cancelled", "the runner was asked to stop");
    assert_eq!(world.node_states(&workflow).await, ["info skipped", "storage cancelled"]);
    let install = table::install(&*world.memory, &globex()).await.unwrap().value;
    assert_eq!(install.live, None);
    world.memory.advance_secs(60);
    world.sweeper().sweep().await.unwrap();
    assert!(world.open().is_empty());
}

#[tokio::test]
async fn a_job_that_ends_after_its_workflow_starts_nothing() {
    let mut world = World::with_install().await;
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::Hangs);
    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.run().await;
    let job = world.workflow(&workflow).await.active_jobs().next().unwrap().clone();
    let now = world.now();
    let outcome = Outcome::Succeeded { outputs: Default::default(), sensitive: Default::default(), artifact: None };
    let late = world.runner("globex").finish(&job, outcome, now);
    world.time_out(&workflow).await;

    world.accept_report().accept(&late[0], world.now()).await.unwrap();
    world.run().await;

    assert_eq!(world.node_states(&workflow).await, ["info skipped", "storage succeeded"]);
    assert_eq!(world.workflow(&workflow).await.state.as_str(), "failed");
    assert_eq!(world.job(&job).await.state.as_str(), "succeeded");
}
