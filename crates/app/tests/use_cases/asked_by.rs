//! Who asked for a workflow: kept in its row, shown in its view and signed in its orders.

use freehold_app::new_workflow::Asked;
use freehold_app::ports::{Expect, Store as _, Write};
use freehold_app::read;
use freehold_app::table::put_workflow;
use freehold_domain::Workflow;
use freehold_protocol::api::DeployComponentsRequest;
use freehold_protocol::order::{AskedBy, Order};
use freehold_protocol::{Envelope, Payload as _, WorkflowId};

use crate::support::{World, caller, globex, member, with_input};

/// Returns who asked for each order of a workflow that was sent, as its signature covers it.
fn signed(world: &World, workflow: &WorkflowId) -> Vec<Option<AskedBy>> {
    let sent = world.memory.orders.lock().unwrap().clone();
    let envelopes = sent.iter().map(|(_, _, _, body)| Envelope::parse(body.as_bytes()).unwrap());
    let orders = envelopes.filter(|one| one.payload_type == Order::TYPE).map(|one| one.peek::<Order>().unwrap());
    orders.filter(|order| order.workflow == *workflow).map(|order| order.asked_by).collect()
}

#[tokio::test]
async fn who_asked_for_a_deploy_is_in_its_row_its_view_and_each_of_its_orders() {
    let mut world = World::with_install().await;

    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.settle().await;

    assert_eq!(world.workflow(&workflow).await.asked_by.as_ref(), Some(member()));
    let workflows = read::list_workflows(&*world.memory, &globex(), None).await.unwrap().items;
    assert!(workflows.iter().all(|view| view.asked_by.as_ref() == Some(member())), "{workflows:?}");
    assert_eq!(signed(&world, &workflow), vec![Some(member().clone()); 2]);
}

#[tokio::test]
async fn a_member_is_in_the_field_of_an_order_that_an_earlier_runner_ignores() {
    let mut world = World::with_install().await;
    let by = AskedBy::Member { member: "bea@example.com".parse().unwrap(), subject: "7f3c".parse().unwrap() };
    let request = with_input("days", 8);

    let asked = Asked { by: &by, cause: "deploy-1", step: None };
    let workflow = world.deploy_components().deploy(&globex(), &request, asked).await.unwrap();
    world.settle().await;

    let sent = world.memory.orders.lock().unwrap().clone();
    let envelopes = sent.iter().map(|(_, _, _, body)| Envelope::parse(body.as_bytes()).unwrap());
    let orders = envelopes.filter(|one| one.payload_type == Order::TYPE).map(|one| one.peek::<Order>().unwrap());
    let orders: Vec<Order> = orders.filter(|order| order.workflow == workflow).collect();
    assert!(!orders.is_empty());
    assert!(orders.iter().all(|order| order.asked_by.is_none() && order.asked_by() == Some(&by)));
    assert_eq!(world.workflow(&workflow).await.asked_by, Some(by));
}

#[tokio::test]
async fn a_repeated_request_of_somebody_else_keeps_the_first_caller() {
    let mut world = World::with_install().await;
    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();

    let (by, request) = (caller("eve"), with_input("days", 8));
    let again =
        world.deploy_components().deploy(&globex(), &request, Asked { by: &by, cause: "deploy-1", step: None }).await;
    let create = world.creation("globex");
    let (_, created) = world.create_install().create(&create, &by).await.unwrap();
    world.settle().await;

    assert_eq!(again.unwrap(), workflow);
    for id in [&workflow, &created] {
        assert_eq!(world.workflow(id).await.asked_by.as_ref(), Some(member()));
    }
    assert!(signed(&world, &workflow).iter().all(|by| by.as_ref() == Some(member())));
}

#[tokio::test]
async fn a_retried_job_keeps_who_asked_for_its_workflow() {
    let mut world = World::with_retries(2, 3).await;
    world.forget_orders();

    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.settle().await;

    // `storage` is sent three times.
    let signed = signed(&world, &workflow);
    assert!(signed.len() > 3 && signed.iter().all(|by| by.as_ref() == Some(member())), "{signed:?}");
}

#[tokio::test]
async fn a_run_that_is_due_says_that_its_schedule_asked() {
    let mut world = World::with_schedule().await;
    world.handle_due_tasks().handle().await.unwrap();

    let newest = read::list_workflows(&*world.memory, &globex(), None).await.unwrap().items.remove(0);
    world.settle().await;

    assert_eq!((newest.trigger.as_deref(), &newest.asked_by), (Some("schedule"), &Some(AskedBy::Schedule)));
    assert_eq!(signed(&world, &newest.workflow), [Some(AskedBy::Schedule)]);
}

#[tokio::test]
async fn the_first_who_cancels_a_workflow_is_kept_beside_who_asked_for_it() {
    let mut world = World::with_install().await;
    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.walk().await;

    for name in ["bea", "eve"] {
        world.cancel_workflow().cancel(&workflow, &Default::default(), &caller(name)).await.unwrap();
    }

    let view = read::show_workflow(&*world.memory, &workflow, world.now()).await.unwrap();
    assert_eq!((view.asked_by.as_ref(), view.cancelled_by), (Some(member()), Some(caller("bea"))));
}

#[tokio::test]
async fn who_deletes_an_install_has_cancelled_its_provisioning() {
    let mut world = World::with_app().await;
    let provisioning = world.create().await;

    world.delete_install().delete(&globex(), &caller("bea")).await.unwrap();

    let workflow = world.workflow(&provisioning).await;
    assert_eq!((workflow.asked_by.as_ref(), workflow.cancelled_by), (Some(member()), Some(caller("bea"))));
}

#[tokio::test]
async fn a_workflow_of_an_earlier_version_has_no_known_caller_and_continues() {
    let mut world = World::with_install().await;
    let id = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    let older = Workflow { asked_by: None, ..world.workflow(&id).await };
    let write = put_workflow(&older, Expect::Any).unwrap();
    let Write::Put { body, .. } = &write else { panic!("{write:?}") };
    assert!(!body.contains("asked_by") && !body.contains("cancelled_by"), "not as an earlier version wrote it: {body}");

    let _ = world.memory.commit(vec![write]).await.unwrap();
    world.settle().await;

    assert_eq!(read::show_workflow(&*world.memory, &id, world.now()).await.unwrap().asked_by, None);
    assert_eq!(signed(&world, &id), vec![None; 2]);
}

#[tokio::test]
async fn a_key_that_comes_with_another_body_is_refused() {
    let mut world = World::with_install().await;
    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    let all = DeployComponentsRequest { all: true, ..with_input("days", 8) };

    let same = world.deploy(&with_input("days", 8), "deploy-1").await;
    let [value, body] = [&with_input("days", 9), &all].map(|request| request.clone());
    let others = [world.deploy(&value, "deploy-1").await, world.deploy(&body, "deploy-1").await];
    world.settle().await;
    let after_its_end = world.deploy(&value, "deploy-1").await;

    assert_eq!(same.unwrap(), workflow);
    for other in others.into_iter().chain([after_its_end]) {
        let refused = other.unwrap_err();
        assert!(refused.message.contains("idempotency key was used for another request"), "{refused}");
    }
}
