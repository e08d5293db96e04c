//! The time of a runner's last report never goes backward.

use std::sync::{Arc, Mutex};

use freehold_app::ports::Clock as _;
use freehold_app::read;
use freehold_app::workflow::accept_report::AcceptReport;
use freehold_protocol::Timestamp;
use freehold_protocol::api::DeployComponentsRequest;
use freehold_protocol::report::{AttemptEvent, Fence, Outcome, ReportBody};

use crate::support::doubles::Racing;
use crate::support::runner::Behaviour;
use crate::support::{World, globex, with_input};

async fn last_report(world: &World) -> Option<Timestamp> {
    read::show_install(&world.versions(), &globex(), world.now()).await.unwrap().runner.unwrap().last_contact
}

#[tokio::test]
async fn an_older_report_that_is_accepted_after_a_newer_one_does_not_set_the_time_back() {
    let world = World::with_install().await;
    let heartbeat = world.runners["globex"].sign(&world.runners["globex"].report(ReportBody::Heartbeat, world.now()));
    world.memory.advance_secs(120);
    let (newer, memory, body) = (world.accept_report(), Arc::clone(&world.memory), heartbeat.clone());
    let meanwhile = Box::pin(async move {
        memory.advance_secs(60);
        newer.accept(&body, memory.now()).await.unwrap();
    });
    let store = Arc::new(Racing { memory: Arc::clone(&world.memory), meanwhile: Mutex::new(Some(meanwhile)) });
    let older = AcceptReport { store, ..world.accept_report() };

    older.accept(&heartbeat, world.now()).await.unwrap();

    assert_eq!(last_report(&world).await, Some(world.now()));
}

#[tokio::test]
async fn a_hello_that_is_handled_late_is_not_a_sign_of_life_at_that_time() {
    let world = World::with_install().await;
    world.memory.advance_secs(60);
    let sent_at = world.now();
    let hello = world.runners["globex"].hello(sent_at);
    world.memory.advance_secs(600);

    world.accept_report().accept(&hello, sent_at).await.unwrap();

    assert_eq!(last_report(&world).await, Some(sent_at));
}

#[tokio::test]
async fn workflows_without_a_report_do_not_hide_the_last_one() {
    let mut world = World::with_install().await;
    world.memory.advance_secs(300);
    world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.settle().await;
    let before = last_report(&world).await;

    for cause in ["deploy-2", "deploy-3", "deploy-4"] {
        world.memory.advance_secs(10);
        world.deploy(&DeployComponentsRequest::default(), cause).await.unwrap();
        world.settle().await;

        assert_eq!(last_report(&world).await, before, "{cause}");
    }
}

#[tokio::test]
async fn an_end_that_is_handled_late_or_again_is_not_a_sign_of_life_at_that_time() {
    let (mut world, workflow) = World::deploying(Behaviour::Hangs).await;
    let job = world.workflow(&workflow).await.active_jobs().next().unwrap().clone();
    world.memory.advance_secs(60);
    let sent_at = world.now();
    let failed = Outcome::Failed { reason: "exit status 1".into(), partial: false };
    let end = AttemptEvent::finished(failed, "");
    let end = world.runners["globex"].says(&job, Fence { dispatch: 1, receive: 1 }, 2, end, sent_at);

    for secs in [7200, 7200] {
        world.memory.advance_secs(secs);
        world.accept_report().accept(&end, sent_at).await.unwrap();
        world.run().await;

        assert_eq!(last_report(&world).await, Some(sent_at));
    }
    assert!(world.workflow(&workflow).await.state.is_terminal());
}
