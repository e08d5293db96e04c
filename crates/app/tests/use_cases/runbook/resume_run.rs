//! Resuming a run: it continues at the step that failed, once, and says who asked and why.

use freehold_app::new_workflow::Asked;
use freehold_app::{Kind, read};
use freehold_protocol::api::ReasonRequest;

use crate::support::runner::Behaviour;
use crate::support::{World, app, caller, member};

async fn failed_at_the_second_step() -> (World, freehold_protocol::RunId) {
    let mut world = World::with_runbook(&app::with_runbook()).await;
    world.runner("globex").behaviours.insert("action:check".into(), Behaviour::FailsBefore(2));
    let run = world.run_runbook("fix", "runbook-1").await.unwrap();
    world.settle().await;
    assert_eq!(world.run_states(&run.id).await, ["failed", "succeeded", "failed", "waiting"]);
    (world, run.id)
}

#[tokio::test]
async fn the_step_that_failed_runs_again_and_then_the_others() {
    let (mut world, run) = failed_at_the_second_step().await;
    world.runner("globex").behaviours.clear();
    world.runner("globex").started.clear();

    world.resume_run(&run).await.unwrap();
    world.settle().await;

    assert_eq!(world.run_states(&run).await, ["succeeded"; 4]);
    assert_eq!(world.runners["globex"].started, ["action:check", "info"]);
    let view = read::show_run(&*world.memory, &run).await.unwrap();
    assert_eq!((&view.resumed[0].by, view.resumed[0].reason.as_str()), (member(), "fixed by hand"));
    assert_eq!(view.steps.iter().map(|step| step.tries).collect::<Vec<_>>(), [1, 2, 1]);
    assert_eq!(world.resume_run(&run).await.unwrap_err().kind, Kind::Conflict);
}

#[tokio::test]
async fn a_run_that_has_not_ended_is_not_resumed_and_two_runs_do_not_run_at_once() {
    let (mut world, run) = failed_at_the_second_step().await;
    let second = world.run_runbook("fix", "runbook-2").await.unwrap();

    let busy = world.resume_run(&run).await.unwrap_err();
    assert!(busy.message.contains(&format!("is busy with run `{}`", second.id)), "{}", busy.message);
    let open = world.resume_run(&second.id).await.unwrap_err();
    assert!(open.message.contains("has not ended"), "{}", open.message);

    world.settle().await;
    assert_eq!(world.run_states(&second.id).await[0], "failed");
    assert!(world.resume_run(&run).await.is_ok());
}

#[tokio::test]
async fn a_repeated_request_resumes_the_run_once_and_its_steps_are_asked_for_by_who_resumed_it() {
    let (mut world, run) = failed_at_the_second_step().await;
    let because = ReasonRequest { reason: "fixed by hand".to_owned() };
    let by = caller("bob");
    let asked = Asked { by: &by, cause: "resume-1", step: None };

    world.resume_run_as(&run, &because, asked).await.unwrap();
    world.settle().await;
    let again = world.resume_run_as(&run, &because, asked).await.unwrap();

    assert_eq!((again.state.as_str(), again.resumed.len(), again.steps[1].tries), ("failed", 1, 2));
    assert!(again.resumed[0].after.starts_with("step 2 (run action check): "), "{:?}", again.resumed);
    let workflow = world.workflow(again.steps[1].state.workflow().unwrap()).await;
    assert_eq!(workflow.asked_by, Some(by.clone()));
}
