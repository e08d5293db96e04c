//! The health checks of components: at which there is one, and what waits for it.

use freehold_protocol::order::health::Times;

use super::*;
use crate::plan::health::timeout_secs;
use crate::plan::health_check::is_checked_as;

/// Returns the version with health checks of `storage`, on which `info` depends, and an action after its deploy.
fn checked(health: Value) -> AppVersion {
    let mut version = version();
    let storage = version.components.iter_mut().find(|component| component.name.as_str() == "storage").unwrap();
    storage.settings.health = Some(serde_json::from_value(health).unwrap());
    let own = json!({
        "name": "fill", "timeout_secs": 60, "steps": [],
        "triggers": [{ "on": "post_deploy_component", "component": "storage" }],
    });
    version.actions.push(serde_json::from_value(own).unwrap());
    version
}

fn health(block: bool) -> Value {
    json!({ "block_deploy": block, "stabilization_window_secs": 60,
        "probes": [{ "type": "tcp", "url": "storage.example:5432" }] })
}

/// Returns the nodes of a deploy of everything, each with what it waits for.
fn waits(version: &AppVersion) -> BTreeMap<String, Vec<String>> {
    let all = DeployScope { all: true, ..DeployScope::default() };
    waits_of(version, &BTreeMap::new(), &[], &all)
}

/// Returns the nodes of a deploy in which some components are deployed already, and some of these are healthy, each
/// with what it waits for.
fn waits_of(
    version: &AppVersion,
    deployed: &BTreeMap<ComponentName, Deployed>,
    healthy: &[&str],
    scope: &DeployScope,
) -> BTreeMap<String, Vec<String>> {
    let nodes = nodes_of(version, deployed, healthy, scope);
    nodes.into_iter().map(|node| (node.name, node.dependencies.into_iter().collect())).collect()
}

fn nodes_of(
    version: &AppVersion,
    deployed: &BTreeMap<ComponentName, Deployed>,
    healthy: &[&str],
    scope: &DeployScope,
) -> Vec<Node> {
    let builds = builds(version);
    let inputs = inputs(json!({ "greeting": "hi" }));
    let input = DeployInput {
        version,
        builds: &builds,
        inputs: &inputs,
        secrets: SecretsState::none(),
        healthy: &healthy.iter().map(|name| name.parse().unwrap()).collect(),
        toggles: TogglesState::none(),
        deployed,
        required: &BTreeMap::new(),
        licence: None,
        serial: 5,
    };
    let nodes = deploy_nodes(input, scope).unwrap();
    let serials: BTreeSet<u64> = nodes.iter().map(|node| node.serial).collect();
    assert_eq!(serials, [5].into());
    nodes
}

#[test]
fn everything_after_a_component_waits_for_its_gate_but_for_its_own_actions() {
    let waits = waits(&checked(health(true)));

    assert_eq!(waits["health:storage"], ["storage"]);
    assert_eq!(waits["info"], ["health:storage", "storage"]);
    assert!(waits["action:check"].contains(&"health:storage".to_owned()), "{waits:?}");
    assert_eq!(waits["action:fill"], ["storage"]);
    assert!(waits["web"].is_empty() && !waits.contains_key("health:web"), "{waits:?}");
}

#[test]
fn a_gate_that_did_not_open_is_asked_again_before_the_dependents() {
    let version = checked(health(true));
    let all = DeployScope { all: true, ..DeployScope::default() };
    let only = |name: &str| DeployScope { only: [name.parse().unwrap()].into(), ..DeployScope::default() };
    let deployed = after(&planned(json!({ "greeting": "hi" }), &BTreeMap::new(), &all));

    let again = waits_of(&version, &deployed, &[], &DeployScope::default());
    let dependent = waits_of(&version, &deployed, &[], &only("info"));
    let other = waits_of(&version, &deployed, &[], &only("web"));
    let healthy = waits_of(&version, &deployed, &["storage"], &only("info"));

    assert_eq!(again["health:storage"], Vec::<String>::new(), "{again:?}");
    assert_eq!((&dependent["health:storage"], &dependent["info"]), (&vec![], &vec!["health:storage".to_owned()]));
    assert!(!other.contains_key("health:storage") && !healthy.contains_key("health:storage"), "{other:?} {healthy:?}");
    assert!(healthy["info"].is_empty(), "{healthy:?}");
}

#[test]
fn nothing_waits_for_a_look_that_is_not_a_gate() {
    let waits = waits(&checked(health(false)));

    assert_eq!(waits["health:storage"], ["storage"]);
    assert_eq!(waits["info"], ["storage"]);
    assert!(!waits["action:check"].contains(&"health:storage".to_owned()), "{waits:?}");
}

#[test]
fn a_component_without_anything_to_ask_gets_no_look() {
    let of = |health: Value| waits(&checked(health)).contains_key("health:storage");

    assert!(!of(json!({ "block_deploy": true, "stabilization_window_secs": 60 })));
    assert!(!of(json!({ "disabled": true, "stabilization_window_secs": 60,
        "probes": [{ "type": "tcp", "url": "a:1" }] })));
    assert!(!of(json!({ "stabilization_window_secs": 60, "probes": [{ "type": "exec", "command": [] }] })));
}

#[test]
fn a_check_apart_from_deploys_follows_the_last_deploy_of_all_components_unless_its_own_is_later() {
    let version = version();
    let all = DeployScope { all: true, ..DeployScope::default() };
    // Each was deployed with the serial 5.
    let mut deployed = after(&planned(json!({ "greeting": "hi" }), &BTreeMap::new(), &all));
    let mut storage = deployed.remove(&"storage".parse::<ComponentName>().unwrap()).unwrap();

    let follows = [4, 5, 6].map(|serial| is_checked_as(&version, serial, &storage));
    storage.component = "gone".parse().unwrap();

    assert_eq!(follows, [false, true, true]);
    assert!(!is_checked_as(&version, 6, &storage), "the version does not describe it");
}

#[test]
fn the_role_of_a_deploy_counts_for_no_check_and_for_the_actions_that_list_it() {
    let mut version = checked(health(false));
    let roles = json!([{ "name": "support", "policies": [] }, { "name": "deployer", "policies": [] }]);
    version.named_roles = serde_json::from_value(roles).unwrap();
    let storage = version.components.iter_mut().find(|component| component.name.as_str() == "storage").unwrap();
    storage.settings.operation_roles.insert("deploy".to_owned(), "deployer".to_owned());
    version.actions[1].other_roles = vec!["support".to_owned()];
    let scope = DeployScope { all: true, role: Some("support".to_owned()), ..DeployScope::default() };

    let nodes = nodes_of(&version, &BTreeMap::new(), &[], &scope);

    let role_of = |name: &str| {
        let node = nodes.iter().find(|node| node.name == name).unwrap();
        node.runs_as.as_ref().map(RunsAs::in_terms)
    };
    assert_eq!((role_of("storage"), role_of("health:storage")), (Some("custom-support"), Some("custom-deployer")));
    assert_eq!((role_of("action:fill"), role_of("action:check")), (Some("custom-support"), None));
}

#[test]
fn a_check_that_runs_a_command_has_time_to_fetch_the_tool_image() {
    let limit = |probe: Value| {
        let version = checked(json!({ "stabilization_window_secs": 60, "probes": [probe] }));
        let storage = version.components.iter().find(|component| component.name.as_str() == "storage").unwrap();
        let health = storage.settings.health.as_ref().unwrap();
        timeout_secs(health, Times::after_deploy(health))
    };

    assert_eq!(limit(json!({ "type": "tcp", "url": "a:1" })), 180);
    assert_eq!(limit(json!({ "type": "exec", "command": ["true"] })), 960);
}

#[test]
fn a_look_changes_nothing_and_has_a_group_of_its_own() {
    let target =
        Target::Health { component: "storage".parse().unwrap(), gate: true, version: None, checks: Default::default() };

    assert!(!target.is_change(&freehold_protocol::report::FreeActions::default()));
    assert_eq!(target.group().unwrap().thing(), "health:storage");
    assert!(target.deploys().is_none());
}
