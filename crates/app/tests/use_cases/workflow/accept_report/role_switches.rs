//! The customer's switches of roles, as hellos announce them: each change starts its actions once, whatever is
//! delivered twice or late, and whatever fails.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use freehold_app::ports::{Expect, Row, Store as _};
use freehold_app::read;
use freehold_app::table::{self, DueWhat, SkippedRun};
use freehold_app::testing::Fault;
use freehold_app::workflow::accept_report::Accepted;
use freehold_domain::Workflow;
use freehold_domain::role_switches::{MAX_ROLE_RUNS, ROLE_VARIABLES, role_template};
use freehold_protocol::api::{DeployComponentsRequest, ForgetInstallRequest, ReasonRequest, TeardownInstallRequest};
use freehold_protocol::app_version::{AppVersion, Trigger};
use freehold_protocol::limits::MAX_ROLE_SWITCHES;
use freehold_protocol::order::{AskedBy, Order};
use freehold_protocol::{Envelope, RoleKey, Timestamp, WorkflowId};
use serde_json::{Value, json};

use super::accept;
use crate::support::doubles::queue_url;
use crate::support::runner::{Runner, rendered};
use crate::support::{World, app, globex};

const BASE: &[(&str, bool)] = &[("deprovision", false), ("maintenance", true)];
const ON: &[(&str, bool)] = &[("deprovision", true), ("maintenance", true)];

fn switches(roles: &[(&str, bool)]) -> Option<BTreeMap<RoleKey, bool>> {
    Some(roles.iter().map(|(role, is_on)| (role.parse().unwrap(), *is_on)).collect())
}

/// Returns the app, in which `check` runs when a role is switched on, and `welcome` when a role is switched off.
fn document() -> AppVersion {
    let on = |event: &str| Trigger::Event { event: event.to_owned(), component: None };
    let mut version = app::document();
    version.actions[1].steps = version.actions[0].steps.clone();
    version.actions[0].triggers.insert(on("role-enabled"));
    version.actions[1].triggers = [on("role-disabled")].into();
    version
}

async fn world() -> World {
    with_app(&document()).await
}

/// Returns a world in which `globex` has this app, and its runner has announced [`BASE`].
async fn with_app(version: &AppVersion) -> World {
    let mut world = World::with_install().await;
    world.sync(version).await;
    world.deploy(&DeployComponentsRequest::default(), "deploy-0").await.unwrap();
    world.settle().await;
    world.runner("globex").started.clear();
    announces(&mut world, BASE).await;
    world
}

/// Returns a hello of the runner with these switches.
fn hello(world: &mut World, roles: Option<BTreeMap<RoleKey, bool>>) -> String {
    world.runner("globex").roles = roles;
    world.runners["globex"].hello(world.now())
}

/// Lets the runner announce these switches, two minutes after what happened before. The queue delivers the hello twice.
async fn announces(world: &mut World, roles: &[(&str, bool)]) {
    world.memory.advance_secs(120);
    let hello = hello(world, switches(roles));
    for _ in 0..2 {
        accept(world, &hello).await.unwrap();
    }
}

/// Lets the sweep handle what is due, and returns every action that has run so far.
async fn runs(world: &mut World) -> Vec<String> {
    for _ in 0..2 {
        world.handle_due_tasks().handle().await.unwrap();
        world.settle().await;
    }
    let mut runs = world.runners["globex"].started.clone();
    runs.sort();
    runs
}

/// Returns how many tasks about roles are stored.
async fn tasks(world: &World) -> usize {
    let due = table::due(&*world.memory, Timestamp::from_millis(u64::MAX / 2), 100).await.unwrap();
    due.iter().filter(|row| matches!(row.value.what, DueWhat::Roles { .. })).count()
}

/// Returns what `freehold install show` names as problems of the install.
async fn problems(world: &World) -> Vec<String> {
    read::show_install(&world.versions(), &globex(), world.now()).await.unwrap().problems
}

#[tokio::test]
async fn the_first_switches_of_an_install_start_nothing() {
    let mut world = world().await;

    assert_eq!((tasks(&world).await, runs(&mut world).await), (0, vec![]));
}

#[tokio::test]
async fn a_role_that_is_switched_on_starts_the_actions_of_this_event_once() {
    let mut world = world().await;

    announces(&mut world, ON).await;
    let started = runs(&mut world).await;
    announces(&mut world, ON).await;

    assert_eq!((started, runs(&mut world).await), (vec!["action:check".to_owned()], vec!["action:check".to_owned()]));
    let newest = read::list_workflows(&*world.memory, &globex(), None).await.unwrap().items.remove(0);
    assert_eq!((newest.trigger.as_deref(), newest.asked_by), (Some("role-enabled"), Some(AskedBy::Sweep)));
    assert_eq!(tasks(&world).await, 0);
}

#[tokio::test]
async fn each_change_starts_a_run_of_its_own() {
    let mut world = world().await;

    announces(&mut world, ON).await;
    announces(&mut world, BASE).await;
    announces(&mut world, ON).await;

    assert_eq!(runs(&mut world).await, ["action:check", "action:check", "action:welcome"]);
}

#[tokio::test]
async fn one_hello_may_announce_the_changes_of_several_roles() {
    let mut world = world().await;

    announces(&mut world, &[("deprovision", true), ("maintenance", false), ("provision", true)]).await;

    assert_eq!(runs(&mut world).await, ["action:check", "action:check", "action:welcome"]);
}

/// Returns the environment variables in each order of `check`.
fn ordered_variables(world: &World) -> Vec<Value> {
    let orders = world.memory.orders.lock().unwrap();
    let of_check = orders.iter().filter(|(_, group, ..)| group == "action:check");
    let order = |body: &str| Envelope::parse(body.as_bytes()).unwrap().peek::<Order>().unwrap();
    of_check.map(|(.., body)| rendered(&order(body))["env_vars"].clone()).collect()
}

#[tokio::test]
async fn the_steps_get_the_role_in_their_environment_and_those_of_another_run_get_empty_texts() {
    let mut version = document();
    let variables = ROLE_VARIABLES.map(|(variable, key)| (variable.to_owned(), role_template(key)));
    version.actions[0].env_vars = variables.into();
    let mut world = with_app(&version).await;

    announces(&mut world, ON).await;
    runs(&mut world).await;
    world.action("check", "by-hand").await.unwrap();
    world.settle().await;

    let arn = "arn:aws:iam::222222222222:role/fh-acme--globex--deprovision";
    let by_role = json!({
        "TRIGGER_TYPE": "role-enabled", "CHANGE_TYPE": "enabled", "ROLE_NAME": "fh-acme--globex--deprovision",
        "ROLE_TYPE": "runner_deprovision", "ROLE_ARN": arn, "ROLE_ID": arn,
    });
    let by_hand = json!({
        "TRIGGER_TYPE": "", "CHANGE_TYPE": "", "ROLE_NAME": "", "ROLE_TYPE": "", "ROLE_ARN": "", "ROLE_ID": "",
    });
    assert_eq!(ordered_variables(&world), [by_role, by_hand]);
}

/// Returns the roles that `freehold install show` shows as on, and since when.
async fn shown(world: &World) -> (Vec<String>, Timestamp) {
    let view = read::show_install(&world.versions(), &globex(), world.now()).await.unwrap();
    let roles = view.roles.unwrap();
    (roles.on.iter().map(ToString::to_string).collect(), roles.since)
}

#[tokio::test]
async fn the_roles_that_are_on_are_shown_since_the_hello_that_announced_them_first() {
    let mut world = world().await;
    let (first, since) = shown(&world).await;

    announces(&mut world, ON).await;
    let changed = world.now();
    announces(&mut world, ON).await;

    assert_eq!((first, since < changed), (vec!["maintenance".to_owned()], true));
    assert_eq!(shown(&world).await, (vec!["deprovision".to_owned(), "maintenance".to_owned()], changed));
}

#[tokio::test]
async fn a_late_hello_of_the_same_machine_does_not_count() {
    let mut world = world().await;
    world.memory.advance_secs(120);
    let (late, sent_at) = (hello(&mut world, switches(ON)), world.now());
    announces(&mut world, BASE).await;

    let _ = world.accept_report().accept(&late, sent_at).await.unwrap();

    assert_eq!(runs(&mut world).await, [""; 0]);
    announces(&mut world, ON).await;
    assert_eq!(runs(&mut world).await, ["action:check"], "the last known switches are not those of the late hello");
}

#[tokio::test]
async fn a_late_hello_of_an_older_machine_does_not_count() {
    let mut world = world().await;
    world.memory.advance_secs(120);
    let mut older = Runner::new(&world.tenant, "globex", queue_url("globex"), 22);
    older.roles = switches(ON);
    let (late, sent_at) = (older.hello(world.now()), world.now());
    announces(&mut world, BASE).await;

    let refused = world.accept_report().accept(&late, sent_at).await.unwrap();
    announces(&mut world, BASE).await;

    assert!(matches!(refused, Accepted::Refused(_)), "{refused:?}");
    assert_eq!(runs(&mut world).await, [""; 0]);
}

#[tokio::test]
async fn a_new_machine_continues_with_the_switches_of_the_one_before() {
    let mut world = world().await;
    let new = Runner::new(&world.tenant, "globex", queue_url("globex"), 22);
    world.runner("globex").key = new.key;

    announces(&mut world, BASE).await;
    let before = runs(&mut world).await;
    announces(&mut world, ON).await;

    assert_eq!((before, runs(&mut world).await), (vec![], vec!["action:check".to_owned()]));
}

#[tokio::test]
async fn a_hello_without_switches_changes_nothing() {
    let mut world = world().await;
    world.memory.advance_secs(120);
    let without = hello(&mut world, None);
    accept(&world, &without).await.unwrap();
    let before = runs(&mut world).await;

    announces(&mut world, BASE).await;
    announces(&mut world, ON).await;

    assert_eq!((before, runs(&mut world).await), (vec![], vec!["action:check".to_owned()]));
}

#[tokio::test]
async fn a_change_within_a_minute_counts_with_the_next_hello() {
    let mut world = world().await;
    announces(&mut world, ON).await;
    world.memory.advance_secs(30);
    let off = hello(&mut world, switches(BASE));
    accept(&world, &off).await.unwrap();
    let before = runs(&mut world).await;

    announces(&mut world, BASE).await;

    assert_eq!(before, ["action:check"]);
    assert_eq!(runs(&mut world).await, ["action:check", "action:welcome"]);
}

#[tokio::test]
async fn roles_that_the_version_does_not_have_and_too_many_roles_start_nothing() {
    let mut world = world().await;
    let many: Vec<String> = (0..=MAX_ROLE_SWITCHES).map(|number| format!("custom-{number}")).collect();
    let many: Vec<(&str, bool)> = many.iter().map(|role| (role.as_str(), true)).chain([("provision", true)]).collect();

    announces(&mut world, &many).await;
    announces(&mut world, &[BASE, &[("custom-other", true)]].concat()).await;

    assert_eq!(runs(&mut world).await, [""; 0]);
}

#[tokio::test]
async fn before_the_first_deploy_a_change_starts_nothing() {
    let mut world = World::with_app().await;
    world.create().await;
    world.run().await;

    announces(&mut world, BASE).await;
    announces(&mut world, ON).await;
    let handled = world.handle_due_tasks().handle().await.unwrap();

    assert_eq!((handled.started, handled.skipped, handled.failed, tasks(&world).await), (0, 0, 0, 0));
}

#[tokio::test]
async fn a_run_that_the_install_refuses_is_a_problem_of_the_install_and_is_not_started_later() {
    let mut world = world().await;
    world.disable_install().disable(&globex(), &ReasonRequest { reason: "unpaid".into() }).await.unwrap();

    announces(&mut world, ON).await;
    let refused = runs(&mut world).await;
    let problems = problems(&world).await;
    world.enable_install().enable(&globex()).await.unwrap();

    assert!(problems.len() == 1 && problems[0].contains("`check`") && problems[0].contains("unpaid"), "{problems:?}");
    assert_eq!((refused, runs(&mut world).await), (vec![], vec![]));
}

#[tokio::test]
async fn a_runner_that_switches_all_roles_for_ever_starts_a_hundred_runs_in_an_hour() {
    let mut world = world().await;
    let all = |is_on: bool| ["deprovision", "maintenance", "provision"].map(|role| (role, is_on));

    // Nobody ends a run in these 90 minutes.
    for number in 0..45 {
        announces(&mut world, &all(number % 2 == 0)).await;
        world.handle_due_tasks().handle().await.unwrap();
    }
    let (open, problems) = (world.open().len(), problems(&world).await);
    world.settle().await;
    world.memory.advance_secs(3600);
    announces(&mut world, &all(false)).await;
    let handled = world.handle_due_tasks().handle().await.unwrap();

    assert_eq!(open, MAX_ROLE_RUNS);
    assert!(problems.iter().any(|problem| problem.contains("started 100 runs")), "{problems:?}");
    assert_eq!((handled.started, handled.skipped, world.open().len()), (3, 0, 3));
}

#[tokio::test]
async fn a_run_that_the_install_refuses_does_not_count() {
    let mut world = world().await;
    world.disable_install().disable(&globex(), &ReasonRequest { reason: "unpaid".into() }).await.unwrap();

    announces(&mut world, ON).await;
    let handled = world.handle_due_tasks().handle().await.unwrap();

    let counted = world.memory.rows().into_iter().find(|row| row.key.sk == "role-runs").unwrap().body;
    assert_eq!((handled.started, handled.skipped), (0, 1));
    assert_eq!(serde_json::from_str::<Value>(&counted).unwrap()["runs"], json!({}));
}

#[tokio::test]
async fn the_runs_for_which_a_call_has_no_time_are_left_to_the_next_call() {
    let mut world = world().await;
    announces(&mut world, &[("deprovision", true), ("maintenance", false), ("provision", true)]).await;
    let memory = Arc::clone(&world.memory);
    world.memory.faults.set(move |call| {
        if call == "start" {
            memory.advance_secs(20);
        }
        None
    });

    let mut handled = Vec::new();
    for _ in 0..3 {
        let counts = world.handle_due_tasks().handle().await.unwrap();
        handled.push((counts.started, counts.left, tasks(&world).await));
    }

    world.memory.faults.set(|_| None);
    assert_eq!(handled, [(1, 1, 1), (1, 1, 1), (1, 0, 0)]);
    assert_eq!(runs(&mut world).await, ["action:check", "action:check", "action:welcome"]);
}

#[tokio::test]
async fn the_reason_of_a_refused_run_stays_when_another_role_starts_the_same_action() {
    let mut world = world().await;
    announces(&mut world, &[("deprovision", true), ("maintenance", true), ("provision", true)]).await;
    // Another request has the id of the run for the first of the two roles, so this run is refused.
    let id = WorkflowId::derive("globex", &format!("role-enabled deprovision {} check", world.now().as_millis()));
    let deploy = read::list_workflows(&*world.memory, &globex(), None).await.unwrap().items.remove(0).workflow;
    let deploy = table::workflow(&*world.memory, &deploy).await.unwrap().value;
    let other = table::put_workflow(&Workflow { id, nodes: Vec::new(), ..deploy }, Expect::Absent).unwrap();
    let _ = world.memory.commit(vec![other]).await.unwrap();

    let started = runs(&mut world).await;

    let problems = problems(&world).await;
    assert_eq!(started, ["action:check"]);
    assert!(problems.len() == 1 && problems[0].contains("another request"), "{problems:?}");
}

#[tokio::test]
async fn a_run_removes_the_reason_of_an_earlier_run_and_not_that_of_a_later_one() {
    let mut world = world().await;
    for (action, role, secs) in [("check", ON, 60), ("welcome", BASE, 0)] {
        announces(&mut world, role).await;
        let due = Timestamp::from_millis(world.now().plus_secs(secs).as_millis() - 1);
        let skipped = SkippedRun { install: globex(), action: action.parse().unwrap(), due, reason: "unpaid".into() };
        let _ = world.memory.commit(vec![table::put(&skipped, Expect::Any).unwrap()]).await.unwrap();
    }

    let started = runs(&mut world).await;

    let problems = problems(&world).await;
    assert_eq!(started, ["action:check", "action:welcome"]);
    assert!(problems.len() == 1 && problems[0].contains("`check`"), "{problems:?}");
}

#[tokio::test]
async fn a_switch_that_was_announced_more_than_an_hour_ago_starts_nothing_and_is_a_problem() {
    let mut found = Vec::new();

    for secs in [3600, 3601] {
        let mut world = world().await;
        announces(&mut world, ON).await;
        world.memory.advance_secs(secs);
        let started = runs(&mut world).await;
        found.push((started.len(), problems(&world).await, tasks(&world).await));
    }

    let [(1, in_time, 0), (0, late, 0)] = &found[..] else { panic!("{found:?}") };
    assert_eq!(in_time, &[""; 0]);
    assert!(late.len() == 1 && late[0].contains("`check`") && late[0].contains("an hour ago"), "{late:?}");
}

#[tokio::test]
async fn a_forgotten_install_leaves_no_switches() {
    let mut world = world().await;
    announces(&mut world, ON).await;
    runs(&mut world).await;
    let is_its = |row: &Row| row.key.sk == "roles" || row.key.sk == "role-runs";
    let rows = |world: &World| world.memory.rows().into_iter().filter(is_its).count();
    let before = rows(&world);
    world.teardown(&TeardownInstallRequest::default(), "teardown-1").await.unwrap();
    world.settle().await;
    world.memory.advance_secs(2 * 3600);

    world.forget_install().forget(&globex(), &ForgetInstallRequest::default()).await.unwrap();
    world.forgotten().await;

    assert_eq!((before, rows(&world)), (2, 0));
}

/// Delivers the hello twice, and calls the schedule four times.
async fn happen(world: &mut World, hello: &str) {
    for _ in 0..2 {
        let _ = accept(world, hello).await;
    }
    for _ in 0..4 {
        let _ = world.handle_due_tasks().handle().await;
        world.settle().await;
    }
}

#[tokio::test]
async fn a_change_starts_its_action_once_whichever_call_fails() {
    let mut start = world().await;
    start.memory.advance_secs(120);
    let hello = hello(&mut start, switches(ON));
    let calls: Arc<Mutex<usize>> = Arc::default();
    let seen = Arc::clone(&calls);
    let mut world = start.copy();
    world.memory.faults.set(move |_| {
        *seen.lock().unwrap() += 1;
        None
    });
    happen(&mut world, &hello).await;
    let count = *calls.lock().unwrap();

    assert!(count > 20, "{count} calls");
    for at in 0..count {
        for fault in [Fault::Before, Fault::AnswerLost] {
            let mut world = start.copy();
            let mut left = at;
            world.memory.faults.set(move |_| {
                let now = left == 0;
                left = left.wrapping_sub(1);
                now.then_some(fault)
            });

            happen(&mut world, &hello).await;

            assert_eq!(world.runners["globex"].started, ["action:check"], "call {at} fails: {fault:?}");
            assert!(world.open().is_empty() && tasks(&world).await == 0, "call {at} fails: {fault:?}");
        }
    }
}
