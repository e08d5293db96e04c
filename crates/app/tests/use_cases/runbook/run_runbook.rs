//! Running a runbook: each step once and in order, one run at a time, and the refused requests with their messages.

use freehold_app::runbook::run_runbook::RunRunbook;
use freehold_app::{Kind, read, table};
use freehold_domain::workflow::{Request, RunTrigger};
use freehold_protocol::api::{DeployComponentsRequest, ReasonRequest, RunActionRequest, RunRunbookRequest};
use freehold_protocol::order::Order;
use freehold_protocol::{Envelope, RunId};
use serde_json::{Value, json};

use crate::support::runner::Behaviour;
use crate::support::{World, app, asked_with, globex, with_input};

fn with_ticket(ticket: &str) -> RunRunbookRequest {
    RunRunbookRequest { inputs: [("ticket".to_owned(), ticket.to_owned())].into(), now: false }
}

/// Returns the orders that were sent, the first one first.
fn orders(world: &World) -> Vec<Order> {
    let orders = world.memory.orders.lock().unwrap();
    orders.iter().filter_map(|sent| Envelope::parse(sent.3.as_bytes()).ok()?.peek::<Order>().ok()).collect()
}

async fn refusal(world: &World, runbook: &str, request: &RunRunbookRequest) -> (Kind, String) {
    let refused = world.run_runbook_with(runbook, request, "refused").await.unwrap_err();
    (refused.kind, refused.message)
}

#[tokio::test]
async fn steps_run_in_their_order_and_without_the_dependents_of_what_they_deploy() {
    let mut world = World::with_runbook(&app::with_runbook()).await;

    let run = world.run_runbook("fix", "runbook-1").await.unwrap();
    world.settle().await;

    assert_eq!(world.runners["globex"].started, ["storage", "action:check", "info"]);
    assert_eq!(world.run_states(&run.id).await, ["succeeded"; 4]);
    let workflows = read::list_workflows(&*world.memory, &globex(), None).await.unwrap();
    let of_run = workflows.items.iter().filter(|workflow| workflow.run.as_ref() == Some(&run.id));
    assert_eq!(of_run.count(), 3);
    let triggered = workflows.items.iter().find_map(|workflow| workflow.trigger.clone());
    assert_eq!(triggered.as_deref(), Some(RunTrigger::Runbook.as_str()));
}

#[tokio::test]
async fn the_runbooks_of_an_install_are_listed_with_their_steps() {
    let mut document = app::with_runbook();
    document.runbooks[0].labels.insert("type".to_owned(), "repair".to_owned());
    let world = World::with_runbook(&document).await;
    let install = table::install(&*world.memory, &globex()).await.unwrap().value;

    let list = read::list_runbooks(&world.versions(), &install).await.unwrap();

    assert_eq!((list.number, list.runbooks[0].runbook.as_str()), (2, "fix"));
    assert_eq!(list.runbooks[0].labels["type"], "repair");
    assert_eq!(list.runbooks[0].steps, ["deploy component storage", "run action check", "deploy component info"]);
    let runs = read::list_runs(&*world.memory, &globex(), None).await.unwrap();
    assert!(runs.items.is_empty());
}

#[tokio::test]
async fn a_step_deploys_what_its_component_depends_on_if_it_says_so() {
    let mut document = app::with_runbook();
    document.runbooks[0].steps = document.runbooks[0].steps.split_off(2);
    document.runbooks[0].steps[0].deploy_dependencies = true;
    let mut world = World::with_runbook(&document).await;

    world.run_runbook("fix", "runbook-1").await.unwrap();
    world.settle().await;

    assert_eq!(world.runners["globex"].started, ["storage", "info"]);
}

#[tokio::test]
async fn a_component_is_removed_and_comes_back() {
    let mut document = app::with_runbook();
    document.runbooks[0].steps[0].does =
        serde_json::from_value(json!({ "type": "component_tear_down", "component": "info" })).unwrap();
    let mut world = World::with_runbook(&document).await;

    let run = world.run_runbook("fix", "runbook-1").await.unwrap();
    world.settle().await;

    assert_eq!(world.run_states(&run.id).await, ["succeeded"; 4]);
    assert_eq!(world.runners["globex"].started, ["remove:info", "action:check", "info"]);
}

#[tokio::test]
async fn the_templates_of_an_action_read_the_inputs_of_its_run() {
    let mut world = World::with_runbook(&app::with_runbook()).await;

    world.run_runbook_with("fix", &with_ticket("OPS-7"), "runbook-1").await.unwrap();
    world.settle().await;
    world.action("check", "alone").await.unwrap();
    world.settle().await;

    let contexts: Vec<Value> = orders(&world).into_iter().map(|order| order.context).collect();
    let [.., deploy, of_run, _, alone] = contexts.as_slice() else { panic!("{contexts:?}") };
    assert_eq!(of_run["nuon"]["runbook"], json!({ "inputs": { "ticket": "OPS-7" } }));
    assert_eq!((&deploy["nuon"]["runbook"], &alone["nuon"]["runbook"]), (&Value::Null, &Value::Null));
}

#[tokio::test]
async fn an_action_has_its_own_inputs_from_the_runbook_or_from_the_person_who_runs_it() {
    let mut document = app::with_runbook();
    let inputs = json!([{ "name": "ticket", "required": true }, { "name": "count", "default": "3" }]);
    document.actions.iter_mut().find(|action| action.name.as_str() == "check").unwrap().inputs =
        serde_json::from_value(inputs).unwrap();
    let mut world = World::with_runbook(&document).await;

    world.run_runbook_with("fix", &with_ticket("OPS-7"), "runbook-1").await.unwrap();
    world.settle().await;
    let missing = world.action("check", "without").await.unwrap_err();
    let given = [("ticket", "OPS-8"), ("count", "5")].map(|(name, text)| (name.to_owned(), text.to_owned()));
    let request = RunActionRequest { inputs: given.into(), ..Default::default() };
    let asked = (RunTrigger::Request, asked_with("alone"));
    world.run_action().run(&globex(), &"check".parse().unwrap(), &request, asked).await.unwrap();
    world.settle().await;

    let contexts: Vec<Value> =
        orders(&world).into_iter().map(|order| order.context["nuon"]["action"].clone()).collect();
    let with_inputs: Vec<&Value> = contexts.iter().filter(|inputs| !inputs.is_null()).collect();
    let expected = |ticket: &str, count: &str| json!({ "inputs": { "ticket": ticket, "count": count } });
    assert_eq!(with_inputs.first(), Some(&&expected("OPS-7", "3")));
    assert_eq!(with_inputs.last(), Some(&&expected("OPS-8", "5")));
    assert_eq!(missing.kind, Kind::Invalid);
    assert_eq!(missing.message, "action `check` requires input `ticket`; give it with `--input ticket=VALUE`");
}

#[tokio::test]
async fn the_same_request_again_is_the_same_run_and_another_one_waits_for_its_end() {
    let mut world = World::with_runbook(&app::with_runbook()).await;

    let first = world.run_runbook("fix", "runbook-1").await.unwrap();
    let again = world.run_runbook("fix", "runbook-1").await.unwrap();
    let other = world.run_runbook("fix", "runbook-2").await.unwrap_err();
    let changed = world.run_runbook_with("fix", &with_ticket("x"), "runbook-1").await.unwrap_err();

    assert_eq!(again.id, first.id);
    assert_eq!(other.kind, Kind::Conflict);
    assert!(other.message.contains(&format!("is busy with run `{}`", first.id)), "{}", other.message);
    assert!(changed.message.contains("idempotency key was used for another request"), "{}", changed.message);

    world.settle().await;
    assert_eq!(world.runners["globex"].started.len(), 3);
    assert!(world.run_runbook("fix", "runbook-2").await.is_ok());
}

#[tokio::test]
async fn what_cannot_run_is_refused_with_the_way_out() {
    let mut document = app::with_runbook();
    document.runbooks.push(serde_json::from_value(json!({ "name": "nothing", "steps": [] })).unwrap());
    let world = World::with_runbook(&document).await;
    let plain = RunRunbookRequest::default();
    let wrong = RunRunbookRequest { inputs: [("tiket".to_owned(), "x".to_owned())].into(), now: false };

    let (kind, message) = refusal(&world, "fixx", &plain).await;
    assert_eq!(kind, Kind::NotFound);
    assert_eq!(message, "app `demo` has no runbook `fixx` in version 2; did you mean `fix`?");
    let (kind, message) = refusal(&world, "nothing", &plain).await;
    assert_eq!(kind, Kind::Invalid);
    assert_eq!(message, "runbook `nothing` has no steps; add one to its file and sync the app");
    let (kind, message) = refusal(&world, "fix", &wrong).await;
    assert_eq!(kind, Kind::Invalid);
    assert_eq!(message, "runbook `fix` has no input `tiket`; did you mean `ticket`?");
    assert!(read::list_runs(&*world.memory, &globex(), None).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn a_step_that_the_install_refuses_ends_the_run_with_its_reason() {
    let mut world = World::with_runbook(&app::with_runbook()).await;
    let run = world.run_runbook("fix", "runbook-1").await.unwrap();
    let because = ReasonRequest { reason: "bill not paid".to_owned() };
    world.disable_install().disable(&globex(), &because).await.unwrap();

    world.settle().await;

    assert_eq!(world.run_states(&run.id).await, ["failed", "succeeded", "failed", "waiting"]);
    let view = read::show_run(&*world.memory, &run.id).await.unwrap();
    assert!(view.reason.starts_with("step 2 (run action check): "), "{}", view.reason);
    assert!(view.reason.contains("bill not paid"), "{}", view.reason);
    assert_eq!(view.steps[1].workflow, None);
}

#[tokio::test]
async fn a_run_waits_for_no_deploy_that_somebody_else_started_and_neither_does_a_step() {
    let mut world = World::with_runbook(&app::with_runbook()).await;
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::Hangs);
    let other = world.deploy(&with_input("days", 8), "deploy-2").await.unwrap();
    world.run().await;

    let refused = world.run_runbook("fix", "runbook-1").await.unwrap_err();

    assert_eq!(refused.kind, Kind::Conflict);
    assert!(refused.message.contains(other.as_str()), "{}", refused.message);

    let mut world = World::with_runbook(&app::with_runbook()).await;
    world.runner("globex").behaviours.insert("action:check".into(), Behaviour::Hangs);
    let run = world.run_runbook("fix", "runbook-1").await.unwrap();
    world.settle().await;
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::Hangs);
    let other = world.deploy(&with_input("days", 8), "deploy-2").await.unwrap();
    world.run().await;
    world.end_hanging("action:check").await;
    assert_eq!(world.run_states(&run.id).await, ["failed", "succeeded", "succeeded", "failed"]);
    let view = read::show_run(&*world.memory, &run.id).await.unwrap();
    assert!(view.reason.contains(other.as_str()), "{}", view.reason);
}

#[tokio::test]
async fn what_is_removed_already_is_no_failure() {
    let mut document = app::with_runbook();
    document.runbooks[0].steps[0].does =
        serde_json::from_value(json!({ "type": "component_tear_down", "component": "info" })).unwrap();
    document.runbooks[0].steps.truncate(2);
    let mut world = World::with_runbook(&document).await;
    world.run_runbook("fix", "runbook-1").await.unwrap();
    world.settle().await;

    let again = world.run_runbook("fix", "runbook-2").await.unwrap();
    world.settle().await;

    assert_eq!(world.run_states(&again.id).await, ["succeeded"; 3]);
    let view = read::show_run(&*world.memory, &again.id).await.unwrap();
    assert_eq!((&view.steps[0].workflow, view.steps[0].reason.as_str()), (&None, "nothing was left to remove"));
}

#[tokio::test]
async fn no_step_brings_an_older_version_back() {
    let mut world = World::with_runbook(&app::with_runbook()).await;
    world.runner("globex").behaviours.insert("action:check".into(), Behaviour::FailsBefore(2));
    let run = world.run_runbook("fix", "runbook-1").await.unwrap();
    world.settle().await;
    world.runner("globex").behaviours.clear();
    world.sync(&app::with_source("storage", "example/storage:2")).await;
    world.build("build-2").await;
    world.settle().await;
    world.deploy(&DeployComponentsRequest::default(), "deploy-2").await.unwrap();
    world.settle().await;

    let resumed = world.resume_run(&run.id).await.unwrap();

    assert_eq!(resumed.state.as_str(), "failed");
    assert!(resumed.failure().contains("another version than 2 was deployed since"), "{}", resumed.failure());
}

#[tokio::test]
async fn a_run_that_nobody_advanced_is_advanced_by_the_next_sweep() {
    let mut world = World::with_runbook(&app::with_runbook()).await;
    // The process dies after the commit of the run.
    world.memory.faults.set({
        let mut commits = 0;
        move |what| {
            commits += u32::from(what == "commit");
            (commits > 1).then_some(freehold_app::testing::Fault::Before)
        }
    });
    let _ = world.run_runbook("fix", "runbook-1").await;
    world.memory.faults.set(|_| None);
    let run = RunId::derive(&globex(), "runbook-1");
    assert_eq!(world.run_states(&run).await, ["running", "waiting", "waiting", "waiting"]);

    world.handle_due_tasks().handle().await.unwrap();
    world.settle().await;

    assert_eq!(world.run_states(&run).await, ["succeeded"; 4]);
    assert_eq!(world.runners["globex"].started, ["storage", "action:check", "info"]);
}

#[tokio::test]
async fn a_run_stays_with_its_version_and_a_whole_deploy_comes_after_it() {
    let mut world = World::with_runbook(&app::with_runbook()).await;
    let run = world.run_runbook("fix", "runbook-1").await.unwrap();
    world.sync(&app::with_source("storage", "example/storage:2")).await;
    world.build("build-2").await;

    world.settle().await;

    let entries = read::list_workflows(&*world.memory, &globex(), None).await.unwrap();
    for entry in entries.items.iter().filter(|entry| entry.run.as_ref() == Some(&run.id)) {
        let workflow = table::workflow(&*world.memory, &entry.workflow).await.unwrap().value;
        assert_eq!(workflow.version.as_ref(), Some(&run.version));
        if let Request::Deploy { alone, .. } = workflow.request {
            assert!(alone);
        }
    }
    let deploy = world.deploy(&DeployComponentsRequest::default(), "deploy-2").await.unwrap();
    world.settle().await;
    assert_eq!(world.node_states(&deploy).await, ["info succeeded", "storage succeeded"]);
}

#[tokio::test]
async fn a_forgotten_install_leaves_no_run_behind() {
    let mut world = World::with_runbook(&app::with_runbook()).await;
    let run = world.run_runbook("fix", "runbook-1").await.unwrap();
    world.settle().await;
    world.teardown(&Default::default(), "teardown-1").await.unwrap();
    world.settle().await;
    world.memory.advance_secs(2 * 3600);

    world.forget_install().forget(&globex(), &Default::default()).await.unwrap();
    world.forgotten().await;

    assert!(table::find_run(&*world.memory, &run.id).await.unwrap().is_none());
    let left = world.memory.rows().into_iter().filter(|row| row.key.pk.starts_with("run#"));
    assert_eq!(left.count(), 0);
}

#[tokio::test]
async fn two_calls_that_advance_a_run_at_once_start_each_step_once() {
    let start = World::with_runbook(&app::with_runbook()).await;
    let run = RunId::derive(&globex(), "runbook-1");
    for at in 0..40 {
        let mut world = start.copy();
        let id = run.clone();
        let advance = world.advance_run_while(at, move |advance| {
            let id = id.clone();
            async move { advance.advance(&id).await.unwrap() }
        });
        let (runbook, request) = ("fix".parse().unwrap(), RunRunbookRequest::default());
        RunRunbook { advance }.run(&globex(), &runbook, &request, asked_with("runbook-1")).await.unwrap();
        world.settle().await;
        let _ = world.handle_due_tasks().handle().await;
        world.settle().await;

        world.check_named(&run).await;
        assert_eq!(world.run_states(&run).await, ["succeeded"; 4], "call {at}");
        assert_eq!(world.runners["globex"].started, ["storage", "action:check", "info"], "call {at}");
    }
}
