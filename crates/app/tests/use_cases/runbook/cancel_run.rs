//! Cancelling a run: its running step is cancelled, the next one does not start, and the run can be resumed.

use freehold_app::read;

use crate::support::runner::Behaviour;
use crate::support::{World, app, member};

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
