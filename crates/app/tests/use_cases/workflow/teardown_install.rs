//! Teardowns: in reverse order, under the deprovision role, and again after a failure.

use freehold_app::Kind;
use freehold_app::read;
use freehold_app::table;
use freehold_protocol::api::TeardownInstallRequest;
use freehold_protocol::order::leftovers::{Leftovers, OUTPUT};
use freehold_protocol::order::{Mode, Order, Work};
use freehold_protocol::report::Outcome;
use freehold_protocol::{Envelope, Payload as _};

use crate::support::runner::Behaviour;
use crate::support::{World, app, globex, with_input};

fn of(component: &str) -> TeardownInstallRequest {
    TeardownInstallRequest { component: Some(component.parse().unwrap()), ..TeardownInstallRequest::default() }
}

fn orders(world: &World) -> Vec<Order> {
    let sent = world.memory.orders.lock().unwrap();
    let envelopes = sent.iter().map(|(_, _, _, body)| Envelope::parse(body.as_bytes()).unwrap());
    envelopes.filter(|one| one.payload_type == Order::TYPE).map(|one| one.peek::<Order>().unwrap()).collect()
}

async fn deployed(world: &World) -> Vec<String> {
    table::deployed(&*world.memory, &globex()).await.unwrap().into_keys().map(String::from).collect()
}

#[tokio::test]
async fn everything_is_removed_in_reverse_order_and_can_be_deployed_again() {
    let mut world = World::with_install().await;
    world.runner("globex").started.clear();

    let workflow = world.teardown(&TeardownInstallRequest::default(), "teardown-1").await.unwrap();
    world.settle().await;

    let started = &world.runners["globex"].started;
    let at = |name: &str| started.iter().position(|one| one == name).unwrap();
    assert_eq!(world.workflow(&workflow).await.state.as_str(), "succeeded");
    assert!(at("remove:info") < at("remove:storage") && started.len() == 4, "{started:?}");
    assert_eq!(at("leftovers"), 3);
    assert_eq!(deployed(&world).await, [""; 0]);
    let last = orders(&world).pop().unwrap();
    assert_eq!((last.mode, last.redelivery), (Mode::Deprovision, freehold_protocol::order::Redelivery::Resume));
    let view = read::show_install(&world.versions(), &globex(), world.now()).await.unwrap();
    assert_eq!((view.state.as_str(), view.version), ("idle", None));
    let again = world.deploy(&with_input("days", 7), "deploy-1").await.unwrap();
    world.settle().await;
    assert_eq!(world.workflow(&again).await.state.as_str(), "succeeded");
    assert_eq!(deployed(&world).await, ["info", "settings", "storage"]);
}

#[tokio::test]
async fn a_component_goes_with_what_depends_on_it_by_the_version_that_deployed_it() {
    let mut world = World::with_install().await;
    world.sync(&app::with_source("storage", "example/storage:2")).await;

    let workflow = world.teardown(&of("storage"), "teardown-1").await.unwrap();
    world.settle().await;

    assert_eq!(world.node_states(&workflow).await, ["info succeeded", "storage succeeded"]);
    assert_eq!(deployed(&world).await, ["settings"]);
    let removed = orders(&world).into_iter().filter_map(|order| match order.work {
        Work::Remove(work) => Some((work.what.kind(), work.destroy_data)),
        _ => None,
    });
    assert_eq!(removed.collect::<Vec<_>>(), [("cloudformation_stack", false), ("terraform_module", false)]);
}

#[tokio::test]
async fn what_failed_stays_with_what_it_needs_and_the_next_teardown_resumes() {
    let mut world = World::with_install().await;
    let failed = Outcome::Failed { reason: "access denied".into(), partial: true };
    world.runner("globex").behaviours.insert("remove:info".into(), Behaviour::Ends(failed));
    let first = world.teardown(&TeardownInstallRequest::default(), "teardown-1").await.unwrap();
    world.settle().await;
    let left = deployed(&world).await;
    world.runner("globex").behaviours.clear();

    let second = world.teardown(&TeardownInstallRequest::default(), "teardown-2").await.unwrap();
    world.settle().await;

    let states = ["info failed", "settings succeeded", "storage skipped", "leftovers:list skipped"];
    assert_eq!(world.node_states(&first).await, states);
    assert_eq!(left, ["info", "storage"]);
    assert_eq!(world.node_states(&second).await, ["info succeeded", "storage succeeded", "leftovers:list succeeded"]);
}

#[tokio::test]
async fn what_cannot_be_removed_is_refused_before_anything_is_stored() {
    let world = World::with_install().await;
    let before = world.memory.rows();
    let both = TeardownInstallRequest { sandbox: true, ..of("storage") };

    let unknown = world.teardown(&of("web"), "1").await.unwrap_err();
    let sandbox =
        world.teardown(&TeardownInstallRequest { sandbox: true, ..Default::default() }, "2").await.unwrap_err();
    let both = world.teardown(&both, "3").await.unwrap_err();

    assert_eq!(world.memory.rows(), before);
    assert_eq!(unknown.message, "component `web` is not deployed, so there is nothing to remove");
    assert_eq!(sandbox.message, "the sandbox is not deployed, so there is nothing to remove");
    assert_eq!((unknown.kind, sandbox.kind, both.kind), (Kind::Conflict, Kind::Conflict, Kind::Invalid));
}

#[tokio::test]
async fn what_still_exists_is_listed_after_a_teardown_and_again_when_nothing_is_deployed() {
    let mut world = World::with_install().await;
    let lists = |world: &mut World, arns: &[&str]| {
        let found = Leftovers::of(arns.iter().map(|arn| (*arn).to_owned()).collect());
        let outputs = [(OUTPUT.to_owned(), serde_json::to_value(found).unwrap())].into();
        let ends = Behaviour::Ends(Outcome::Succeeded { outputs, sensitive: Default::default(), artifact: None });
        world.runner("globex").behaviours.insert("leftovers".into(), ends);
    };
    let leftovers =
        async |world: &World| read::show_install(&world.versions(), &globex(), world.now()).await.unwrap().leftovers;
    lists(&mut world, &["arn:aws:ec2:eu-west-1:222222222222:volume/vol-1"]);

    let before = leftovers(&world).await;
    world.teardown(&TeardownInstallRequest::default(), "teardown-1").await.unwrap();
    world.settle().await;
    let first = leftovers(&world).await.unwrap();
    lists(&mut world, &[]);
    let again = world.teardown(&TeardownInstallRequest::default(), "teardown-2").await.unwrap();
    world.settle().await;
    let second = leftovers(&world).await.unwrap();
    world.deploy(&with_input("days", 7), "deploy-1").await.unwrap();
    world.settle().await;

    assert_eq!(before, None);
    assert_eq!(first.found.resources, ["arn:aws:ec2:eu-west-1:222222222222:volume/vol-1"]);
    assert_eq!(world.node_states(&again).await, ["leftovers:list succeeded"]);
    assert!(second.found.resources.is_empty() && second.job != first.job, "{second:?}");
    assert_eq!(leftovers(&world).await, None, "something is deployed again");
    let listing = orders(&world).into_iter().find(|order| matches!(order.work, Work::Leftovers(_))).unwrap();
    assert_eq!((listing.mode, listing.context), (Mode::Deprovision, serde_json::json!({ "nuon": {} })));
}

#[tokio::test]
async fn a_list_is_made_although_the_newest_version_has_a_question_that_nobody_answered() {
    let mut world = World::with_install().await;
    world.teardown(&TeardownInstallRequest::default(), "teardown-1").await.unwrap();
    world.settle().await;
    let mut version = app::document();
    let question = serde_json::json!({ "name": "domain", "type": "string", "customer": true, "required": true });
    version.inputs.push(serde_json::from_value(question).unwrap());
    world.sync(&version).await;

    let again = world.teardown(&TeardownInstallRequest::default(), "teardown-2").await.unwrap();
    world.settle().await;

    assert_eq!(world.node_states(&again).await, ["leftovers:list succeeded"]);
}

#[tokio::test]
async fn a_teardown_succeeds_without_a_list_when_no_runner_makes_one() {
    let mut world = World::with_install().await;
    world.runner("globex").behaviours.insert("leftovers".into(), Behaviour::Ignores);

    // As with a runner of an earlier release, which cannot read the order and names no job when it refuses it.
    let workflow = world.teardown(&TeardownInstallRequest::default(), "teardown-1").await.unwrap();
    world.run().await;
    world.memory.advance_secs(15 * 60);
    world.sweeper().sweep().await.unwrap();
    world.run().await;

    let states = ["info succeeded", "settings succeeded", "storage succeeded", "leftovers:list lost"];
    assert_eq!(world.node_states(&workflow).await, states);
    assert_eq!(world.workflow(&workflow).await.state.as_str(), "succeeded");
    let view = read::show_install(&world.versions(), &globex(), world.now()).await.unwrap();
    assert_eq!((view.state.as_str(), view.version), ("idle", None), "nothing is deployed any more");
    let unknown = view.leftovers.unwrap().found.unknown.unwrap();
    assert!(unknown.starts_with("the job that lists the leftovers is lost: "), "{unknown}");
}

#[tokio::test]
async fn a_list_that_cannot_be_read_is_left_out() {
    let mut world = World::with_install().await;
    let outputs = [(OUTPUT.to_owned(), serde_json::json!(["arn"]))].into();
    let ends = Behaviour::Ends(Outcome::Succeeded { outputs, sensitive: Default::default(), artifact: None });
    world.runner("globex").behaviours.insert("leftovers".into(), ends);

    let workflow = world.teardown(&TeardownInstallRequest::default(), "teardown-1").await.unwrap();
    world.settle().await;

    assert_eq!(world.workflow(&workflow).await.state.as_str(), "succeeded");
    assert_eq!(read::show_install(&world.versions(), &globex(), world.now()).await.unwrap().leftovers, None);
}
