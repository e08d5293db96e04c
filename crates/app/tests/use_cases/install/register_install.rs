//! Registering: the queue exists, and the policy names every install, in any order of writers.

use freehold_app::table;
use freehold_protocol::WorkflowId;

use crate::support::doubles::queue_url;
use crate::support::{World, globex, member};

fn provisioning(install: &str) -> WorkflowId {
    WorkflowId::derive(install, "provision")
}

#[tokio::test]
async fn an_install_gets_its_queue_and_may_report() {
    let mut world = World::with_app().await;
    let workflow = world.create().await;

    for _ in 0..2 {
        world.register_install().register(&workflow).await.unwrap();
    }

    let install = table::install(&*world.memory, &globex()).await.unwrap();
    assert_eq!((install.value.orders_queue_url, install.rev), (Some(queue_url("globex")), 2));
    assert_eq!(world.queues.reporters.lock().unwrap().as_slice(), [(globex(), "222222222222".parse().unwrap())]);
}

#[tokio::test]
async fn of_two_that_register_at_once_neither_loses_its_permission() {
    let mut world = World::with_app().await;
    let workflow = world.create().await;
    let (installs, register) = (world.create_install(), world.register_install());
    let request = world.creation("initech");
    *world.queues.meanwhile.lock().unwrap() = Some(Box::pin(async move {
        installs.create(&request, member()).await.unwrap();
        register.register(&provisioning("initech")).await.unwrap();
    }));

    world.register_install().register(&workflow).await.unwrap();

    let reporters: Vec<_> =
        world.queues.reporters.lock().unwrap().iter().map(|(install, _)| install.to_string()).collect();
    assert_eq!(reporters, ["globex", "initech"]);
}
