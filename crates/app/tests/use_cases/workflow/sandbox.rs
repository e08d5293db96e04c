//! The sandbox: made before all components, read by them, and made again when it changed.

use freehold_app::Kind;
use freehold_app::read;
use freehold_protocol::api::DeployComponentsRequest;
use freehold_protocol::app_version::AppVersion;
use freehold_protocol::order::{Mode, Order, Work};
use freehold_protocol::report::Outcome;
use freehold_protocol::{Digest, Envelope, Payload as _};
use serde_json::json;

use crate::support::runner::Behaviour;
use crate::support::{World, app};

/// The app with a sandbox of `size`, whose output `name` the component `storage` reads.
fn document(size: u32) -> AppVersion {
    let mut document = app::document();
    let sandbox = json!({
        "tool": { "tool": "terraform", "version": "1.9.0" },
        "source": { "from": "image", "reference": "example/sandbox:1" },
        "vars": { "size": size },
    });
    document.sandbox = Some(serde_json::from_value(sandbox).unwrap());
    for component in &mut document.components {
        if component.name.as_str() == "storage" {
            component.references.insert(serde_json::from_value(json!({ "to": "sandbox", "name": "name" })).unwrap());
            component.spec = serde_json::from_value(json!({
                "kind": "terraform_module", "terraform_version": "1.9.0",
                "vars": { "net": "{{ .nuon.install.sandbox.outputs.name }}", "days": "{{ .nuon.inputs.inputs.days }}" },
            }))
            .unwrap();
        }
    }
    document
}

/// Returns a world in which the app with its sandbox is provisioned.
async fn provisioned() -> World {
    provisioned_as(&document(1)).await
}

async fn provisioned_as(version: &AppVersion) -> World {
    let mut world = World::new();
    world.sync(version).await;
    world.enrol().await;
    world.hello("build");
    world.settle().await;
    world.build("build-1").await;
    world.settle().await;
    world.create().await;
    world.run().await;
    world.hello("globex");
    world.settle().await;
    world
}

/// Syncs and builds `version`, and deploys what changed.
async fn deployed(world: &mut World, version: &AppVersion, cause: &str) -> freehold_protocol::WorkflowId {
    world.sync(version).await;
    world.build(&format!("build-{cause}")).await;
    world.settle().await;
    let workflow = world.deploy(&DeployComponentsRequest::default(), cause).await.unwrap();
    world.settle().await;
    workflow
}

/// Returns the last order of a kind of work.
fn order_of(world: &World, kind: &str) -> Order {
    let sent = world.memory.orders.lock().unwrap();
    let envelopes = sent.iter().map(|(_, _, _, body)| Envelope::parse(body.as_bytes()).unwrap());
    let mut orders = envelopes.filter(|one| one.payload_type == Order::TYPE).map(|one| one.peek::<Order>().unwrap());
    orders.rfind(|order| order.work.kind() == kind).unwrap()
}

#[tokio::test]
async fn the_sandbox_is_made_first_and_components_get_its_outputs() {
    let world = provisioned().await;

    let (sandbox, storage) = (order_of(&world, "sandbox"), order_of(&world, "terraform_module"));
    let started = &world.runners["globex"].started;
    let Work::Sandbox(work) = sandbox.work else { panic!("{:?}", sandbox.work) };
    assert_eq!(
        (sandbox.mode, sandbox.group.as_str(), work.component.as_str()),
        (Mode::Provision, "sandbox", "sandbox")
    );
    assert_eq!(sandbox.context["nuon"]["sandbox"]["outputs"], json!({}));
    assert_eq!(started[..2], ["preflight", "sandbox"]);
    for place in ["/nuon/sandbox/outputs", "/nuon/install/sandbox/outputs"] {
        assert_eq!(storage.context.pointer(place), Some(&json!({ "name": "sandbox-out" })));
    }
    assert_eq!(storage.context.pointer("/nuon/components/sandbox"), None);
    let view = read::show_install(&world.versions(), &"globex".parse().unwrap(), world.now()).await.unwrap();
    assert!(view.components.iter().any(|one| one.component.is_sandbox() && one.outputs["name"] == "sandbox-out"));
}

#[tokio::test]
async fn a_changed_sandbox_is_made_again_under_provision_with_what_reads_it() {
    let mut world = provisioned().await;

    let nothing = deployed(&mut world, &document(1), "deploy-1").await;
    let changed = deployed(&mut world, &document(2), "deploy-2").await;
    let again = deployed(&mut world, &document(2), "deploy-3").await;

    assert_eq!(world.node_states(&nothing).await, [""; 0]);
    assert_eq!(world.node_states(&changed).await, ["sandbox succeeded", "info succeeded", "storage succeeded"]);
    assert_eq!(world.node_states(&again).await, [""; 0]);
    assert_eq!(order_of(&world, "sandbox").mode, Mode::Provision);
    assert_eq!(order_of(&world, "terraform_module").mode, Mode::Maintenance);
}

#[tokio::test]
async fn a_reader_that_failed_after_the_sandbox_changed_runs_in_the_next_deploy() {
    let mut world = provisioned().await;
    let outputs = [("name".to_owned(), json!("other"))].into();
    let runner = world.runner("globex");
    runner.behaviours.insert(
        "sandbox".into(),
        Behaviour::Ends(Outcome::Succeeded { outputs, sensitive: Default::default(), artifact: None }),
    );
    let failed = Outcome::Failed { reason: "exit status 1".into(), partial: true };
    runner.behaviours.insert("storage".into(), Behaviour::Ends(failed));
    deployed(&mut world, &document(2), "deploy-1").await;
    world.runner("globex").behaviours.remove("storage");

    let next = world.deploy(&DeployComponentsRequest::default(), "deploy-2").await.unwrap();
    world.settle().await;

    assert_eq!(world.node_states(&next).await, ["info succeeded", "storage succeeded"]);
}

#[tokio::test]
async fn an_output_with_more_digits_than_json_keeps_is_read_as_text_and_stops_no_report() {
    let mut world = provisioned().await;
    let outputs = [("name".to_owned(), json!({ "id": 9_007_199_254_740_993_u64, "port": 443 }))].into();
    let large = Outcome::Succeeded { outputs, sensitive: Default::default(), artifact: None };
    world.runner("globex").behaviours.insert("sandbox".into(), Behaviour::Ends(large));

    let workflow = deployed(&mut world, &document(2), "large").await;

    assert_eq!(world.node_states(&workflow).await, ["sandbox succeeded", "info succeeded", "storage succeeded"]);
    let read = &order_of(&world, "terraform_module").context["nuon"]["sandbox"]["outputs"]["name"];
    assert_eq!(*read, json!({ "id": "9007199254740993", "port": 443 }));
    let unchanged = world.deploy(&DeployComponentsRequest::default(), "again").await.unwrap();
    world.settle().await;
    assert_eq!(world.node_states(&unchanged).await, [""; 0]);
}

#[tokio::test]
async fn a_component_whose_output_the_sandbox_lacks_is_refused_before_it_starts() {
    let mut world = provisioned().await;
    let empty = Outcome::Succeeded { outputs: Default::default(), sensitive: Default::default(), artifact: None };
    world.runner("globex").behaviours.insert("sandbox".into(), Behaviour::Ends(empty));
    world.runner("globex").started.clear();

    let workflow = deployed(&mut world, &document(2), "deploy-1").await;
    let next = world.deploy(&DeployComponentsRequest::default(), "deploy-2").await.unwrap_err();

    assert_eq!(world.node_states(&workflow).await, ["sandbox succeeded", "info skipped", "storage refused"]);
    assert_eq!(world.runners["globex"].started, ["sandbox"]);
    let view = read::workflow_view(&world.workflow(&workflow).await);
    let refused = "component `storage` reads output `name` of the sandbox, but the sandbox does not have it";
    assert!(view.reason.contains(refused), "{}", view.reason);
    assert!(view.nodes.iter().any(|node| node.state == "refused" && node.reason.starts_with(refused)));
    assert_eq!(next.kind, Kind::Conflict);
    assert!(next.message.starts_with(refused), "{}", next.message);
}

/// A success with the sensitive output `name`.
fn sensitive(value: &str) -> Behaviour {
    let sensitive = [("name".to_owned(), Digest::of(value.as_bytes()))].into();
    Behaviour::Ends(Outcome::Succeeded { outputs: Default::default(), sensitive, artifact: None })
}

#[tokio::test]
async fn a_sensitive_output_is_named_in_the_order_of_what_reads_it_by_the_attempt_that_counts() {
    let mut world = provisioned().await;
    world.runner("globex").behaviours.insert("sandbox".into(), sensitive("first"));

    deployed(&mut world, &document(2), "deploy-1").await;

    let (sandbox, storage) = (order_of(&world, "sandbox"), order_of(&world, "terraform_module"));
    let [kept] = &storage.kept_outputs[..] else { panic!("{:?}", storage.kept_outputs) };
    assert_eq!(
        (kept.part.as_str(), kept.sandbox, &kept.job, kept.serial),
        ("sandbox", true, &sandbox.job, sandbox.serial)
    );
    assert_eq!(kept.digests, [("name".to_owned(), Digest::of(b"first"))].into());
    assert_eq!(storage.context["nuon"]["sandbox"]["outputs"], json!({}));
    assert_eq!(sandbox.kept_outputs, []);
    deployed(&mut world, &document(1), "deploy-2").await;
    let [own] = &order_of(&world, "sandbox").kept_outputs[..] else { panic!("the sandbox's next order") };
    assert_eq!(own, kept);
}

#[tokio::test]
async fn a_reader_that_failed_after_a_sensitive_output_changed_runs_in_the_next_deploy() {
    let mut world = provisioned().await;
    world.runner("globex").behaviours.insert("sandbox".into(), sensitive("first"));
    deployed(&mut world, &document(2), "deploy-1").await;
    world.runner("globex").behaviours.insert("sandbox".into(), sensitive("second"));
    let failed = Outcome::Failed { reason: "exit status 1".into(), partial: false };
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::Ends(failed));
    deployed(&mut world, &document(1), "deploy-2").await;
    world.runner("globex").behaviours.remove("storage");

    let next = world.deploy(&DeployComponentsRequest::default(), "deploy-3").await.unwrap();
    world.settle().await;
    let nothing = world.deploy(&DeployComponentsRequest::default(), "deploy-4").await.unwrap();
    world.settle().await;

    assert_eq!(world.node_states(&next).await, ["info succeeded", "storage succeeded"]);
    assert_eq!(world.node_states(&nothing).await, [""; 0]);
}

#[tokio::test]
async fn the_sandbox_alone_is_chosen_by_its_name() {
    let mut world = provisioned().await;
    let request =
        DeployComponentsRequest { components: vec!["sandbox".parse().unwrap()], ..DeployComponentsRequest::default() };

    let workflow = world.deploy(&request, "deploy-1").await.unwrap();
    world.settle().await;

    assert_eq!(world.node_states(&workflow).await, ["sandbox succeeded", "info succeeded", "storage succeeded"]);
}

#[tokio::test]
async fn a_sandbox_that_is_a_program_of_pulumi_is_deployed_before_the_components() {
    let mut version = document(1);
    version.sandbox.as_mut().unwrap().tool =
        serde_json::from_value(json!({ "tool": "pulumi", "runtime": "go", "version": "" })).unwrap();

    let world = provisioned_as(&version).await;

    let Work::PulumiSandbox(work) = order_of(&world, "sandbox").work else { panic!("no program of Pulumi") };
    assert_eq!((work.component.as_str(), &work.config["size"]), ("sandbox", &json!(1)));
    assert_eq!(world.runners["globex"].started[..2], ["preflight", "sandbox"]);
}

#[tokio::test]
async fn a_removal_that_fails_each_time_names_the_ways_on_and_the_sandbox_changes_without_it() {
    let mut world = provisioned().await;
    let mut version = document(2);
    let settings = version.components.iter_mut().find(|one| one.name.as_str() == "settings").unwrap();
    settings.settings.toggle = Some(true);
    world.sync(&version).await;
    world.build("build-2").await;
    world.settle().await;
    world.switch(&[("settings", false)]).await.unwrap();
    let fails = Outcome::Failed { reason: "access denied".into(), partial: true };
    world.runner("globex").behaviours.insert("remove:settings".into(), Behaviour::Ends(fails));

    let blocked = world.deploy(&DeployComponentsRequest::default(), "deploy-1").await.unwrap();
    world.settle().await;
    let sandbox = vec!["sandbox".parse().unwrap()];
    let rest = DeployComponentsRequest { components: sandbox, ..DeployComponentsRequest::default() };
    let without = world.deploy(&rest, "deploy-2").await.unwrap();
    world.settle().await;

    let freehold_domain::workflow::WorkflowState::Failed { reason, .. } = world.workflow(&blocked).await.state else {
        panic!("the removal ended")
    };
    assert_eq!(
        reason,
        "`remove:settings` failed: access denied (partial); `sandbox`, `info`, `storage` are not deployed until `settings` is \
         removed: switch it on again with `freehold install toggles globex --on settings`, or remove it with `freehold \
         teardown globex --component settings`, or leave it for now and deploy the rest with `freehold deploy globex \
         --component sandbox --component info --component storage`"
    );
    assert_eq!(world.node_states(&without).await, ["sandbox succeeded", "info succeeded", "storage succeeded"]);
    let view = read::show_install(&world.versions(), &"globex".parse().unwrap(), world.now()).await.unwrap();
    assert!(view.components.iter().any(|one| one.component.as_str() == "settings"), "it is left behind, and listed");
    assert_eq!(view.off.iter().map(|name| name.as_str()).collect::<Vec<_>>(), ["settings"]);
}
