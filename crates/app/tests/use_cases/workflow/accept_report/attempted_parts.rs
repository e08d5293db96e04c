//! Parts whose first deploy did not succeed: a teardown removes them if the deploy may have made something.

use freehold_app::read;
use freehold_app::table;
use freehold_domain::plan::Deployed;
use freehold_protocol::api::{DeployComponentsRequest, ForgetInstallRequest, TeardownInstallRequest};
use freehold_protocol::app_version::AppVersion;
use freehold_protocol::order::{Mode, Order, Work};
use freehold_protocol::report::{Block, Outcome};
use freehold_protocol::{Envelope, Payload as _, WorkflowId};
use serde_json::{Value, json};

use crate::support::runner::{Behaviour, subject};
use crate::support::{LOST_SECS, World, app, globex, member};

/// The app with a sandbox and a component of each kind that a teardown treats differently. Each may be switched off.
fn document() -> AppVersion {
    let mut document = app::document();
    document.actions.clear();
    document.sandbox = Some(
        serde_json::from_value(json!({
            "tool": { "tool": "terraform", "version": "1.9.0" },
            "source": { "from": "image", "reference": "example/sandbox:1" },
        }))
        .unwrap(),
    );
    let specs = [
        ("chart", json!({ "kind": "helm_chart", "chart_name": "chart", "namespace": "n" })),
        ("manifest", json!({ "kind": "kubernetes_manifest", "namespace": "n", "manifest": "kind: A" })),
        ("module", json!({ "kind": "terraform_module", "terraform_version": "1.9.0" })),
        ("stack", json!({ "kind": "cloudformation_stack", "stack_name": "stack" })),
    ];
    let component = |(name, spec)| {
        serde_json::from_value(json!({
            "name": name, "deploy_timeout_secs": 600, "spec": spec, "settings": { "toggle": true },
            "source": { "from": "image", "reference": format!("example/{name}:1") },
        }))
        .unwrap()
    };
    document.components = specs.into_iter().map(component).collect();
    document
}

/// The app in which the kinds get another artifact.
fn second() -> AppVersion {
    let mut document = document();
    for component in &mut document.components {
        component.source =
            freehold_protocol::order::Source::Image { reference: format!("example/{}:2", component.name) };
    }
    document
}

fn half() -> Behaviour {
    Behaviour::Ends(Outcome::Failed { reason: "exit status 1".into(), partial: true })
}

fn blocked() -> Behaviour {
    Behaviour::Ends(Outcome::Blocked { block: Block::ModeDisabled, reason: "the mode is off".into() })
}

/// Returns a world in which the runner of `globex` treats its first deploy of `document` like this.
async fn tried(document: &AppVersion, behaviours: &[(&str, Behaviour)]) -> (World, WorkflowId) {
    let mut world = World::new();
    world.enrol().await;
    world.hello("build");
    sync(&mut world, document, "1").await;
    let workflow = world.create().await;
    world.run().await;
    behave(&mut world, behaviours);
    world.hello("globex");
    world.run().await;
    (world, workflow)
}

async fn sync(world: &mut World, document: &AppVersion, cause: &str) {
    world.sync(document).await;
    world.settle().await;
    world.build(&format!("build-{cause}")).await;
    world.settle().await;
}

fn behave(world: &mut World, behaviours: &[(&str, Behaviour)]) {
    let runner = world.runner("globex");
    runner.behaviours = behaviours.iter().map(|(name, one)| ((*name).to_owned(), one.clone())).collect();
}

async fn parts(world: &World) -> Vec<Deployed> {
    table::parts(&*world.memory, &globex()).await.unwrap().into_values().collect()
}

/// Returns the names of the parts that were only attempted.
async fn attempted(world: &World) -> Vec<String> {
    parts(world).await.into_iter().filter(|one| one.attempted).map(|one| one.component.to_string()).collect()
}

async fn deploy(world: &mut World, cause: &str) -> WorkflowId {
    let workflow = world.deploy(&DeployComponentsRequest::default(), cause).await.unwrap();
    world.settle().await;
    workflow
}

/// Tears down without failures. Returns the states of the nodes.
async fn teardown(world: &mut World, request: &TeardownInstallRequest, cause: &str) -> Vec<String> {
    behave(world, &[]);
    let workflow = world.teardown(request, cause).await.unwrap();
    world.settle().await;
    world.node_states(&workflow).await
}

fn everything() -> TeardownInstallRequest {
    TeardownInstallRequest::default()
}

fn of(component: &str) -> TeardownInstallRequest {
    TeardownInstallRequest { component: Some(component.parse().unwrap()), ..everything() }
}

fn orders(world: &World) -> Vec<Order> {
    let sent = world.memory.orders.lock().unwrap();
    let envelopes = sent.iter().map(|(_, _, _, body)| Envelope::parse(body.as_bytes()).unwrap());
    envelopes.filter(|one| one.payload_type == Order::TYPE).map(|one| one.peek::<Order>().unwrap()).collect()
}

/// Returns the work of the last order about `name`.
fn last_work(world: &World, name: &str) -> Work {
    orders(world).into_iter().map(|order| order.work).rfind(|work| subject(work) == name).unwrap()
}

#[tokio::test]
async fn a_component_of_each_kind_that_failed_half_way_is_removed_alone_and_with_everything() {
    for name in ["chart", "manifest", "module", "stack"] {
        let (world, _) = tried(&document(), &[(name, half())]).await;
        for request in [of(name), everything()] {
            let mut world = world.copy();

            let states = teardown(&mut world, &request, "down-1").await;

            assert!(states.contains(&format!("{name} succeeded")), "{states:?}");
            let Work::Remove(removed) = last_work(&world, &format!("remove:{name}")) else { panic!("no removal") };
            assert_eq!(*removed.what, last_work(&world, name), "it removes what was ordered");
            assert_eq!(attempted(&world).await, [""; 0]);
            assert_eq!(parts(&world).await.len(), if request == everything() { 0 } else { 4 });
        }
    }
}

#[tokio::test]
async fn a_sandbox_that_failed_half_way_is_removed_and_is_not_there_for_a_deploy() {
    let (mut world, _) = tried(&document(), &[("sandbox", half())]).await;
    let mut alone = world.copy();
    assert_eq!(attempted(&world).await, ["sandbox"]);

    let sandbox = TeardownInstallRequest { sandbox: true, ..everything() };
    assert_eq!(teardown(&mut alone, &sandbox, "down-1").await, ["sandbox succeeded"]);
    assert_eq!(orders(&alone).pop().unwrap().mode, Mode::Deprovision);
    let users = tried(&document(), &[("chart", half())]).await.0;
    let refused = users.teardown(&sandbox, "down-1").await.unwrap_err();
    assert!(refused.message.contains("`chart`"), "{refused}");
    behave(&mut world, &[]);
    let again = deploy(&mut world, "deploy-1").await;
    assert_eq!(world.workflow(&again).await.state.as_str(), "succeeded");
    assert_eq!((attempted(&world).await.len(), parts(&world).await.len()), (0, 5));
    let mut sandboxes = orders(&world).into_iter().filter(|order| matches!(order.work, Work::Sandbox(_)));
    assert!(sandboxes.all(|order| order.mode == Mode::Provision));
}

#[tokio::test]
async fn a_job_that_was_cancelled_or_lost_or_never_ended_leaves_its_part_to_the_teardown() {
    // The runner is heard at the start, or not at all.
    for behaviour in [Behaviour::Hangs, Behaviour::Ignores] {
        let (world, workflow) = tried(&document(), &[("module", behaviour.clone())]).await;
        assert_eq!(attempted(&world).await, ["module"], "while the job runs");
        let (mut lost, mut cancelled, mut ended) = (world.copy(), world.copy(), world);

        assert_eq!(lost.sweep_with_runner_there(LOST_SECS).await.lost, 1);
        cancelled.cancel_workflow().cancel(&workflow, &Default::default(), member()).await.unwrap();
        if behaviour == Behaviour::Ignores {
            cancelled.runner("globex").seen = usize::MAX;
            cancelled.memory.advance_secs(LOST_SECS);
            cancelled.sweeper().sweep().await.unwrap();
        }
        ended.finish_workflow().finish(&workflow, 0, Some("the state machine timed out")).await.unwrap();
        for (at, world) in [&mut lost, &mut cancelled, &mut ended].into_iter().enumerate() {
            world.settle().await;
            assert!(world.workflow(&workflow).await.state.is_terminal());
            assert_eq!(attempted(world).await, ["module"], "{behaviour:?} {at}");
            world.runner("globex").seen = orders(world).len();
            world.runner("globex").attempts.clear();

            let states = teardown(world, &of("module"), "down-1").await;

            assert_eq!(states, ["module succeeded"], "{behaviour:?} {at}");
            assert_eq!(attempted(world).await, [""; 0]);
        }
    }
}

#[tokio::test]
async fn a_job_in_which_nothing_ran_leaves_no_part() {
    let refused = Behaviour::Ends(Outcome::Failed { reason: "no plan".into(), partial: false });
    for behaviour in [refused, blocked()] {
        let (mut world, _) = tried(&document(), &[("sandbox", behaviour)]).await;

        let states = teardown(&mut world, &everything(), "down-1").await;

        assert_eq!(states, ["leftovers:list succeeded"]);
    }
    // The cancel comes before the order is sent.
    let (mut world, workflow) = tried(&document(), &[("preflight", Behaviour::Hangs)]).await;
    world.cancel_workflow().cancel(&workflow, &Default::default(), member()).await.unwrap();
    world.settle().await;
    assert_eq!(parts(&world).await, []);
}

#[tokio::test]
async fn a_component_that_failed_half_way_and_was_switched_off_is_removed_by_the_next_deploy() {
    let (mut world, _) = tried(&document(), &[("chart", half())]).await;
    let mut torn = world.copy();
    for world in [&world, &torn] {
        world.switch(&[("chart", false)]).await.unwrap();
    }

    behave(&mut world, &[]);
    let removes = deploy(&mut world, "deploy-1").await;
    let states = teardown(&mut torn, &everything(), "down-1").await;

    assert_eq!(world.node_states(&removes).await, ["remove:chart succeeded"]);
    assert!(states.contains(&"chart succeeded".to_owned()), "{states:?}");
    assert_eq!((attempted(&world).await.len(), parts(&torn).await.len()), (0, 0));
}

#[tokio::test]
async fn the_last_version_that_may_have_made_something_is_the_one_that_is_removed() {
    let (mut world, _) = tried(&document(), &[("module", half())]).await;
    let first = last_work(&world, "module");
    sync(&mut world, &second(), "2").await;
    let mut stopped = world.copy();

    behave(&mut world, &[("module", half())]);
    deploy(&mut world, "deploy-1").await;
    behave(&mut stopped, &[("module", blocked())]);
    deploy(&mut stopped, "deploy-1").await;

    let later = last_work(&world, "module");
    assert!(first.artifact().is_some_and(|first| later.artifact().is_some_and(|later| first.digest != later.digest)));
    for (world, expected) in [(&mut world, later), (&mut stopped, first)] {
        teardown(world, &of("module"), "down-1").await;
        let Work::Remove(removed) = last_work(world, "remove:module") else { panic!("no removal") };
        assert_eq!(*removed.what, expected);
    }
}

#[tokio::test]
async fn no_action_waits_for_a_component_that_never_worked() {
    let action = |name: &str, on: Value, needs: &[&str]| {
        let action = json!({ "name": name, "timeout_secs": 60, "triggers": [on], "steps": [], "dependencies": needs });
        serde_json::from_value(action).unwrap()
    };
    let deprovision = || json!({ "on": "event", "event": "pre-deprovision" });
    let teardown_chart = json!({ "on": "event", "event": "pre-teardown-component", "component": "chart" });
    let mut version = document();
    version.actions = vec![
        action("back-up", teardown_chart, &[]),
        action("export", deprovision(), &["chart"]),
        action("say", deprovision(), &["stack"]),
    ];
    let (world, _) = tried(&version, &[("chart", half())]).await;
    let mut broken = world.copy();
    let mut whole = tried(&version, &[]).await.0;

    let states = teardown(&mut broken, &everything(), "down-1").await;
    let ran = teardown(&mut whole, &everything(), "down-1").await;

    let actions = |states: &[String]| -> Vec<String> {
        let actions = states.iter().filter(|state| state.starts_with("action:")).cloned();
        actions.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
    };
    assert_eq!(actions(&states), ["action:export skipped", "action:say succeeded"]);
    assert_eq!(actions(&ran), ["action:back-up succeeded", "action:export succeeded", "action:say succeeded"]);
    assert_eq!(parts(&broken).await, []);
}

#[tokio::test]
async fn a_part_that_was_attempted_is_shown_and_keeps_the_install_from_being_forgotten() {
    let (world, _) = tried(&document(), &[("sandbox", half())]).await;

    let view = read::show_install(&world.versions(), &globex(), world.now()).await.unwrap();
    world.memory.advance_secs(3 * 3600);
    let refused = world.forget_install().forget(&globex(), &ForgetInstallRequest::default()).await.unwrap_err();

    assert_eq!(view.components.iter().map(|one| one.attempted).collect::<Vec<_>>(), [true]);
    assert!(refused.message.contains("`sandbox`") && refused.message.contains("freehold teardown"), "{refused}");
}

#[tokio::test]
async fn a_toggle_does_not_call_a_part_deployed_that_was_only_attempted() {
    let (world, _) = tried(&document(), &[("chart", half())]).await;

    let toggles = world.switch(&[("chart", false)]).await.unwrap().toggles;

    let deployed: Vec<_> = toggles.iter().map(|one| (one.component.as_str(), one.deployed)).collect();
    assert_eq!(deployed, [("chart", false), ("manifest", true), ("module", true), ("stack", true)]);
}
