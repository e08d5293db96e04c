//! Inputs: who may answer which input, when a value is used, and what the API shows of it.

use freehold_app::Kind;
use freehold_app::app_version::show_inputs;
use freehold_app::install::set_inputs::SetInputs;
use freehold_app::read;
use freehold_domain::workflow::{Workflow, WorkflowState};
use freehold_protocol::api::{AnsweredBy, CreateInstallRequest, DeployComponentsRequest, InputView, SetInputsRequest};
use freehold_protocol::app_version::AppVersion;
use freehold_protocol::limits::MAX_HELLO_BYTES;
use freehold_protocol::order::Order;
use freehold_protocol::sealing::SealedValue;
use freehold_protocol::{Envelope, Payload as _};
use serde_json::{Value, json};

use crate::support::doubles::queue_url;
use crate::support::runner::Behaviour;
use crate::support::{World, app, globex, member, with_input};

/// Returns the app with inputs of the customer: `zone`, which `settings` uses, and the sensitive `token`.
fn asking() -> AppVersion {
    let mut document = app::document();
    document.inputs = serde_json::from_value(json!([
        { "name": "days", "type": "number", "default": 7 },
        { "name": "greeting", "type": "string", "required": true },
        { "name": "key", "type": "string", "sensitive": true },
        { "name": "token", "type": "string", "required": true, "customer": true, "sensitive": true },
        { "name": "zone", "type": "number", "required": true, "customer": true },
    ]))
    .unwrap();
    for component in &mut document.components {
        if component.name.as_str() == "settings" {
            component.references = serde_json::from_value(json!([{ "to": "input", "name": "zone" }])).unwrap();
        }
    }
    document
}

/// Returns a world whose app asks the customer, with `globex` created and its queue made.
async fn waiting() -> World {
    let mut world = World::with_app().await;
    world.sync(&asking()).await;
    world.create().await;
    world.run().await;
    world
}

/// The runner comes with these answers of the stack.
async fn answered(answers: &[(&str, &str)]) -> World {
    let mut world = waiting().await;
    tell(&mut world, answers).await;
    world
}

async fn tell(world: &mut World, answers: &[(&str, &str)]) {
    world.runner("globex").answers = answers.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    world.hello("globex");
    world.settle().await;
}

fn set_inputs(world: &World) -> SetInputs {
    SetInputs { store: world.memory.clone(), versions: world.versions(), clock: world.memory.clone() }
}

fn request(inputs: Value) -> SetInputsRequest {
    SetInputsRequest { inputs: serde_json::from_value(inputs).unwrap() }
}

async fn provisioning(world: &World) -> Workflow {
    world.workflow(&world.provisioning("globex").await).await
}

/// Returns the orders that `globex` got.
fn orders(world: &World) -> Vec<Order> {
    let queue = queue_url("globex");
    let messages = world.memory.orders.lock().unwrap().clone();
    let envelopes =
        messages.iter().filter(|message| message.0 == queue).map(|message| Envelope::parse(message.3.as_bytes()));
    envelopes
        .map(Result::unwrap)
        .filter(|envelope| envelope.payload_type == Order::TYPE)
        .map(|envelope| envelope.open_delegated(&world.keys.public(), &world.tenant, world.now()).unwrap())
        .collect()
}

async fn shown(world: &World) -> Vec<InputView> {
    let install = freehold_app::table::install(&*world.memory, &globex()).await.unwrap().value;
    show_inputs::show_inputs(&world.versions(), &install).await.unwrap().inputs
}

#[tokio::test]
async fn a_customers_answer_comes_with_the_hello_and_is_planned_with() {
    let mut world = answered(&[("InputZone", "3"), ("InputOther", "unknown")]).await;
    let provisioned = provisioning(&world).await;

    tell(&mut world, &[("InputZone", "4")]).await;
    let deploy = world.deploy(&DeployComponentsRequest::default(), "deploy-1").await.unwrap();
    world.settle().await;

    assert!(matches!(provisioned.state, WorkflowState::Succeeded { .. }), "{provisioned:?}");
    assert_eq!(world.node_states(&deploy).await, ["settings succeeded"]);
    let view = read::show_install(&world.versions(), &globex(), world.now()).await.unwrap();
    assert_eq!((json!(view.inputs), view.problems.len()), (json!({ "greeting": "hi", "zone": 4 }), 0));
}

#[tokio::test]
async fn a_missing_or_unsuitable_answer_stops_the_plan_and_is_named() {
    let unanswered = "the customer has not answered input `zone` yet";
    let wrong =
        "input `zone` must be a number, found a text of 4 characters; ask the customer to change parameter `InputZone`";
    for (answers, words) in [(&[][..], unanswered), (&[("InputZone", "east")][..], wrong)] {
        let mut world = answered(answers).await;
        let provisioned = provisioning(&world).await;

        let refused = world.deploy(&DeployComponentsRequest::default(), "deploy-1").await.unwrap_err();
        let view = read::show_install(&world.versions(), &globex(), world.now()).await.unwrap();
        tell(&mut world, &[("InputZone", "3")]).await;
        let deploy = world.deploy(&DeployComponentsRequest::default(), "deploy-2").await.unwrap();
        world.settle().await;

        let WorkflowState::Failed { reason, .. } = &provisioned.state else { panic!("{provisioned:?}") };
        assert!(reason.contains(words), "{reason}");
        assert_eq!(refused.kind, Kind::Invalid);
        assert!(refused.message.starts_with(words), "{refused}");
        assert!(view.problems[0].starts_with(words), "{view:?}");
        assert!(matches!(world.workflow(&deploy).await.state, WorkflowState::Succeeded { .. }));
    }
}

#[tokio::test]
async fn more_answers_than_a_stack_has_are_refused_on_record_and_the_former_ones_stay() {
    let mut world = answered(&[("InputZone", "3")]).await;

    tell(&mut world, &[("InputZone", &"9".repeat(70_000))]).await;

    let zone = shown(&world).await.into_iter().find(|input| input.name == "zone").unwrap();
    assert_eq!(zone.value, Some(json!(3)));
    assert!(world.refusals()[0].contains("the install stack has 1 answers of 70009 bytes in all, which is more than"));
}

#[tokio::test]
async fn a_hello_over_its_limit_is_refused_and_changes_nothing() {
    let mut world = answered(&[("InputZone", "3")]).await;
    world.runner("globex").answers = [("InputZone".to_owned(), "9".repeat(MAX_HELLO_BYTES))].into();
    let hello = world.runners["globex"].hello(world.now());

    let refused = world.accept_report().accept(&hello, world.now()).await.unwrap_err();

    let zone = shown(&world).await.into_iter().find(|input| input.name == "zone").unwrap();
    assert_eq!((refused.kind, zone.value), (Kind::Invalid, Some(json!(3))));
    assert!(refused.message.contains(&format!("more than the limit of {MAX_HELLO_BYTES}")), "{refused}");
}

#[tokio::test]
async fn the_runner_learns_which_inputs_are_sensitive_and_never_gets_a_customers_value() {
    let world = answered(&[("InputZone", "3"), ("InputToken", "hunter2")]).await;

    let orders = orders(&world);

    assert!(!orders.is_empty());
    for order in orders {
        let names: Vec<_> = order.sensitive_inputs.iter().map(|input| input.name.as_str()).collect();
        assert_eq!(names, ["key", "token"]);
        assert_eq!(order.context["nuon"]["inputs"]["inputs"]["zone"], 3);
        assert!(!order.context.to_string().contains("hunter2"));
    }
}

#[tokio::test]
async fn a_vendor_cannot_answer_for_the_customer() {
    let world = waiting().await;
    let mut creation = CreateInstallRequest { install: "initech".parse().unwrap(), ..world.creation("initech") };
    creation.inputs.extend([
        ("zone".to_owned(), json!(1)),
        ("dayz".to_owned(), json!(1)),
        ("days".to_owned(), json!("x")),
    ]);

    let created = world.create_install().create(&creation, member()).await.unwrap_err();
    let changed = set_inputs(&world).set(&globex(), &request(json!({ "token": "x" }))).await.unwrap_err();
    let deployed = world.deploy(&with_input("zone", 1), "deploy-1").await.unwrap_err();

    assert_eq!(
        created.message,
        "3 mistakes in the inputs: (1) app `demo` has no input `dayz`; did you mean `days`?; (2) input `zone` is answered \
         by the customer, with parameter `InputZone` of the install stack; leave it out; (3) input `days` must be a \
         number, found a text of 1 character"
    );
    for error in [changed, deployed] {
        assert_eq!(error.kind, Kind::Invalid);
        assert!(error.message.contains("is answered by the customer, with parameter `Input"), "{error}");
    }
}

#[tokio::test]
async fn changed_inputs_are_stored_once_and_used_by_the_next_deploy() {
    let mut world = World::with_install().await;
    let change = request(json!({ "greeting": "ho", "days": null }));

    let first = set_inputs(&world).set(&globex(), &change).await.unwrap();
    let rows = world.memory.rows();
    let second = set_inputs(&world).set(&globex(), &change).await.unwrap();
    let after = world.memory.rows();
    let deploy = world.deploy(&DeployComponentsRequest::default(), "deploy-1").await.unwrap();
    world.settle().await;

    assert_eq!((&first, rows), (&second, after));
    assert_eq!(first.inputs[0].from, AnsweredBy::Default);
    assert_eq!((first.inputs[1].from, first.inputs[1].value.clone()), (AnsweredBy::Vendor, Some(json!("ho"))));
    assert_eq!(world.node_states(&deploy).await, ["settings succeeded"]);
}

#[tokio::test]
async fn a_wrong_input_is_corrected_while_the_first_deploy_waits_for_its_runner_and_that_deploy_uses_the_new_one() {
    let mut world = World::with_app().await;
    world.create().await;
    world.run().await;

    set_inputs(&world).set(&globex(), &request(json!({ "days": 9 }))).await.unwrap();
    world.hello("globex");
    world.settle().await;

    let days = |order: &Order| order.context["nuon"]["inputs"]["inputs"]["days"].clone();
    let sent: Vec<Value> = orders(&world).iter().map(days).filter(|days| !days.is_null()).collect();
    assert!(matches!(provisioning(&world).await.state, WorkflowState::Succeeded { .. }));
    assert!(!sent.is_empty() && sent.iter().all(|days| *days == 9), "{sent:?}");
}

#[tokio::test]
async fn inputs_are_not_changed_under_a_workflow() {
    let mut world = World::with_install().await;
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::Hangs);
    let live = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();

    let error = set_inputs(&world).set(&globex(), &request(json!({ "days": 9 }))).await.unwrap_err();
    let same = set_inputs(&world).set(&globex(), &request(json!({ "days": 8 }))).await;

    assert_eq!(error.kind, Kind::Conflict);
    assert!(error.message.contains(live.as_str()), "{error}");
    assert!(same.is_ok(), "an unchanged answer is not a conflict");
}

#[tokio::test]
async fn a_sensitive_value_is_never_shown() {
    let world = answered(&[("InputZone", "3")]).await;

    let sealed = SealedValue::new(world.runners["globex"].sealing_key(), [1; 32], b"hunter2".to_vec());
    let answer = set_inputs(&world).set(&globex(), &request(json!({ "key": sealed }))).await.unwrap();
    let install = read::show_install(&world.versions(), &globex(), world.now()).await.unwrap();
    let list = read::list_installs(&*world.memory, None, world.now(), &|_| true).await.unwrap();

    for view in [json!(answer), json!(install), json!(list)] {
        assert!(!view.to_string().contains("sealed.v1"), "{view}");
    }
    assert_eq!(install.inputs["key"], "(set)");
    let token = answer.inputs.iter().find(|input| input.name == "token").unwrap();
    assert_eq!((token.from, &token.value, &token.problem), (AnsweredBy::CustomersAccount, &None, &None));
    assert_eq!(token.parameter.as_deref(), Some("InputToken"));
}

#[tokio::test]
async fn the_schema_of_a_version_is_that_of_its_inputs() {
    let world = waiting().await;
    let version = asking();

    let answer =
        show_inputs::show_inputs_schema(&world.versions(), &version.app, &version.digest().unwrap()).await.unwrap();

    assert_eq!(answer.schema, freehold_protocol::app_version::inputs_schema(&version.inputs, &version.input_groups));
    assert_eq!(answer.schema["properties"]["zone"]["x-freehold-source"], "customer");
}

#[tokio::test]
async fn an_install_without_an_app_has_no_inputs() {
    let world = World::with_app().await;

    let error = set_inputs(&world).set(&"build".parse().unwrap(), &request(json!({}))).await.unwrap_err();

    assert_eq!(
        (error.kind, error.message.as_str()),
        (
            Kind::Invalid,
            "`build` is the build runner, not an install of an app; `freehold install list` shows the installs"
        )
    );
}
