//! Checks for drift: what they find, what a deploy makes of it, which requests are refused, and when a schedule starts them.

use std::collections::BTreeSet;

use freehold_app::install::set_inputs::SetInputs;
use freehold_app::ports::Row;
use freehold_app::sweep::handle_due_tasks::Handled;
use freehold_app::{Kind, read, table};
use freehold_domain::workflow::WorkflowKind;
use freehold_protocol::Timestamp;
use freehold_protocol::api::{DeployComponentsRequest, DetectDriftRequest, DriftView, HistoryEntry, ReasonRequest};
use freehold_protocol::order::{Mode, Order, Work};
use freehold_protocol::report::{Away, AwayReason, Outcome, ReportBody};
use freehold_protocol::{Envelope, JobId, WorkflowId};
use serde_json::json;

use crate::support::runner::Behaviour;
use crate::support::walk::Mail;
use crate::support::{World, app, drifts, globex, member, with_input};

pub(super) async fn drift(world: &World) -> Vec<(String, DriftView)> {
    let found = read::list_drift(&*world.memory, &globex()).await.unwrap();
    found.parts.into_iter().map(|part| (part.component.to_string(), part.drift)).collect()
}

/// Returns the state of the only part that was checked.
async fn state(world: &World) -> String {
    let [(_, only)] = &drift(world).await[..] else { panic!("{:?}", drift(world).await) };
    only.state.clone()
}

pub(super) fn only(name: &str) -> DetectDriftRequest {
    DetectDriftRequest { components: BTreeSet::from([name.parse().unwrap()]) }
}

fn checks(world: &World) -> usize {
    let started = world.memory.started.lock().unwrap();
    let ids: BTreeSet<_> =
        started.iter().filter(|(kind, _)| *kind == WorkflowKind::DetectDrift).map(|(_, id)| id.clone()).collect();
    ids.len()
}

pub(super) fn last_order(world: &World) -> Order {
    let orders = world.memory.orders.lock().unwrap();
    let order = |sent: &(String, String, String, String)| Envelope::parse(sent.3.as_bytes()).ok()?.peek::<Order>().ok();
    orders.iter().rev().find_map(order).unwrap()
}

pub(super) async fn started(world: &World) -> Handled {
    world.handle_due_tasks().handle().await.unwrap()
}

/// Returns every check that is due, whenever that is.
pub(super) async fn noted(world: &World) -> Vec<table::Due> {
    let later = Timestamp::from_millis(u64::MAX / 2);
    let due = table::due(&*world.memory, later, 10).await.unwrap().into_iter().map(|stored| stored.value);
    due.filter(|due| due.what == table::DueWhat::Drift).collect()
}

/// Returns a world whose `storage` is checked every hour, at the start of the minute in which the install's turn is.
async fn with_hourly_checks() -> World {
    let mut world = World::with_install().await;
    let mut version = app::document();
    version.components.iter_mut().for_each(|one| one.settings.drift_schedule = "0 * * * *".to_owned());
    world.sync(&version).await;
    world.deploy(&DeployComponentsRequest { all: true, ..Default::default() }, "deploy-1").await.unwrap();
    world.settle().await;
    started(&world).await;
    let later = Timestamp::from_millis(u64::MAX / 2);
    let due = table::due(&*world.memory, later, 10).await.unwrap().remove(0).value.time();
    world.memory.advance_secs(due.since(world.now()).div_ceil(1000));
    world
}

#[tokio::test]
async fn a_check_finds_what_differs_in_the_part_as_it_was_deployed_and_changes_no_part() {
    let mut world = World::with_install().await;
    world.runner("globex").started.clear();
    world.runner("globex").behaviours.insert("drift:storage".into(), drifts(&["aws_s3_bucket.a"]));

    let workflow = world.detect_drift(&DetectDriftRequest::default(), "drift-1").await.unwrap();
    world.settle().await;

    assert_eq!(world.node_states(&workflow).await, ["storage succeeded"]);
    assert_eq!(world.runners["globex"].started, ["drift:storage"], "the other kinds have no check");
    let order = last_order(&world);
    let Work::DetectDrift(check) = &order.work else { panic!("{}", order.work.kind()) };
    assert_eq!(
        (check.what.kind(), order.mode, order.group.as_str()),
        ("terraform_module", Mode::Maintenance, "component:storage.drift")
    );
    assert!(order.approval.is_none() && order.policies.is_empty());
    let (name, found) = drift(&world).await.remove(0);
    assert_eq!((name.as_str(), found.state.as_str(), found.workflow), ("storage", "drifted", workflow));
    assert_eq!(found.resources[0].resource.attributes, ["tags.Owner"]);
    let view = read::show_install(&world.versions(), &globex(), world.now()).await.unwrap();
    let storage = view.components.iter().find(|one| one.component.as_str() == "storage").unwrap();
    assert_eq!(storage.drift.as_ref().unwrap().state, "drifted");
    assert_eq!(storage.outputs["name"], "storage-out", "the outputs of the deploy stay");
}

#[tokio::test]
async fn a_deploy_repairs_what_differs_and_the_history_tells_both() {
    let mut world = World::with_install().await;
    world.memory.advance_secs(60);
    world.runner("globex").behaviours.insert("drift:storage".into(), drifts(&["aws_s3_bucket.a", "aws_s3_bucket.b"]));
    world.detect_drift(&DetectDriftRequest::default(), "drift-1").await.unwrap();
    world.settle().await;
    world.memory.advance_secs(60);

    let repair = DeployComponentsRequest { components: vec!["storage".parse().unwrap()], ..Default::default() };
    let deploy = world.deploy(&repair, "deploy-1").await.unwrap();
    world.settle().await;

    assert_eq!(state(&world).await, "unchecked");
    world.runner("globex").behaviours.clear();
    world.memory.advance_secs(60);
    world.detect_drift(&DetectDriftRequest::default(), "drift-2").await.unwrap();
    world.settle().await;
    assert_eq!(state(&world).await, "in_sync");
    let history = read::show_history(&*world.memory, &globex(), None, world.now()).await.unwrap();
    let of = |kind: &str| history.items.iter().filter(|one| one.kind == kind).cloned().collect::<Vec<HistoryEntry>>();
    let events: Vec<String> = of("drift").iter().map(|one| one.what.clone()).collect();
    assert_eq!(
        events,
        ["drift repaired by a deploy: 2 resources of `storage`", "drift found: 2 resources of `storage`"]
    );
    assert_eq!(of("drift")[0].workflow.as_ref(), Some(&deploy));
    let workflows: Vec<String> = of("workflow").iter().map(|one| format!("{} {}", one.what, one.result)).collect();
    assert_eq!(
        workflows,
        [
            "detect-drift succeeded",
            "deploy-components succeeded",
            "detect-drift succeeded",
            "provision-install succeeded"
        ]
    );
    assert_eq!(of("workflow")[0].by.as_ref(), Some(member()));
    assert!(history.items.is_sorted_by(|one, other| one.at >= other.at));
}

#[tokio::test]
async fn the_pages_of_a_history_have_each_entry_once() {
    let mut world = World::with_install().await;
    for at in 0..60 {
        world.runner("globex").behaviours.insert("drift:storage".into(), drifts(&["a"][..at % 2]));
        world.detect_drift(&DetectDriftRequest::default(), &format!("drift-{at}")).await.unwrap();
        world.settle().await;
        world.memory.advance_secs(60);
    }

    let mut pages = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let page = read::show_history(&*world.memory, &globex(), after.as_deref(), world.now()).await.unwrap();
        pages.push(page.items);
        let Some(next) = page.next else { break };
        after = Some(next);
    }

    let all = pages.concat();
    let workflows = all.iter().filter(|one| one.kind == "workflow").count();
    let drift: Vec<Timestamp> = all.iter().filter(|one| one.kind == "drift").map(|one| one.at).collect();
    assert_eq!((pages.len(), workflows, drift.len()), (2, 61, 20), "a part keeps its twenty newest events");
    assert!(all.is_sorted_by(|one, other| one.at >= other.at));
}

#[tokio::test]
async fn a_check_that_fails_leaves_the_drift_unknown_with_the_reason() {
    let mut world = World::with_install().await;
    let failed = Outcome::Failed { reason: "access denied".into(), partial: false };
    world.runner("globex").behaviours.insert("drift:storage".into(), Behaviour::Ends(failed));

    let workflow = world.detect_drift(&DetectDriftRequest::default(), "drift-1").await.unwrap();
    world.settle().await;

    assert_eq!(world.node_states(&workflow).await, ["storage failed"]);
    let (_, found) = drift(&world).await.remove(0);
    assert_eq!(found.state, "unknown");
    assert!(found.reason.ends_with("is failed: access denied"), "{}", found.reason);
}

#[tokio::test]
async fn a_result_that_cannot_be_read_is_unknown_and_a_huge_one_is_cut() {
    let mut world = World::with_install().await;
    let says = |found: serde_json::Value| {
        let outputs = [("drift".to_owned(), found)].into();
        Behaviour::Ends(Outcome::Succeeded { outputs, sensitive: Default::default(), artifact: None })
    };
    world.runner("globex").behaviours.insert("drift:storage".into(), says(json!("nothing")));
    world.detect_drift(&DetectDriftRequest::default(), "drift-1").await.unwrap();
    world.settle().await;
    assert_eq!(state(&world).await, "unknown");

    let many: Vec<_> =
        (0..60).map(|at| json!({ "address": format!("{at:03}{}", "x".repeat(250)), "change": "update" })).collect();
    world.runner("globex").behaviours.insert("drift:storage".into(), says(json!({ "resources": many })));
    world.detect_drift(&DetectDriftRequest::default(), "drift-2").await.unwrap();
    world.settle().await;

    let (_, found) = drift(&world).await.remove(0);
    assert_eq!((found.resources.len(), found.more, found.resources[0].resource.address.len()), (50, 10, 200));
}

#[tokio::test]
async fn the_result_of_a_part_that_was_deployed_meanwhile_is_dropped() {
    let mut world = World::with_install().await;
    world.runner("globex").behaviours.insert("drift:storage".into(), Behaviour::Hangs);
    world.detect_drift(&DetectDriftRequest::default(), "drift-1").await.unwrap();
    world.run().await;
    world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.run().await;

    let found = drifts(&["aws_s3_bucket.a"]);
    let Behaviour::Ends(outcome) = found else { panic!("an end") };
    let job = world.runners["globex"].attempts.keys().next().unwrap().clone();
    let now = world.now();
    for report in world.runner("globex").finish(&job, outcome, now) {
        world.post(Mail::Report(report, now));
    }
    world.settle().await;

    assert_eq!(drift(&world).await, []);
}

#[tokio::test]
async fn the_result_of_a_part_that_a_job_changes_is_dropped() {
    let mut world = World::with_install().await;
    world.runner("globex").behaviours.insert("drift:storage".into(), Behaviour::Hangs);
    world.detect_drift(&DetectDriftRequest::default(), "drift-1").await.unwrap();
    world.run().await;
    let check = world.runners["globex"].attempts.keys().next().unwrap().clone();
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::Hangs);
    let deploy = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.run().await;
    assert!(world.node_states(&deploy).await.contains(&"storage active".to_owned()));

    let Behaviour::Ends(outcome) = drifts(&["aws_s3_bucket.a"]) else { panic!("an end") };
    let now = world.now();
    for report in world.runner("globex").finish(&check, outcome, now) {
        world.post(Mail::Report(report, now));
    }
    world.run().await;

    assert_eq!(drift(&world).await, []);
}

#[tokio::test]
async fn a_part_whose_inputs_changed_is_not_checked_and_says_why() {
    let mut world = World::with_install().await;
    let request = serde_json::from_value(json!({ "inputs": { "days": 9 } })).unwrap();
    let set = SetInputs { store: world.memory.clone(), versions: world.versions(), clock: world.memory.clone() };
    set.set(&globex(), &request).await.unwrap();

    let workflow = world.detect_drift(&DetectDriftRequest::default(), "drift-1").await.unwrap();
    world.settle().await;

    assert_eq!(world.node_states(&workflow).await, [""; 0]);
    let (_, found) = drift(&world).await.remove(0);
    assert_eq!(found.state, "unknown");
    assert!(found.reason.contains("that `storage` reads have changed since its deploy"), "{}", found.reason);
}

#[tokio::test]
async fn the_same_request_again_is_the_same_check_and_a_second_one_waits_for_the_first() {
    let mut world = World::with_install().await;
    world.runner("globex").behaviours.insert("drift:storage".into(), Behaviour::Hangs);
    let first = world.detect_drift(&DetectDriftRequest::default(), "drift-1").await.unwrap();
    world.run().await;

    let again = world.detect_drift(&DetectDriftRequest::default(), "drift-1").await.unwrap();
    let second = world.detect_drift(&DetectDriftRequest::default(), "drift-2").await.unwrap_err();

    assert_eq!((again, checks(&world)), (first.clone(), 1));
    assert_eq!(second.kind, Kind::Conflict);
    assert_eq!(
        second.message,
        format!("the drift of install `globex` is being checked by `{first}`; wait for it or cancel it")
    );
}

#[tokio::test]
async fn what_cannot_be_checked_is_refused_by_name_and_stores_nothing() {
    let world = World::with_install().await;
    let before = world.memory.rows();

    let absent = world.detect_drift(&only("nothing"), "drift-1").await.unwrap_err();
    let kind = world.detect_drift(&only("settings"), "drift-2").await.unwrap_err();
    let stack = world.detect_drift(&only("info"), "drift-3").await.unwrap_err();

    assert_eq!((absent.kind, kind.kind, stack.kind), (Kind::Conflict, Kind::Invalid, Kind::Invalid));
    assert_eq!(absent.message, "`nothing` is not deployed, so there is nothing to check");
    assert!(kind.message.contains("`settings` cannot be checked: an image is named by its digest"), "{kind}");
    assert!(stack.message.contains("a change set compares templates"), "{stack}");
    assert_eq!(world.memory.rows(), before);
}

#[tokio::test]
async fn no_check_starts_while_a_deploy_changes_the_install() {
    let (world, deploy) = World::deploying(Behaviour::Hangs).await;

    let error = world.detect_drift(&DetectDriftRequest::default(), "drift-1").await.unwrap_err();

    assert_eq!((error.kind, error.message.contains(&deploy.to_string())), (Kind::Conflict, true), "{error}");
}

#[tokio::test]
async fn a_check_holds_no_install_and_a_deploy_starts_beside_it() {
    let mut world = World::with_install().await;
    world.runner("globex").behaviours.insert("drift:storage".into(), Behaviour::Hangs);
    world.detect_drift(&DetectDriftRequest::default(), "drift-1").await.unwrap();
    world.run().await;

    let deploy = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.run().await;

    assert!(world.node_states(&deploy).await.iter().all(|node| node.ends_with("succeeded")));
}

#[tokio::test]
async fn each_hour_one_check_starts_however_often_the_call_is_repeated() {
    let mut world = with_hourly_checks().await;

    let mut counts = Vec::new();
    for _ in 0..3 {
        counts.push((started(&world).await.started, started(&world).await.started));
        world.settle().await;
        world.memory.advance_secs(3600);
    }

    assert_eq!((counts, checks(&world)), (vec![(1, 0), (1, 0), (1, 0)], 3));
    let id = world.memory.started.lock().unwrap().last().unwrap().1.clone();
    assert_eq!(world.workflow(&id).await.asked_by.unwrap().to_string(), "schedule");
}

#[tokio::test]
async fn what_a_check_wrote_is_kept_for_ninety_days_and_a_deploy_for_ever() {
    let mut world = with_hourly_checks().await;
    started(&world).await;
    world.settle().await;
    world.memory.advance_secs(3600);
    let _ = world.sweeper().sweep().await.unwrap();
    let check = world.memory.started.lock().unwrap().last().unwrap().1.clone();
    let jobs: Vec<String> =
        world.workflow(&check).await.nodes.iter().map(|node| JobId::derive(&check, &node.name).to_string()).collect();
    let of_check = |row: &&Row| {
        let is_of = |id: &String| row.key.pk.contains(id) || row.key.sk.contains(id);
        !row.key.sk.starts_with("log#") && (is_of(&check.to_string()) || jobs.iter().any(is_of))
    };
    let names = |rows: &[Row], of_check: &dyn Fn(&&Row) -> bool| -> Vec<String> {
        rows.iter().filter(of_check).map(|row| format!("{} {}", row.key.pk, row.key.sk)).collect()
    };
    let before = world.memory.rows();

    world.memory.advance_secs(89 * 24 * 3600);
    world.memory.delete_expired();
    let later = world.memory.rows();
    world.memory.advance_secs(24 * 3600);
    world.memory.delete_expired();
    let after = world.memory.rows();

    let of_deploy = |row: &&Row| {
        let is_of_work = ["job#", "workflow#"].iter().any(|pk| row.key.pk.starts_with(pk));
        is_of_work && !of_check(row) && !row.key.sk.starts_with("log#")
    };
    assert!(names(&before, &of_deploy).len() >= 5, "{:?}", names(&before, &of_deploy));
    assert!(names(&before, &of_check).len() >= 5, "{:?}", names(&before, &of_check));
    assert_eq!(names(&later, &of_check), names(&before, &of_check));
    assert_eq!(names(&after, &of_check), [""; 0]);
    assert_eq!(names(&after, &of_deploy), names(&before, &of_deploy));
    assert_eq!(state(&world).await, "in_sync");
    started(&world).await;
    world.memory.advance_secs(3600);
    world.hello("globex");
    world.run().await;
    started(&world).await;
    world.settle().await;
    assert_eq!(checks(&world), 2);
}

#[tokio::test]
async fn a_check_whose_rows_are_gone_in_part_disturbs_nothing() {
    let mut world = with_hourly_checks().await;
    started(&world).await;
    world.settle().await;
    let check = world.memory.started.lock().unwrap().last().unwrap().1.clone();
    let pk = table::workflow_pk(&check);
    let rows: Vec<Row> = world.memory.rows().into_iter().filter(|row| row.key.pk == pk).collect();
    assert_eq!(rows.len(), 2, "{rows:?}");

    for row in rows {
        let gone = freehold_app::ports::Write::Delete { key: row.key.clone() };
        let _ = freehold_app::ports::Store::commit(&*world.memory, vec![gone]).await.unwrap();

        let workflows = read::list_workflows(&*world.memory, &globex(), None).await.unwrap().items;
        assert!(!workflows.is_empty() && workflows.iter().all(|one| one.workflow != check), "{workflows:?}");
        read::show_install(&world.versions(), &globex(), world.now()).await.unwrap();
        let back = freehold_app::ports::Write::Put {
            key: row.key,
            body: row.body,
            expect: freehold_app::ports::Expect::Any,
            expires: None,
        };
        let _ = freehold_app::ports::Store::commit(&*world.memory, vec![back]).await.unwrap();
    }
}

#[tokio::test]
async fn a_check_whose_next_minute_was_not_noted_is_not_started_again() {
    let mut world = with_hourly_checks().await;
    let before = noted(&world).await.remove(0);
    started(&world).await;
    world.settle().await;

    // As after a crash between the start of the check and the note of the next one.
    let lost = table::put(&before, freehold_app::ports::Expect::Any).unwrap();
    let _ = freehold_app::ports::Store::commit(&*world.memory, vec![lost]).await.unwrap();
    started(&world).await;
    world.settle().await;

    assert_eq!(checks(&world), 1);
    assert_eq!(noted(&world).await.len(), 1);
}

#[tokio::test]
async fn scheduled_checks_do_not_pile_up() {
    let mut world = with_hourly_checks().await;
    world.runner("globex").behaviours.insert("drift:storage".into(), Behaviour::Hangs);
    let first = started(&world).await;
    world.run().await;

    world.memory.advance_secs(600);
    let none = started(&world).await;
    world.memory.advance_secs(3000);
    let second = started(&world).await;

    assert_eq!((first.started, none), (1, Handled::default()));
    assert_eq!((second, checks(&world)), (Handled { skipped: 1, ..Handled::default() }, 1));
}

#[tokio::test]
async fn an_install_whose_runner_is_away_or_that_is_disabled_is_not_checked_until_it_is_back() {
    let mut world = with_hourly_checks().await;
    let away = Away { reason: AwayReason::SwitchedOff, detail: "because".into() };
    let runner = &world.runners["globex"];
    let report = runner.sign(&runner.report(ReportBody::Away(away), world.now()));
    let now = world.now();
    world.post(Mail::Report(report, now));
    world.run().await;
    let paused = started(&world).await;
    world.hello("globex");
    world.run().await;
    world.disable_install().disable(&globex(), &ReasonRequest { reason: "unpaid".into() }).await.unwrap();
    world.memory.advance_secs(3600);
    let disabled = started(&world).await;
    world.enable_install().enable(&globex()).await.unwrap();
    world.memory.advance_secs(3600);
    world.hello("globex");
    world.run().await;

    let back = started(&world).await;

    assert_eq!((paused.skipped, disabled.skipped, back.started, checks(&world)), (1, 1, 1, 1));
}

#[tokio::test]
async fn a_check_of_a_silent_runner_ends_after_an_hour_as_unknown() {
    let mut world = World::with_install().await;
    world.runner("globex").behaviours.insert("drift:storage".into(), Behaviour::Ignores);
    let workflow: WorkflowId = world.detect_drift(&DetectDriftRequest::default(), "drift-1").await.unwrap();
    world.run().await;

    for _ in 0..30 {
        world.memory.advance_secs(600);
        world.hello("globex");
        world.settle().await;
        let _ = world.sweeper().sweep().await;
        world.settle().await;
    }

    assert!(world.workflow(&workflow).await.state.is_terminal());
    assert_eq!(state(&world).await, "unknown");
}
