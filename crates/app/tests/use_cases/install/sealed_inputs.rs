//! The vendor's sensitive inputs: sealed to the key of the install's runner, given when the runner has announced itself, and
//! stored, sent and shown in no other form.

use std::sync::Arc;

use freehold_app::Kind;
use freehold_app::install::set_inputs::SetInputs;
use freehold_app::messages::DispatchMessage;
use freehold_app::ports::{OrdersQueue, PortError};
use freehold_app::read;
use freehold_app::table::{self, evidence};
use freehold_app::testing::Fault;
use freehold_app::workflow::dispatch_job::DispatchJob;
use freehold_domain::workflow::{Workflow, WorkflowState};
use freehold_protocol::api::{CreateInstallRequest, DeployComponentsRequest, SetInputsRequest, TeardownInstallRequest};
use freehold_protocol::app_version::AppVersion;
use freehold_protocol::order::Order;
use freehold_protocol::sealing::{SealedValue, SealingKey};
use freehold_protocol::{Digest, Envelope, Payload as _};
use serde_json::{Value, json};

use crate::support::doubles::queue_url;
use crate::support::runner::{Behaviour, Runner};
use crate::support::walk::At;
use crate::support::{World, app, globex, member, with_input};

/// An orders queue that refuses every message.
struct Refusing;

#[async_trait::async_trait]
impl OrdersQueue for Refusing {
    async fn send(&self, _: &str, _: &str, _: &str, _: &str) -> Result<(), PortError> {
        Err(PortError::Failed { what: "orders queue".into(), reason: "QueueDoesNotExist".into() })
    }
}

/// Returns the app with two sensitive inputs of the vendor: `key`, which `settings` uses, and the optional `token`.
fn asking() -> AppVersion {
    let mut document = app::document();
    document.inputs = serde_json::from_value(json!([
        { "name": "days", "type": "number", "default": 7 },
        { "name": "greeting", "type": "string", "required": true },
        { "name": "key", "type": "string", "required": true, "sensitive": true },
        { "name": "token", "type": "string", "sensitive": true },
    ]))
    .unwrap();
    for component in &mut document.components {
        if component.name.as_str() == "settings" {
            component.references = serde_json::from_value(json!([{ "to": "input", "name": "key" }])).unwrap();
        }
    }
    document
}

/// Returns a world whose runner of `globex` has announced itself, while the first deploy waits for `key`.
async fn waiting() -> World {
    let mut world = World::with_app().await;
    world.sync(&asking()).await;
    world.create().await;
    world.run().await;
    world.hello("globex");
    world.settle().await;
    world
}

/// Returns a world in which `globex` is provisioned with `key`.
async fn provisioned() -> World {
    let mut world = waiting().await;
    set(&world, json!({ "key": sealed(&world, 1) })).await.unwrap();
    resumed(&mut world).await;
    world
}

/// Returns a value that is sealed to the runner of `globex`. Nobody here can open it: the cipher is `freehold-sealing`'s.
fn sealed(world: &World, text: u8) -> Value {
    json!(SealedValue::new(world.runners["globex"].sealing_key(), [text; 32], vec![text; 80]))
}

async fn set(world: &World, inputs: Value) -> Result<Value, freehold_app::AppError> {
    let set = SetInputs { store: world.memory.clone(), versions: world.versions(), clock: world.memory.clone() };
    let request = SetInputsRequest { inputs: serde_json::from_value(inputs).unwrap() };
    set.set(&globex(), &request).await.map(|answer| json!(answer))
}

/// The next minute's sweep resumes what waited.
async fn resumed(world: &mut World) {
    world.memory.advance_secs(60);
    world.sweeper().sweep().await.unwrap();
    world.settle().await;
}

async fn provisioning(world: &World) -> Workflow {
    world.workflow(&world.provisioning("globex").await).await
}

/// Returns the orders that `globex` got, each with the texts that came with it.
fn orders(world: &World) -> Vec<(Order, Vec<String>)> {
    let queue = queue_url("globex");
    let messages = world.memory.orders.lock().unwrap().clone();
    let mine = messages.iter().filter(|message| message.0 == queue);
    mine.map(|message| Envelope::parse(message.3.as_bytes()).unwrap())
        .filter(|envelope| envelope.payload_type == Order::TYPE)
        .map(|envelope| {
            let order = envelope.open_delegated(&world.keys.public(), &world.tenant, world.now()).unwrap();
            (order, envelope.attached)
        })
        .collect()
}

/// A new machine takes the place of the runner of `globex`.
async fn replaced(world: &mut World) {
    let runner = Runner::new(&world.tenant, "globex", queue_url("globex"), 21);
    world.forget_orders();
    world.runners.insert("globex".into(), runner);
    world.memory.advance_secs(1);
    world.hello("globex");
    world.settle().await;
}

#[tokio::test]
async fn the_first_deploy_waits_for_a_required_sensitive_input_and_resumes_when_it_is_given() {
    let mut world = waiting().await;
    let id = world.provisioning("globex").await;
    world.memory.advance_secs(3 * 24 * 3600);
    let swept = world.sweeper().sweep().await.unwrap();
    world.settle().await;
    let waits = matches!(world.machines[&id].at, At::AwaitRunner(Some(_)));
    let view = read::show_install(&world.versions(), &globex(), world.now()).await.unwrap();
    let other = set(&world, json!({ "token": sealed(&world, 1), "days": 9 })).await.unwrap_err();

    set(&world, json!({ "key": sealed(&world, 1) })).await.unwrap();
    world.memory.advance_secs(60);
    let resumed = world.sweeper().sweep().await.unwrap();
    world.settle().await;

    assert!(waits, "{:?}", world.machines[&id].at);
    assert_eq!((swept.stuck, resumed.stuck), (0, 0), "who waits for a value is not stuck");
    assert!(view.problems[0].contains("`freehold install inputs globex --input key=@FILE`"), "{view:?}");
    assert_eq!(other.kind, Kind::Conflict, "only sensitive inputs may change while a workflow waits: {other}");
    let provisioned = provisioning(&world).await;
    assert!(matches!(provisioned.state, WorkflowState::Succeeded { .. }), "{provisioned:?}");
}

#[tokio::test]
async fn a_first_deploy_that_lacks_nothing_does_not_wait() {
    let mut world = World::with_app().await;
    let mut document = asking();
    document.inputs.retain(|input| input.name != "key");
    world.sync(&document).await;
    world.create().await;
    world.run().await;

    world.hello("globex");
    world.settle().await;

    assert!(matches!(provisioning(&world).await.state, WorkflowState::Succeeded { .. }));
}

#[tokio::test]
async fn a_cancelled_first_deploy_does_not_wait_any_longer() {
    let mut world = waiting().await;

    world.cancel_workflow().cancel(&world.provisioning("globex").await, &Default::default(), member()).await.unwrap();
    resumed(&mut world).await;

    assert!(matches!(provisioning(&world).await.state, WorkflowState::Cancelled { .. }));
}

#[tokio::test]
async fn an_order_has_the_digest_and_its_message_the_value_and_the_evidence_neither_the_value() {
    let world = provisioned().await;
    let value = sealed(&world, 1);
    let text = value.as_str().unwrap();

    let orders = orders(&world);

    assert!(!orders.is_empty());
    for (order, attached) in orders {
        assert_eq!(json!(order.sealed_inputs), json!({ "key": Digest::of(text.as_bytes()) }));
        assert_eq!(attached, [text]);
        assert!(!json!(order).to_string().contains(text));
        assert_eq!(order.context["nuon"]["inputs"]["inputs"], json!({ "days": 7, "greeting": "hi", "token": "" }));
        let kept = evidence::kept(&*world.memory, &evidence::order_key(&order.job, order.dispatch)).await.unwrap();
        let kept = kept.unwrap().signed().envelope();
        assert!(kept.attached.is_empty() && kept.peek::<Order>().unwrap() == order, "{kept:?}");
    }
    let with_value: Vec<String> = world
        .memory
        .rows()
        .into_iter()
        .filter(|row| row.body.contains(text))
        .map(|row| format!("{} {}", row.key.pk, row.key.sk))
        .collect();
    let rows = ["install#globex ran", "install#globex state"];
    assert_eq!(with_value, rows, "the sealed value is in the install, and in what a roll back restores");
}

#[tokio::test]
async fn a_value_that_is_given_again_deploys_what_uses_it() {
    let mut world = provisioned().await;

    let same = world.deploy(&with_input("key", sealed(&world, 1)), "deploy-1").await.unwrap();
    world.settle().await;
    let other = world.deploy(&with_input("key", sealed(&world, 2)), "deploy-2").await.unwrap();
    world.settle().await;

    assert!(world.node_states(&same).await.is_empty());
    assert_eq!(world.node_states(&other).await, ["settings succeeded"]);
}

#[tokio::test]
async fn after_a_new_runner_a_value_is_given_again_and_everything_says_so_by_name() {
    let mut world = provisioned().await;
    replaced(&mut world).await;
    let way_out = "the value of input `key` is sealed to another key than that of the present runner of install `globex`, \
                   which cannot read it; give it again with `freehold install inputs globex --input key=@FILE`";

    let refused = world.deploy(&DeployComponentsRequest::default(), "deploy-1").await.unwrap_err();
    let view = read::show_install(&world.versions(), &globex(), world.now()).await.unwrap();
    let unrelated = set(&world, json!({ "days": 9 })).await;
    set(&world, json!({ "key": sealed(&world, 3) })).await.unwrap();
    let after = read::show_install(&world.versions(), &globex(), world.now()).await.unwrap();
    let deploy = world.deploy(&DeployComponentsRequest::default(), "deploy-2").await.unwrap();
    world.settle().await;

    assert_eq!(refused.kind, Kind::Invalid);
    assert!(refused.message.starts_with(way_out), "{refused}");
    assert!(view.problems.len() == 1 && view.problems[0].starts_with(way_out), "{view:?}");
    assert!(unrelated.is_ok(), "{unrelated:?}");
    assert!(after.problems.is_empty(), "{after:?}");
    assert!(matches!(world.workflow(&deploy).await.state, WorkflowState::Succeeded { .. }));
}

#[tokio::test]
async fn a_runner_that_is_replaced_while_the_first_deploy_waits_needs_its_own_values() {
    let mut world = waiting().await;
    let former = sealed(&world, 1);
    set(&world, json!({ "key": former })).await.unwrap();
    replaced(&mut world).await;
    resumed(&mut world).await;
    let waits = matches!(provisioning(&world).await.state, WorkflowState::Pending);

    let refused = set(&world, json!({ "key": former })).await.unwrap_err();
    set(&world, json!({ "key": sealed(&world, 2) })).await.unwrap();
    resumed(&mut world).await;

    assert!(waits && refused.message.contains("sealed to another key"), "{refused}");
    assert!(matches!(provisioning(&world).await.state, WorkflowState::Succeeded { .. }));
}

#[tokio::test]
async fn an_order_that_names_a_former_value_is_not_sent_again() {
    let mut world = provisioned().await;
    world.runner("globex").behaviours.insert("action:check".into(), Behaviour::Ignores);
    world.forget_orders();
    world.action("check", "action-1").await.unwrap();
    world.run().await;
    let sent = world.memory.orders.lock().unwrap().len();

    set(&world, json!({ "key": sealed(&world, 2) })).await.unwrap();
    world.memory.advance_secs(100);
    world.sweeper().sweep().await.unwrap();
    world.run().await;

    assert_eq!((sent, world.memory.orders.lock().unwrap().len()), (1, 1));
}

#[tokio::test]
async fn an_order_of_a_former_value_that_was_never_sent_ends_its_job_with_the_reason_and_one_that_may_be_sent_does_not()
{
    for (is_refused, state) in [(true, "failed"), (false, "queued")] {
        let mut world = provisioned().await;
        world.action("check", "action-1").await.unwrap();
        world.walk().await;
        let message = world.memory.take_dispatched().remove(0);
        let refusing = DispatchJob { orders: Arc::new(Refusing), ..world.dispatch_job() };
        world.memory.faults.set(|what| (what == "send").then_some(Fault::Before));
        let dispatch = if is_refused { refusing } else { world.dispatch_job() };
        assert!(dispatch.perform(&message).await.is_err());
        world.memory.faults.set(|_| None);
        set(&world, json!({ "key": sealed(&world, 2) })).await.unwrap();

        world.dispatch_job().perform(&message).await.unwrap();

        let DispatchMessage::Order { job, .. } = &message else { panic!("{message:?}") };
        let job = world.job(job).await;
        assert_eq!(job.state.as_str(), state, "{:?}", job.state);
        let says =
            job.state.reason().is_some_and(|reason| reason.contains("got another value before the order was sent"));
        assert_eq!(says, is_refused, "{:?}", job.state);
    }
}

#[tokio::test]
async fn an_input_that_becomes_sensitive_or_stops_being_so_serves_the_parts_of_both_versions() {
    let plain = |document: &AppVersion| {
        let mut document = document.clone();
        document.inputs.iter_mut().filter(|input| input.name == "key").for_each(|input| input.sensitive = false);
        document
    };
    let reading = |mut document: AppVersion| {
        let references = serde_json::from_value(json!([{ "to": "input", "name": "key" }])).unwrap();
        document.actions.iter_mut().filter(|action| action.name.as_str() == "check").for_each(|action| {
            action.references = std::collections::BTreeSet::clone(&references);
        });
        document
    };
    let (sensitive, clear) = (reading(asking()), plain(&reading(asking())));
    for (old, new) in [(&clear, &sensitive), (&sensitive, &clear)] {
        let mut world = World::with_app().await;
        world.sync(old).await;
        let mut creation = world.creation("globex");
        if old == &clear {
            creation.inputs.insert("key".into(), json!("hunter2"));
        }
        world.create_install().create(&creation, member()).await.unwrap();
        let runner = Runner::new(&world.tenant, "globex", queue_url("globex"), 20);
        world.runners.insert("globex".into(), runner);
        world.run().await;
        world.hello("globex");
        world.settle().await;
        if old == &sensitive {
            set(&world, json!({ "key": sealed(&world, 1) })).await.unwrap();
            resumed(&mut world).await;
        }
        let first = table::install(&*world.memory, &globex()).await.unwrap().value.version().cloned();
        world.sync(new).await;

        // The version that has the value in clear is not deployed yet, or not any more.
        let refused = set(&world, json!({ "key": "hunter3" })).await.unwrap_err();
        let deploy = world.deploy(&with_input("key", "hunter3"), "deploy-1").await.unwrap_err();
        let view = set(&world, json!({})).await.unwrap();
        set(&world, json!({ "key": sealed(&world, 2) })).await.unwrap();
        world.forget_orders();
        world.action("check", "action-1").await.unwrap();
        world.settle().await;
        let action = orders(&world).pop().unwrap();
        let next = world.deploy(&DeployComponentsRequest::default(), "deploy-2").await.unwrap();
        world.settle().await;
        assert!(first.is_some());
        let back = DeployComponentsRequest { version: first, ..Default::default() };
        let back = world.deploy(&back, "deploy-3").await.unwrap();
        world.settle().await;
        let teardown = world.teardown(&TeardownInstallRequest::default(), "teardown-1").await.unwrap();
        world.settle().await;

        assert!(refused.message.contains("not sealed") && deploy.message.contains("not sealed"), "{refused} {deploy}");
        assert_eq!(view["inputs"][2]["sensitive"], true, "{view}");
        assert_eq!(action.0.sealed_inputs.len(), 1, "{:?}", action.0.sealed_inputs);
        assert!(action.0.sensitive_inputs.iter().any(|input| input.name == "key" && input.sensitive));
        assert_eq!(action.1, [sealed(&world, 2).as_str().unwrap()]);
        for workflow in [next, back, teardown] {
            let ended = world.workflow(&workflow).await;
            assert!(matches!(ended.state, WorkflowState::Succeeded { .. }), "{:?} {:?}", ended.kind, ended.state);
        }
    }
}

#[tokio::test]
async fn after_a_new_runner_what_does_not_read_a_value_continues_and_what_reads_it_is_refused_by_name() {
    let mut world = provisioned().await;
    replaced(&mut world).await;

    let action = world.action("check", "action-1").await.unwrap();
    world.settle().await;
    let refused = world.teardown(&TeardownInstallRequest::default(), "teardown-1").await.unwrap_err();
    let other = TeardownInstallRequest { component: Some("storage".parse().unwrap()), ..Default::default() };
    let other = world.teardown(&other, "teardown-2").await.unwrap();
    world.settle().await;

    assert_eq!(refused.kind, Kind::Invalid);
    assert!(refused.message.contains("input `key` is sealed to another key"), "{refused}");
    for workflow in [action, other] {
        let ended = world.workflow(&workflow).await;
        assert!(matches!(ended.state, WorkflowState::Succeeded { .. }), "{:?} {:?}", ended.kind, ended.state);
    }
}

#[tokio::test]
async fn a_thousand_values_in_clear_are_refused_everywhere_and_stored_nowhere() {
    let mut world = provisioned().await;
    let canary = |n: u32| format!("cAn4rY-{n}-{}", &Digest::of(n.to_string().as_bytes()).hex()[..16]);
    let mut texts = Vec::new();
    for n in 0..1000_u32 {
        let (name, value) = (["key", "token"][n as usize % 2], canary(n));
        let refused = match n % 4 {
            0 | 1 => set(&world, json!({ name: value })).await.unwrap_err(),
            2 => world.deploy(&with_input(name, value.as_str()), &format!("deploy-{n}")).await.unwrap_err(),
            _ => {
                let mut creation =
                    CreateInstallRequest { install: "initech".parse().unwrap(), ..world.creation("initech") };
                creation.inputs.insert(name.to_owned(), json!(value));
                world.create_install().create(&creation, member()).await.unwrap_err()
            }
        };
        assert!(refused.message.contains("its value is not sealed"), "{refused}");
        texts.push(refused.message);
    }
    world.settle().await;

    texts.extend(world.memory.rows().into_iter().map(|row| row.body));
    texts.extend(world.memory.orders.lock().unwrap().iter().map(|message| message.3.clone()));
    texts.push(json!(read::show_install(&world.versions(), &globex(), world.now()).await.unwrap()).to_string());

    assert!(texts.len() > 1050);
    assert!(!texts.iter().any(|text| text.contains("cAn4rY")));
}

#[tokio::test]
async fn a_runner_without_a_sealing_key_gets_no_sensitive_values() {
    let mut world = waiting().await;
    let value = sealed(&world, 1);
    world.runner("globex").seals = false;
    world.memory.advance_secs(1);
    world.hello("globex");
    world.settle().await;

    let refused = set(&world, json!({ "key": value })).await.unwrap_err();
    let view = set(&world, json!({})).await.unwrap();

    assert!(refused.message.contains("sealed to another key than that of the present runner"), "{refused}");
    assert_eq!(view.get("sealing_key"), None);
}

#[tokio::test]
async fn the_answer_names_the_key_to_seal_to_and_shows_no_value() {
    let world = provisioned().await;

    let view = set(&world, json!({})).await.unwrap();

    assert_eq!(view["sealing_key"], json!(SealingKey::from_bytes([20; 32])));
    assert_eq!(view["inputs"][2]["value"], "(set)");
    assert!(!view.to_string().contains("sealed.v1"), "{view}");
}
