//! Cancelling a run: its running step is cancelled, the next one does not start, and the run can be resumed.

use freehold_app::runbook::cancel_run::CancelRun;
use freehold_app::runbook::run_runbook::RunRunbook;
use freehold_app::{read, table};
use freehold_protocol::RunId;
use freehold_protocol::api::RunRunbookRequest;

use crate::support::runner::Behaviour;
use crate::support::{World, app, asked_with, globex, member};

#[tokio::test]
async fn the_running_step_is_cancelled_and_the_others_wait() {
    let mut world = World::with_runbook(&app::with_runbook()).await;
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::Hangs);
    let run = world.run_runbook("fix", "runbook-1").await.unwrap();
    world.run().await;

    world.cancel_run(&run.id).await.unwrap();
    world.settle().await;

    assert_eq!(world.run_states(&run.id).await, ["cancelled", "cancelled", "waiting", "waiting"]);
    assert_eq!(read::show_run(&*world.memory, &run.id).await.unwrap().cancelled_by.as_ref(), Some(member()));
    world.runner("globex").behaviours.clear();
    world.resume_run(&run.id).await.unwrap();
    world.settle().await;
    assert_eq!(world.run_states(&run.id).await, ["succeeded"; 4]);
    assert_eq!(read::show_run(&*world.memory, &run.id).await.unwrap().cancelled_by, None);
}

#[tokio::test]
async fn a_run_that_has_ended_stays_as_it_is() {
    let mut world = World::with_runbook(&app::with_runbook()).await;
    let run = world.run_runbook("fix", "runbook-1").await.unwrap();
    world.settle().await;

    let cancelled = world.cancel_run(&run.id).await.unwrap();

    assert_eq!((cancelled.state.as_str(), cancelled.cancelled_by), ("succeeded", None));
}

#[tokio::test]
async fn a_cancel_between_any_two_calls_leaves_no_workflow_that_the_run_does_not_name() {
    let start = World::with_runbook(&app::with_runbook()).await;
    let run = RunId::derive(&globex(), "runbook-1");
    let (mut before, mut after) = (0, 0);
    for at in 0..40 {
        let mut world = start.copy();
        let id = run.clone();
        let advance = world.advance_run_while(at, move |advance| {
            let id = id.clone();
            async move {
                // Before the first commit there is nothing to cancel.
                let _ = CancelRun { advance }.cancel(&id, member()).await;
            }
        });
        let (runbook, request) = ("fix".parse().unwrap(), RunRunbookRequest::default());
        let _ = RunRunbook { advance }.run(&globex(), &runbook, &request, asked_with("runbook-1")).await;
        world.settle().await;
        let _ = world.handle_due_tasks().handle().await;
        world.settle().await;

        world.check_named(&run).await;
        let found = table::run(&*world.memory, &run).await.unwrap().value;
        match (found.state.as_str(), found.steps[0].state.workflow()) {
            ("cancelled", None) => before += 1,
            ("cancelled", Some(_)) => after += 1,
            (state, _) => assert_eq!((state, &found.cancelled_by), ("succeeded", &None), "call {at}"),
        }
    }
    assert!(before > 0 && after > 0, "{before} {after}");
}
