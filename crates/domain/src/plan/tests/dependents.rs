//! Dependents that failed or were not reached after their dependency had changed.

use proptest::prelude::*;

use super::*;

const COMPONENTS: usize = 5;

/// One deploy: the new value of the input of each component that changes, and the components whose jobs fail.
type Round = (BTreeMap<usize, u8>, BTreeSet<usize>);

/// A version whose component `c<n>` reads input `i<n>` and depends on some of the components before it.
fn version_of(graph: &[BTreeSet<usize>]) -> AppVersion {
    let one = |at: usize| {
        let before: Vec<String> =
            graph[at].iter().filter(|other| **other < at).map(|other| format!("c{other}")).collect();
        let before: Vec<&str> = before.iter().map(String::as_str).collect();
        component(&format!("c{at}"), &before, &[&format!("i{at}")])
    };
    let components: Vec<Value> = (0..graph.len()).map(one).collect();
    serde_json::from_value(json!({ "format": 1, "app": "demo", "components": components })).unwrap()
}

/// Plans a deploy and executes it: a node runs when everything before it has succeeded. Returns the names of the
/// planned components.
fn deploy(
    version: &AppVersion,
    values: &BTreeMap<String, Value>,
    fail: &BTreeSet<usize>,
    deployed: &mut BTreeMap<ComponentName, Deployed>,
    serial: u64,
) -> BTreeSet<String> {
    let builds = builds(version);
    let input = DeployInput {
        version,
        builds: &builds,
        inputs: values,
        secrets: SecretsState::none(),
        healthy: &BTreeSet::new(),
        toggles: TogglesState::none(),
        deployed,
        required: &BTreeMap::new(),
        licence: None,
        serial,
    };
    let nodes = deploy_nodes(input, &DeployScope::default()).unwrap();
    let mut succeeded = BTreeSet::new();
    // Every dependency has a smaller number, and nodes are in the order of names.
    for node in &nodes {
        let number: usize = node.name[1..].parse().unwrap();
        if node.dependencies.is_subset(&succeeded) && !fail.contains(&number) {
            succeeded.insert(node.name.clone());
            deployed.extend(after(std::slice::from_ref(node)));
        }
    }
    nodes.into_iter().map(|node| node.name).collect()
}

fn rounds() -> impl Strategy<Value = Vec<Round>> {
    let changes = prop::collection::btree_map(0..COMPONENTS, 0..4_u8, 0..3);
    prop::collection::vec((changes, prop::collection::btree_set(0..COMPONENTS, 0..3)), 1..6)
}

proptest! {
    #[test]
    fn after_failures_a_deploy_runs_all_that_is_behind_its_dependencies_and_then_nothing(
        graph in prop::collection::vec(prop::collection::btree_set(0..COMPONENTS, 0..3), COMPONENTS),
        rounds in rounds(),
    ) {
        let version = version_of(&graph);
        let mut values: BTreeMap<String, Value> = (0..COMPONENTS).map(|at| (format!("i{at}"), json!(0))).collect();
        let mut deployed = BTreeMap::new();
        deploy(&version, &values, &BTreeSet::new(), &mut deployed, 1);
        // For each component, whether it has run since it or one of its dependencies changed.
        let mut is_due = [false; COMPONENTS];

        for ((changes, fail), serial) in rounds.iter().chain([&(BTreeMap::new(), BTreeSet::new())]).zip(2..) {
            for (at, value) in changes {
                values.insert(format!("i{at}"), json!(value));
            }
            let before = deployed.clone();
            let planned = deploy(&version, &values, fail, &mut deployed, serial);
            for (at, component) in version.components.iter().enumerate() {
                prop_assert!(!is_due[at] || planned.contains(component.name.as_str()), "{} is left out", component.name);
                let has_run = deployed[&component.name] != before[&component.name];
                let has_changed = component.dependencies.iter().any(|name| deployed[name] != before[name]);
                is_due[at] = !has_run && (is_due[at] || has_changed);
            }
        }

        prop_assert_eq!(is_due, [false; COMPONENTS]);
        let serial = rounds.len() as u64 + 3;
        prop_assert_eq!(deploy(&version, &values, &BTreeSet::new(), &mut deployed, serial), BTreeSet::new());
    }
}

#[test]
fn a_dependent_that_failed_after_its_dependency_had_changed_runs_again() {
    let version = version_of(&[BTreeSet::new(), BTreeSet::from([0]), BTreeSet::from([1])]);
    let values = |value: u8| (0..3).map(|at| (format!("i{at}"), json!(if at == 0 { value } else { 0 }))).collect();
    let mut deployed = BTreeMap::new();
    deploy(&version, &values(1), &BTreeSet::new(), &mut deployed, 1);

    let changed = deploy(&version, &values(2), &BTreeSet::from([1]), &mut deployed, 2);
    let again = deploy(&version, &values(2), &BTreeSet::new(), &mut deployed, 3);
    let nothing = deploy(&version, &values(2), &BTreeSet::new(), &mut deployed, 4);

    assert_eq!(changed.len(), 3);
    assert_eq!(again, BTreeSet::from(["c1".to_owned(), "c2".to_owned()]));
    assert!(nothing.is_empty());
}
