//! Health checks apart from deploys: what they ask and find, which requests are refused, and when a schedule starts them.

use std::collections::BTreeSet;

use freehold_app::contract::terms;
use freehold_app::{Kind, read, table};
use freehold_domain::workflow::WorkflowKind;
use freehold_protocol::api::{CheckHealthRequest, DeployComponentsRequest, HealthView, ReasonRequest};
use freehold_protocol::app_version::AppVersion;
use freehold_protocol::order::health::{Health, HealthState, OUTPUT};
use freehold_protocol::order::{Order, Work};
use freehold_protocol::report::Outcome;
use freehold_protocol::{Digest, Envelope, Timestamp, WorkflowId};
use serde_json::json;

use crate::support::runner::Behaviour;
use crate::support::walk::Mail;
use crate::support::{World, app, asked_with, client, globex, with_input};

/// Returns a world in which `storage` is deployed and healthy.
async fn deployed() -> World {
    let mut world = World::with_health(true).await;
    world.deploy(&DeployComponentsRequest::default(), "deploy-1").await.unwrap();
    world.settle().await;
    world.runner("globex").started.clear();
    world.memory.started.lock().unwrap().clear();
    world
}

async fn check(world: &World, only: &[&str], cause: &str) -> Result<WorkflowId, freehold_app::AppError> {
    let components = only.iter().map(|name| name.parse().unwrap()).collect();
    let (check, request) = (world.check_health(), CheckHealthRequest { components });
    client(async || check.check(&globex(), &request, asked_with(cause)).await).await
}

/// Lets the runner find this.
fn finds(world: &mut World, state: HealthState, reason: &str) {
    let value = serde_json::to_value(Health::new(state, reason)).unwrap();
    let outputs = [(OUTPUT.to_owned(), value)].into();
    let outcome = Outcome::Succeeded { outputs, sensitive: Default::default(), artifact: None };
    world.runner("globex").behaviours.insert("health:storage".into(), Behaviour::Ends(outcome));
}

async fn health(world: &World) -> HealthView {
    let view = read::show_install(&world.versions(), &globex(), world.now()).await.unwrap();
    view.components.into_iter().find(|one| one.component.as_str() == "storage").unwrap().health.unwrap()
}

fn last_order(world: &World) -> Order {
    let orders = world.memory.orders.lock().unwrap();
    let order = |sent: &(String, String, String, String)| Envelope::parse(sent.3.as_bytes()).ok()?.peek::<Order>().ok();
    orders.iter().rev().find_map(order).unwrap()
}

fn checks(world: &World) -> usize {
    let started = world.memory.started.lock().unwrap();
    let of_kind = started.iter().filter(|(kind, _)| *kind == WorkflowKind::CheckHealth);
    of_kind.map(|(_, id)| id.clone()).collect::<BTreeSet<_>>().len()
}

#[tokio::test]
async fn a_check_asks_what_can_be_asked_and_says_since_when_it_is_so() {
    let mut world = deployed().await;
    let before = health(&world).await;
    world.memory.advance_secs(600);
    finds(&mut world, HealthState::Unhealthy, "probe `up`: the answer is 503");

    let workflow = check(&world, &[], "check-1").await.unwrap();
    let broken_at = world.now();
    world.settle().await;

    assert_eq!(before.state, HealthState::Healthy);
    assert_eq!(world.node_states(&workflow).await, ["health:storage succeeded"]);
    let after = health(&world).await;
    assert_eq!((after.state, after.reason.as_str()), (HealthState::Unhealthy, "probe `up`: the answer is 503"));
    assert!(after.since >= broken_at && after.at >= after.since, "{after:?}");
    let order = last_order(&world);
    let Work::Health(asked) = &order.work else { panic!("{}", order.work.kind()) };
    assert_eq!(
        (asked.hold_secs, asked.limit_secs, asked.gate),
        (0, 30, false),
        "the check is not a gate, although that of a deploy is"
    );
    assert_eq!((order.group.as_str(), order.approval.is_none()), ("health:storage.check", true));
    let view = read::show_install(&world.versions(), &globex(), world.now()).await.unwrap();
    assert_eq!(view.health.unwrap().state, HealthState::Unhealthy);
}

#[tokio::test]
async fn the_list_of_installs_has_the_health_of_each() {
    let mut world = deployed().await;
    finds(&mut world, HealthState::Unhealthy, "probe `up`: the answer is 503");
    check(&world, &[], "check-1").await.unwrap();
    world.settle().await;

    let list = read::list_installs(&*world.memory, None, world.now(), &|_| true).await.unwrap();

    let shown = read::show_install(&world.versions(), &globex(), world.now()).await.unwrap();
    let globex = list.items.into_iter().find(|one| one.install == globex()).unwrap();
    assert_eq!(globex.health.as_ref().map(|health| health.state), Some(HealthState::Unhealthy));
    assert_eq!(globex.health, shown.health);
}

#[tokio::test]
async fn what_is_healthy_stays_so_since_the_first_check_and_a_repeated_request_starts_nothing() {
    let mut world = deployed().await;
    let before = health(&world).await;
    world.memory.advance_secs(600);

    let first = check(&world, &["storage"], "check-1").await.unwrap();
    world.settle().await;
    let again = check(&world, &["storage"], "check-1").await.unwrap();
    world.settle().await;

    let after = health(&world).await;
    assert_eq!((first, checks(&world)), (again, 1));
    assert_eq!((after.state, after.since), (HealthState::Healthy, before.since));
    assert!(after.at > before.at);
}

/// Returns the state of `storage` after a check that began before a deploy found it away. `deploy` is how the deploy of
/// `storage` behaves; with `None`, it succeeds.
async fn state_after_a_check_that_a_deploy_overtook(deploy: Option<Behaviour>) -> HealthState {
    let mut world = deployed().await;
    world.runner("globex").behaviours.insert("health:storage".into(), Behaviour::Hangs);
    check(&world, &[], "check-1").await.unwrap();
    world.run().await;
    let job = world.runners["globex"].attempts.keys().last().unwrap().clone();
    world.runner("globex").behaviours.remove("health:storage");
    if let Some(behaviour) = deploy {
        world.runner("globex").behaviours.insert("storage".into(), behaviour);
    }
    world.deploy(&with_input("days", 9), "deploy-2").await.unwrap();
    world.run().await;

    finds(&mut world, HealthState::Unhealthy, "probe `up`: nothing listens");
    let Some(Behaviour::Ends(outcome)) = world.runner("globex").behaviours.remove("health:storage") else { panic!() };
    let now = world.now();
    for report in world.runner("globex").finish(&job, outcome, now) {
        world.post(Mail::Report(report, now));
    }
    world.run().await;
    health(&world).await.state
}

#[tokio::test]
async fn a_component_that_a_deploy_replaces_meanwhile_is_not_called_unhealthy() {
    assert_eq!(state_after_a_check_that_a_deploy_overtook(Some(Behaviour::Hangs)).await, HealthState::Healthy);
    assert_eq!(state_after_a_check_that_a_deploy_overtook(None).await, HealthState::Healthy);
    let fails = Behaviour::Ends(Outcome::Failed { reason: "access denied".into(), partial: true });
    assert_eq!(state_after_a_check_that_a_deploy_overtook(Some(fails)).await, HealthState::Healthy);
}

#[tokio::test]
async fn a_gate_that_a_check_found_healthy_is_not_asked_again() {
    let mut world = World::with_health(true).await;
    world.runner("globex").behaviours.insert("health:storage".into(), crate::support::runner::sick());
    world.deploy(&DeployComponentsRequest::default(), "deploy-1").await.unwrap();
    world.settle().await;
    world.runner("globex").behaviours.clear();
    world.runner("globex").started.clear();

    check(&world, &[], "check-1").await.unwrap();
    world.settle().await;
    world.deploy(&DeployComponentsRequest::default(), "deploy-2").await.unwrap();
    world.settle().await;

    assert_eq!(world.runners["globex"].started, ["health:storage", "info"]);
}

/// Returns the version of [`deployed`] with another command.
fn with_command(command: &str) -> AppVersion {
    let mut version = app::with_health(true);
    for health in version.components.iter_mut().filter_map(|component| component.settings.health.as_mut()) {
        health.probes = vec![json!({ "type": "exec", "command": [command] })];
    }
    version
}

/// Returns the commands of the last order, and the digest of its terms.
fn last_commands(world: &World) -> (Vec<Vec<String>>, Digest) {
    let order = last_order(world);
    let Work::Health(asked) = &order.work else { panic!("{}", order.work.kind()) };
    (asked.commands().map(<[String]>::to_vec).collect(), order.terms.unwrap().digest)
}

#[tokio::test]
async fn a_component_of_which_only_the_check_is_new_is_checked_as_the_deployed_version_says() {
    let mut world = deployed().await;
    let other = with_command("other");
    world.sync(&other).await;
    world.deploy(&DeployComponentsRequest::default(), "deploy-2").await.unwrap();
    world.settle().await;
    let started = world.runners["globex"].started.clone();

    check(&world, &[], "check-1").await.unwrap();
    world.settle().await;

    assert!(!started.contains(&"storage".to_owned()), "{started:?}");
    assert_eq!(last_commands(&world), (vec![vec!["other".to_owned()]], terms::digest(&other).unwrap()));
}

#[tokio::test]
async fn a_component_that_was_deployed_alone_since_is_checked_as_its_own_version_says() {
    let mut world = deployed().await;
    let later = with_command("later");
    world.sync(&later).await;
    let only = DeployComponentsRequest { components: vec!["storage".parse().unwrap()], ..Default::default() };
    world.deploy(&only, "deploy-2").await.unwrap();
    world.settle().await;

    check(&world, &[], "check-1").await.unwrap();
    world.settle().await;

    assert_eq!(last_commands(&world), (vec![vec!["later".to_owned()]], terms::digest(&later).unwrap()));
}

#[tokio::test]
async fn a_check_is_refused_with_its_reason() {
    let world = deployed().await;
    let refused = async |world: &World, only: &[&str]| check(world, only, "check-1").await.unwrap_err();

    let nothing = refused(&world, &["info"]).await;
    let absent = refused(&world, &["cache"]).await;
    let never = refused(&World::with_install().await, &[]).await;
    world.deploy(&with_input("days", 9), "deploy-2").await.unwrap();
    let live = refused(&world, &[]).await;
    let one = deployed().await;
    check(&one, &[], "first").await.unwrap();
    let other = refused(&one, &[]).await;

    for (error, kind, text) in [
        (nothing, Kind::Invalid, "`info` has no health check: its config has no `health`, or its type"),
        (absent, Kind::Conflict, "`cache` is not deployed, so its health cannot be checked"),
        (
            never,
            Kind::Conflict,
            "no deployed component of install `globex` has a health check; add `[health]` to a component",
        ),
        (live, Kind::Conflict, "install `globex` is being worked on by `wf_"),
        (other, Kind::Conflict, "the health of install `globex` is being checked by `wf_"),
    ] {
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.message.starts_with(text), "{error}");
    }
}

#[tokio::test]
async fn a_schedule_checks_once_for_each_hour_and_not_beside_a_deploy_or_in_a_disabled_install() {
    let mut world = World::with_install().await;
    let mut version = app::with_health(false);
    for component in &mut version.components {
        component.settings.health.iter_mut().for_each(|health| health.schedule = "0 * * * *".to_owned());
    }
    world.sync(&version).await;
    world.build("build-2").await;
    world.settle().await;
    world.deploy(&DeployComponentsRequest::default(), "deploy-1").await.unwrap();
    world.settle().await;
    world.handle_due_tasks().handle().await.unwrap();
    let due = async |world: &World| {
        let later = Timestamp::from_millis(u64::MAX / 2);
        let tasks = table::due(&*world.memory, later, 10).await.unwrap();
        tasks.into_iter().find(|one| matches!(one.value.what, table::DueWhat::Health)).unwrap().value.time()
    };

    let mut counts = Vec::new();
    for hour in 0..4_u64 {
        let at = due(&world).await;
        world.memory.advance_secs(at.since(world.now()).div_ceil(1000));
        world.hello("globex");
        world.run().await;
        match hour {
            1 => drop(world.deploy(&with_input("days", 9), "deploy-2").await.unwrap()),
            2 => {
                let unpaid = ReasonRequest { reason: "unpaid".to_owned() };
                world.disable_install().disable(&globex(), &unpaid).await.unwrap();
            }
            3 => world.enable_install().enable(&globex()).await.unwrap(),
            _ => {}
        }
        let first = world.handle_due_tasks().handle().await.unwrap();
        let second = world.handle_due_tasks().handle().await.unwrap();
        counts.push((first.started + second.started, first.skipped + second.skipped));
        world.settle().await;
    }

    assert_eq!(counts, [(1, 0), (0, 1), (0, 1), (1, 0)]);
    assert_eq!(health(&world).await.state, HealthState::Healthy);
}
