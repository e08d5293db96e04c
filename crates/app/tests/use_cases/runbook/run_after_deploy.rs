//! Runbooks after a deploy: which deploys count, in their order, once each, and what happens while the install is busy.

use freehold_app::ports::{Expect, Store as _};
use freehold_app::read;
use freehold_app::table::{self, put};
use freehold_protocol::WorkflowId;
use freehold_protocol::api::{DeployComponentsRequest, ReasonRequest, ResumeWorkflowRequest, RunView};
use freehold_protocol::notification::NotificationKind;

use crate::support::runner::{Behaviour, sick};
use crate::support::{World, app, asked_with, globex, member, with_input};

/// Returns a world in which `globex` was just deployed, and its app has the runbooks `fix` and `verify` after a deploy.
async fn deployed() -> (World, WorkflowId) {
    let world = World::with_runbook(&app::with_post_deploy_runbooks(&["fix", "verify"])).await;
    (world, WorkflowId::derive("globex", "deploy-1"))
}

/// Lets `count` minutes pass, with the schedule's call in each.
async fn minutes(world: &mut World, count: u32) {
    for _ in 0..count {
        world.memory.advance_secs(60);
        world.handle_due_tasks().handle().await.unwrap();
        world.run().await;
    }
}

/// Returns the runs, the first one first.
async fn runs(world: &World) -> Vec<RunView> {
    let mut runs = read::list_runs(&*world.memory, &globex(), None).await.unwrap().items;
    runs.reverse();
    runs
}

/// Returns the runbook and the state of each run, the first one first.
async fn states(world: &World) -> Vec<String> {
    runs(world).await.iter().map(|run| format!("{} {}", run.runbook, run.state)).collect()
}

#[tokio::test]
async fn the_runbooks_run_in_their_order_once_although_each_task_is_handled_twice() {
    let (mut world, deploy) = deployed().await;

    for _ in 0..6 {
        world.memory.advance_secs(60);
        let due = table::due(&*world.memory, world.now(), 100).await.unwrap();
        world.finish_workflow().finish(&deploy, 0, None).await.unwrap();
        for _ in 0..2 {
            world.memory.advance_secs(1);
            world.handle_due_tasks().handle().await.unwrap();
            world.run().await;
            // As after a crash between the effect of a task and the removal of its row.
            let rows = due.iter().map(|row| put(&row.value, Expect::Any).unwrap());
            let _ = world.memory.commit(rows.collect()).await.unwrap();
        }
    }

    assert_eq!(states(&world).await, ["fix succeeded", "verify succeeded"]);
    assert_eq!(world.runners["globex"].started, ["storage", "action:check", "info", "action:check"]);
    for run in runs(&world).await {
        assert_eq!((run.after_deploy.as_ref(), &run.asked_by), (Some(&deploy), member()));
        assert_eq!(Some(&run.version), world.workflow(&deploy).await.version.as_ref());
    }
}

#[tokio::test]
async fn the_runs_wait_for_change_windows_although_the_deploy_did_not() {
    let (mut world, _) = deployed().await;
    let request = DeployComponentsRequest { now: true, ..with_input("days", 8) };
    let deploy = world.deploy(&request, "deploy-2").await.unwrap();
    world.settle().await;

    minutes(&mut world, 5).await;

    assert!(world.workflow(&deploy).await.now);
    assert_eq!(states(&world).await, ["fix succeeded", "verify succeeded"]);
    for run in runs(&world).await {
        assert_eq!(run.after_deploy.as_ref(), Some(&deploy));
        for step in run.steps {
            assert!(!world.workflow(&step.workflow.unwrap()).await.now);
        }
    }
}

#[tokio::test]
async fn the_first_deploy_of_an_install_counts() {
    let mut world = World::with_app().await;
    world.sync(&app::with_post_deploy_runbooks(&["verify"])).await;
    world.build("build-2").await;
    world.settle().await;
    let provisioning = world.create().await;
    world.run().await;
    world.hello("globex");
    world.settle().await;

    minutes(&mut world, 3).await;

    assert_eq!(states(&world).await, ["verify succeeded"]);
    assert_eq!(runs(&world).await[0].after_deploy, Some(provisioning));
}

#[tokio::test]
async fn a_deploy_of_some_components_does_not_count_and_neither_does_one_that_failed() {
    let (mut world, _) = deployed().await;
    minutes(&mut world, 5).await;
    let some = DeployComponentsRequest { components: vec!["storage".parse().unwrap()], ..Default::default() };
    world.deploy(&some, "deploy-2").await.unwrap();
    world.settle().await;
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::FailsBefore(2));
    let failed = world.deploy(&with_input("days", 8), "deploy-3").await.unwrap();
    world.settle().await;

    minutes(&mut world, 3).await;

    assert_eq!(world.workflow(&failed).await.state.as_str(), "failed");
    assert_eq!(runs(&world).await.len(), 2);
}

#[tokio::test]
async fn the_runbooks_do_not_run_after_a_newer_deploy_that_failed_so_it_can_be_resumed() {
    let (mut world, _) = deployed().await;
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::FailsBefore(2));
    let newer = world.deploy(&with_input("days", 8), "deploy-2").await.unwrap();
    world.settle().await;
    world.runner("globex").behaviours.clear();

    minutes(&mut world, 5).await;
    assert_eq!(states(&world).await, [""; 0]);
    let request = ResumeWorkflowRequest::default();
    world.resume_workflow().resume(&newer, &request, asked_with("resume-1")).await.unwrap();
    world.settle().await;
    minutes(&mut world, 5).await;

    assert_eq!(world.workflow(&newer).await.state.as_str(), "succeeded");
    assert_eq!(states(&world).await, ["fix succeeded", "verify succeeded"]);
    assert_eq!(runs(&world).await[0].after_deploy, Some(newer));
}

#[tokio::test]
async fn the_runbooks_do_not_run_between_a_newer_verified_deploy_that_failed_and_its_roll_back() {
    let (mut world, _) = deployed().await;
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::Hangs);
    let verified = DeployComponentsRequest { verified: true, ..with_input("days", 8) };
    let newer = world.deploy(&verified, "deploy-2").await.unwrap();
    world.run().await;
    // The deploy has ended, and its job is open until the runner hears of the cancel.
    world.finish_workflow().finish(&newer, 0, Some("States.Timeout")).await.unwrap();
    world.runner("globex").behaviours.clear();
    world.memory.advance_secs(60);
    world.handle_due_tasks().handle().await.unwrap();

    world.settle().await;
    minutes(&mut world, 6).await;

    let by = world.workflow(&newer).await.roll_back_id();
    assert_eq!(world.workflow(&by).await.state.as_str(), "succeeded");
    assert_eq!(states(&world).await, ["fix succeeded", "verify succeeded"]);
    assert_eq!(runs(&world).await[0].after_deploy, Some(by));
}

#[tokio::test]
async fn a_step_does_not_change_an_install_after_a_newer_deploy_that_failed() {
    let (mut world, _) = deployed().await;
    world.runner("globex").behaviours.insert("action:check".into(), Behaviour::Hangs);
    minutes(&mut world, 3).await;
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::FailsBefore(2));
    let newer = world.deploy(&with_input("days", 8), "deploy-2").await.unwrap();
    world.run().await;
    assert_eq!(world.workflow(&newer).await.state.as_str(), "failed");

    world.end_hanging("action:check").await;

    assert_eq!(states(&world).await, ["fix failed"]);
    let reason = runs(&world).await[0].reason.clone();
    assert!(reason.contains("another deploy or teardown of install `globex` has begun since"), "{reason}");
    let request = ResumeWorkflowRequest::default();
    world.resume_workflow().resume(&newer, &request, asked_with("resume-1")).await.unwrap();
}

#[tokio::test]
async fn a_run_that_was_resumed_after_the_deploy_of_a_component_and_the_next_one_continue() {
    let (mut world, deploy) = deployed().await;
    world.runner("globex").behaviours.insert("action:check".into(), Behaviour::FailsBefore(2));
    minutes(&mut world, 5).await;
    world.runner("globex").behaviours.clear();
    let some = DeployComponentsRequest { components: vec!["storage".parse().unwrap()], ..Default::default() };
    world.deploy(&some, "deploy-2").await.unwrap();
    world.settle().await;

    world.resume_run(&runs(&world).await[0].run).await.unwrap();
    world.run().await;
    minutes(&mut world, 3).await;

    assert_eq!(states(&world).await, ["fix succeeded", "verify succeeded"]);
    assert_eq!(runs(&world).await[1].after_deploy, Some(deploy));
}

#[tokio::test]
async fn a_deploy_that_was_resumed_counts_when_it_succeeds() {
    let (mut world, _) = deployed().await;
    minutes(&mut world, 5).await;
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::FailsBefore(2));
    let deploy = world.deploy(&with_input("days", 8), "deploy-2").await.unwrap();
    world.settle().await;
    world.runner("globex").behaviours.clear();

    let request = ResumeWorkflowRequest::default();
    world.resume_workflow().resume(&deploy, &request, asked_with("resume-1")).await.unwrap();
    world.settle().await;
    minutes(&mut world, 5).await;

    assert_eq!(states(&world).await[2..], ["fix succeeded", "verify succeeded"]);
    assert_eq!(runs(&world).await[2].after_deploy, Some(deploy));
}

#[tokio::test]
async fn a_roll_back_counts_and_runs_the_runbooks_of_the_version_that_is_back() {
    let (mut world, _) = deployed().await;
    minutes(&mut world, 5).await;
    world.sync(&app::with_health(true)).await;
    world.build("build-2").await;
    world.settle().await;
    world.runner("globex").behaviours.insert("health:storage".into(), sick());
    let verified = DeployComponentsRequest { verified: true, ..with_input("days", 8) };
    let failed = world.deploy(&verified, "deploy-2").await.unwrap();
    world.settle().await;

    minutes(&mut world, 5).await;

    let by = world.workflow(&failed).await.roll_back_id();
    assert_eq!(world.workflow(&by).await.state.as_str(), "succeeded");
    assert_eq!(states(&world).await[2..], ["fix succeeded", "verify succeeded"]);
    assert_eq!(runs(&world).await[2].after_deploy, Some(by));
}

#[tokio::test]
async fn a_run_that_fails_leaves_the_deploy_as_it_is_and_the_next_one_begins_when_it_was_resumed() {
    let (mut world, deploy) = deployed().await;
    world.runner("globex").behaviours.insert("action:check".into(), Behaviour::FailsBefore(2));
    minutes(&mut world, 5).await;

    assert_eq!(states(&world).await, ["fix failed"]);
    assert_eq!(world.workflow(&deploy).await.state.as_str(), "succeeded");
    let history = read::show_history(&*world.memory, &globex(), None, world.now()).await.unwrap();
    let what = format!("runbook `fix` after deploy `{deploy}`");
    let entry = history.items.iter().find(|entry| entry.what == what).unwrap();
    assert!(entry.result.starts_with("failed: step 2 (run action check): "), "{entry:?}");
    assert_eq!(entry.by.as_ref(), Some(member()));
    let sent = world.memory.notifications.lock().unwrap().clone();
    let stopped = sent.iter().filter(|one| one.kind == NotificationKind::RunStopped);
    assert_eq!(stopped.map(|one| one.run.clone()).collect::<Vec<_>>(), std::slice::from_ref(&entry.run));

    world.runner("globex").behaviours.clear();
    world.resume_run(entry.run.as_ref().unwrap()).await.unwrap();
    world.run().await;
    minutes(&mut world, 3).await;

    assert_eq!(states(&world).await, ["fix succeeded", "verify succeeded"]);
}

#[tokio::test]
async fn a_run_of_a_disabled_install_fails_with_the_reason() {
    let (mut world, _) = deployed().await;
    let because = ReasonRequest { reason: "bill not paid".to_owned() };
    world.disable_install().disable(&globex(), &because).await.unwrap();

    minutes(&mut world, 3).await;

    assert_eq!(states(&world).await, ["fix failed"]);
    assert!(runs(&world).await[0].reason.contains("bill not paid"), "{:?}", runs(&world).await);
}

#[tokio::test]
async fn the_runbooks_wait_for_the_end_of_another_run() {
    let (mut world, deploy) = deployed().await;
    world.runner("globex").behaviours.insert("action:check".into(), Behaviour::Hangs);
    let other = world.run_runbook("verify", "runbook-1").await.unwrap();
    world.run().await;
    minutes(&mut world, 5).await;
    assert_eq!(states(&world).await, ["verify running"]);

    world.runner("globex").behaviours.clear();
    world.end_hanging("action:check").await;
    minutes(&mut world, 6).await;

    assert_eq!(states(&world).await, ["verify succeeded", "fix succeeded", "verify succeeded"]);
    let runs = runs(&world).await;
    assert_eq!((&runs[0].run, runs[0].after_deploy.as_ref()), (&other.id, None));
    assert_eq!(runs[1].after_deploy, Some(deploy));
}

#[tokio::test]
async fn the_runbooks_wait_for_another_deploy_and_run_after_the_last_one_that_succeeded() {
    let (mut world, _) = deployed().await;
    world.runner("globex").behaviours.insert("settings".into(), Behaviour::Hangs);
    let second = world.deploy(&with_input("greeting", "bonjour"), "deploy-2").await.unwrap();
    world.run().await;
    minutes(&mut world, 5).await;
    assert_eq!(states(&world).await, [""; 0]);

    world.runner("globex").behaviours.clear();
    world.end_hanging("settings").await;
    minutes(&mut world, 6).await;

    assert_eq!(states(&world).await, ["fix succeeded", "verify succeeded"]);
    let after: Vec<_> = runs(&world).await.into_iter().filter_map(|run| run.after_deploy).collect();
    assert_eq!(after, [second.clone(), second]);
}
