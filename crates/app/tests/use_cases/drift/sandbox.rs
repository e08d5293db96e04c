//! Drift of the sandbox: the role of a check, what a deploy repairs, what a schedule starts, and the tool that has no check.

use freehold_app::{Kind, read};
use freehold_protocol::ComponentName;
use freehold_protocol::api::{DeployComponentsRequest, DetectDriftRequest, DriftView};
use freehold_protocol::app_version::AppVersion;
use freehold_protocol::order::{Mode, Work};
use freehold_protocol::report::{Block, Outcome};
use serde_json::{Value, json};

use super::detect_drift::{drift, last_order, noted, only, started};
use crate::support::runner::Behaviour;
use crate::support::{World, app, drifts, globex};

const SANDBOX: &str = "drift:sandbox";

/// The app with a sandbox of this tool, which is checked every hour.
fn document(tool: &Value) -> AppVersion {
    let mut document = app::document();
    let sandbox = json!({
        "tool": tool,
        "source": { "from": "image", "reference": "example/sandbox:1" },
        "drift_schedule": "0 * * * *",
    });
    document.sandbox = Some(serde_json::from_value(sandbox).unwrap());
    document
}

/// Returns a world in which this app is provisioned.
async fn provision(tool: &Value) -> World {
    let mut world = World::with_app().await;
    world.sync(&document(tool)).await;
    world.build("build-2").await;
    world.settle().await;
    world.create().await;
    world.run().await;
    world.hello("globex");
    world.settle().await;
    world.runner("globex").started.clear();
    world
}

async fn with_terraform() -> World {
    provision(&json!({ "tool": "terraform", "version": "1.9.0" })).await
}

/// Checks the sandbox, and returns what is known of its drift then.
async fn check_sandbox(world: &mut World, cause: &str) -> DriftView {
    world.detect_drift(&only("sandbox"), cause).await.unwrap();
    world.settle().await;
    of_sandbox(world).await
}

async fn of_sandbox(world: &World) -> DriftView {
    drift(world).await.into_iter().find(|(name, _)| name == "sandbox").unwrap().1
}

#[tokio::test]
async fn a_check_of_the_whole_install_looks_at_the_sandbox_under_provision() {
    let mut world = with_terraform().await;
    world.runner("globex").behaviours.insert(SANDBOX.into(), drifts(&["aws_vpc.main"]));

    world.detect_drift(&DetectDriftRequest::default(), "drift-1").await.unwrap();
    world.settle().await;

    let mut jobs = world.runners["globex"].started.clone();
    jobs.sort();
    assert_eq!(jobs, [SANDBOX, "drift:storage"]);
    let found = of_sandbox(&world).await;
    assert_eq!((found.state.as_str(), found.resources[0].resource.address.as_str()), ("drifted", "aws_vpc.main"));
    let alone = check_sandbox(&mut world, "drift-2").await;
    let order = last_order(&world);
    let Work::DetectDrift(check) = &order.work else { panic!("{}", order.work.kind()) };
    assert_eq!((check.what.kind(), order.mode, order.group.as_str()), ("sandbox", Mode::Provision, "sandbox.drift"));
    assert!(order.approval.is_none() && order.policies.is_empty());
    assert_eq!((alone.state.as_str(), alone.resources[0].since), ("drifted", found.resources[0].since));
    let view = read::show_install(&world.versions(), &globex(), world.now()).await.unwrap();
    let sandbox = view.components.iter().find(|one| one.component.is_sandbox()).unwrap();
    assert_eq!(sandbox.drift.as_ref().unwrap().state, "drifted");
    assert_eq!(sandbox.outputs["name"], "sandbox-out", "the outputs of the deploy stay");
}

#[tokio::test]
async fn a_deploy_of_the_sandbox_repairs_its_drift() {
    let mut world = with_terraform().await;
    world.runner("globex").behaviours.insert(SANDBOX.into(), drifts(&["aws_vpc.main"]));
    check_sandbox(&mut world, "drift-1").await;
    world.memory.advance_secs(60);

    let repair = DeployComponentsRequest { components: vec![ComponentName::sandbox()], ..Default::default() };
    world.deploy(&repair, "deploy-1").await.unwrap();
    world.settle().await;

    assert_eq!(of_sandbox(&world).await.state, "unchecked");
    world.memory.advance_secs(60);
    world.runner("globex").behaviours.clear();
    assert_eq!(check_sandbox(&mut world, "drift-2").await.state, "in_sync");
    let history = read::show_history(&*world.memory, &globex(), None, world.now()).await.unwrap();
    let repaired = history.items.iter().filter(|one| one.what == "drift repaired by a deploy: 1 resource of `sandbox`");
    assert_eq!(repaired.count(), 1, "{:?}", history.items);
}

#[tokio::test]
async fn the_schedule_of_the_sandbox_starts_a_check_of_the_sandbox_alone() {
    let mut world = with_terraform().await;
    started(&world).await;
    let due = noted(&world).await.remove(0).time();
    world.memory.advance_secs(due.since(world.now()).div_ceil(1000));

    let counts = (started(&world).await.started, started(&world).await.started);
    world.settle().await;

    assert_eq!(counts, (1, 0));
    assert_eq!(world.runners["globex"].started, [SANDBOX]);
}

#[tokio::test]
async fn the_drift_is_unknown_while_the_customer_has_switched_provision_off() {
    let mut world = with_terraform().await;
    let off = Outcome::Blocked { block: Block::ModeDisabled, reason: "mode `provision` is off".into() };
    world.runner("globex").behaviours.insert(SANDBOX.into(), Behaviour::Ends(off));

    let found = check_sandbox(&mut world, "drift-1").await;

    assert_eq!(found.state, "unknown");
    assert!(found.reason.ends_with("is blocked: mode `provision` is off"), "{}", found.reason);
}

#[tokio::test]
async fn a_sandbox_of_pulumi_has_no_check() {
    let mut world = provision(&json!({ "tool": "pulumi", "runtime": "go", "version": "" })).await;

    let named = world.detect_drift(&only("sandbox"), "drift-1").await.unwrap_err();
    world.detect_drift(&DetectDriftRequest::default(), "drift-2").await.unwrap();
    world.settle().await;

    assert_eq!(named.kind, Kind::Invalid);
    assert!(named.message.starts_with("the drift of `sandbox` cannot be checked: a preview"), "{named}");
    assert_eq!(world.runners["globex"].started, ["drift:storage"]);
}
