//! Tests of the plan of a deploy.

use freehold_protocol::order::{Artifact, Package, Source};
use freehold_protocol::{JobId, Timestamp, WorkflowId};
use serde_json::json;

mod dependents;
mod health;
mod licence;
mod sandbox;
mod toggles;

use super::*;
use crate::build::{Build, BuildState};
use crate::workflow::Deploys;

fn version() -> AppVersion {
    serde_json::from_value(json!({
        "format": 1,
        "app": "demo",
        "inputs": [
            { "name": "days", "type": "number", "default": 7 },
            { "name": "greeting", "type": "string", "required": true },
        ],
        "components": [
            component("info", &["storage"], &[]),
            component("settings", &[], &["greeting"]),
            component("storage", &[], &["days"]),
            component("web", &[], &[]),
        ],
        "actions": [{
            "name": "check", "timeout_secs": 60, "steps": [],
            "triggers": [{ "on": "manual" }, { "on": "post_deploy_all_components" }],
        }],
    }))
    .unwrap()
}

fn component(name: &str, dependencies: &[&str], inputs: &[&str]) -> Value {
    let references: Vec<_> = inputs.iter().map(|name| json!({ "to": "input", "name": name })).collect();
    json!({
        "name": name, "dependencies": dependencies, "references": references, "deploy_timeout_secs": 600,
        "source": { "from": "image", "reference": "example/x:1" }, "spec": { "kind": "container_image" },
    })
}

fn builds(version: &AppVersion) -> BTreeMap<ComponentName, Build> {
    let built = |component: &Component| Build {
        id: BuildId::derive(&version.app, &Digest::of(b"source"), &component.name),
        app: version.app.clone(),
        component: component.name.clone(),
        package: Package::Image,
        source: Source::Image { reference: "example/x:1".into() },
        source_digest: Digest::of(b"source"),
        created_at: Timestamp::default(),
        unused_since: None,
        revoked: None,
        state: BuildState::Built {
            job: JobId::derive(&WorkflowId::derive("build", "1"), "x"),
            artifact: Artifact {
                digest: Digest::of(component.name.as_str().as_bytes()),
                media_type: String::new(),
                manifests: Vec::new(),
                blobs: Vec::new(),
                provenance: None,
            },
            built_at: Timestamp::default(),
        },
    };
    version.parts().map(|part| (part.name.clone(), built(&part))).collect()
}

fn inputs(given: Value) -> BTreeMap<String, Value> {
    let given = serde_json::from_value(given).unwrap();
    let sealing = crate::sealed_inputs::Sealing { install: &"globex".parse().unwrap(), key: None };
    crate::inputs::resolve_inputs(&version(), &given, &BTreeMap::new(), sealing).unwrap()
}

fn planned(given: Value, deployed: &BTreeMap<ComponentName, Deployed>, scope: &DeployScope) -> Vec<Node> {
    let version = version();
    let builds = builds(&version);
    let inputs = inputs(given);
    let input = DeployInput {
        version: &version,
        builds: &builds,
        inputs: &inputs,
        secrets: SecretsState::none(),
        healthy: &BTreeSet::new(),
        toggles: TogglesState::none(),
        deployed,
        required: &BTreeMap::new(),
        licence: None,
        serial: 5,
    };
    deploy_nodes(input, scope).unwrap()
}

fn after(nodes: &[Node]) -> BTreeMap<ComponentName, Deployed> {
    nodes
        .iter()
        .filter_map(|node| {
            let Deploys { part, artifact, fingerprint, .. } = node.target.deploys()?;
            let deployed = Deployed {
                component: part.clone(),
                fingerprint: fingerprint.clone(),
                artifact: artifact.clone(),
                version: Digest::of(b"v"),
                job: JobId::derive(&WorkflowId::derive("x", "1"), "x"),
                at: Timestamp::default(),
                serial: node.serial,
                outputs: BTreeMap::new(),
                sensitive: None,
                sandbox: None,
                partial: false,
                partial_by: None,
                attempted: false,
                skipped: None,
                drift: None,
            };
            Some((part, deployed))
        })
        .collect()
}

fn names(nodes: &[Node]) -> Vec<&str> {
    nodes.iter().map(|node| node.name.as_str()).collect()
}

#[test]
fn the_first_deploy_runs_everything_and_the_second_nothing() {
    let scope = DeployScope::default();
    let first = planned(json!({ "greeting": "hi" }), &BTreeMap::new(), &scope);

    let second = planned(json!({ "greeting": "hi" }), &after(&first), &scope);

    assert_eq!(names(&first), ["info", "settings", "storage", "web", "action:check"]);
    assert_eq!(first.iter().map(|node| node.serial).collect::<Vec<_>>(), [5; 5]);
    assert!(second.is_empty());
}

#[test]
fn a_provisioning_and_a_first_deploy_begin_with_a_preflight() {
    let provision = DeployScope { provision: true, ..DeployScope::default() };
    let again = DeployScope { first: true, ..DeployScope::default() };
    let first = planned(json!({ "greeting": "hi" }), &BTreeMap::new(), &provision);

    let second = planned(json!({ "greeting": "hi" }), &BTreeMap::new(), &again);
    let nothing = planned(json!({ "greeting": "hi" }), &after(&first), &again);

    for nodes in [&first, &second] {
        assert_eq!(names(nodes), ["preflight:install", "info", "settings", "storage", "web", "action:check"]);
        assert!(nodes.iter().skip(1).all(|node| node.dependencies.contains("preflight:install")));
        assert!(nodes[0].dependencies.is_empty());
    }
    assert!(!names(&nothing).contains(&"info"));
}

#[test]
fn a_component_that_somebody_skipped_is_deployed_by_the_next_deploy() {
    let scope = DeployScope::default();
    let first = planned(json!({ "greeting": "hi" }), &BTreeMap::new(), &scope);
    let mut deployed = after(&first);
    let (workflow, by) = (WorkflowId::derive("x", "1"), freehold_protocol::order::AskedBy::Sweep);
    let skipped = SkippedBy { workflow, by, reason: "next week".into(), at: Timestamp::default() };
    deployed.get_mut(&"settings".parse().unwrap()).unwrap().skipped = Some(skipped);

    let second = planned(json!({ "greeting": "hi" }), &deployed, &scope);

    assert!(names(&second).contains(&"settings"), "{:?}", names(&second));
}

#[test]
fn a_changed_input_runs_only_what_refers_to_it_and_what_depends_on_that() {
    let first = planned(json!({ "greeting": "hi" }), &BTreeMap::new(), &DeployScope::default());

    let greeting = planned(json!({ "greeting": "ho" }), &after(&first), &DeployScope::default());
    let days = planned(json!({ "greeting": "hi", "days": 9 }), &after(&first), &DeployScope::default());

    assert_eq!(names(&greeting), ["settings", "action:check"]);
    assert_eq!(names(&days), ["info", "storage", "action:check"]);
    assert_eq!(days[0].dependencies, BTreeSet::from(["storage".to_owned()]));
}

#[test]
fn a_component_that_was_not_built_stops_the_plan_by_name() {
    let version = version();
    let mut builds = builds(&version);
    builds.remove(&"web".parse().unwrap());
    let inputs = inputs(json!({ "greeting": "hi" }));
    let input = DeployInput {
        deployed: &BTreeMap::new(),
        required: &BTreeMap::new(),
        version: &version,
        builds: &builds,
        inputs: &inputs,
        secrets: SecretsState::none(),
        healthy: &BTreeSet::new(),
        toggles: TogglesState::none(),
        licence: None,
        serial: 1,
    };

    let error = deploy_nodes(input, &DeployScope::default()).unwrap_err();

    assert_eq!(error.to_string(), "component `web` has no artifact; run `freehold build demo` and deploy again");
}

#[test]
fn a_build_has_the_time_limit_of_its_component_or_the_usual_one() {
    let mut version = version();
    version.components[0].build_timeout_secs = Some(1200);
    let builds: Vec<_> = builds(&version).into_iter().map(|(name, build)| (name, build.id)).collect();

    let limits = |version| build_nodes(version, &builds, 1).iter().map(|node| node.timeout_secs).collect::<Vec<_>>();

    assert_eq!(limits(Some(&version)), [1200, BUILD_TIMEOUT_SECS, BUILD_TIMEOUT_SECS, BUILD_TIMEOUT_SECS]);
    assert_eq!(limits(None), [BUILD_TIMEOUT_SECS; 4]);
}
