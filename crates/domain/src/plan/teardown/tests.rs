use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::runs_as::RunsAs;

/// `web` depends on `db`, `site` on nothing, and the app has a sandbox.
fn version() -> AppVersion {
    let mut web = component("web", &["db"]);
    web["settings"] = json!({ "operation_roles": { "teardown": "remover" } });
    document(&[component("db", &[]), component("site", &[]), web], true)
}

fn document(components: &[Value], sandbox: bool) -> AppVersion {
    let sandbox =
        sandbox.then(|| json!({ "tool": { "tool": "terraform", "version": "1" }, "source": { "from": "version" } }));
    serde_json::from_value(json!({
        "format": 1, "app": "demo", "components": components, "sandbox": sandbox,
        "named_roles": [{ "name": "remover", "policies": [] }],
    }))
    .unwrap()
}

fn component(name: &str, after: &[&str]) -> Value {
    json!({
        "name": name, "dependencies": after, "deploy_timeout_secs": 600,
        "source": { "from": "image", "reference": "example/x:1" }, "spec": { "kind": "container_image" },
    })
}

fn planned(version: &AppVersion, what: &TeardownParts) -> Result<Vec<Node>, TeardownError> {
    without(version, &[], what)
}

/// Plans a teardown where these parts are not deployed.
fn without(version: &AppVersion, absent: &[&str], what: &TeardownParts) -> Result<Vec<Node>, TeardownError> {
    with_copies(version, absent, what, false)
}

fn with_copies(
    version: &AppVersion,
    absent: &[&str],
    what: &TeardownParts,
    copies: bool,
) -> Result<Vec<Node>, TeardownError> {
    let digest = Digest::of(b"x");
    let parts = version.parts().filter(|part| !absent.contains(&part.name.as_str()));
    let there: Vec<Standing<'_>> = parts
        .map(|part| Standing {
            part: part.into_owned(),
            document: version,
            version: digest.clone(),
            artifact: digest.clone(),
            attempted: false,
        })
        .collect();
    teardown_nodes(&there, TeardownScope { app: &version.app, what, role: None, serial: 3, copies })
}

fn of(component: &str) -> TeardownParts {
    TeardownParts::Component { component: component.parse().unwrap() }
}

fn shown(nodes: &[Node]) -> Vec<String> {
    nodes.iter().map(|node| format!("{} after {:?}", node.name, node.dependencies)).collect()
}

#[test]
fn everything_goes_in_the_reverse_order_of_a_deploy_and_the_sandbox_last() {
    let nodes = planned(&version(), &TeardownParts::All).unwrap();

    assert_eq!(
        shown(&nodes),
        [r#"sandbox after {"db", "site", "web"}"#, r#"db after {"web"}"#, "site after {}", "web after {}",]
    );
    let role = |name: &str| nodes.iter().find(|node| node.name == name).unwrap().runs_as.clone();
    assert_eq!(role("db"), None);
    let remover = Some("custom-remover".parse().unwrap());
    assert_eq!(role("web"), Some(RunsAs { mode: Mode::Deprovision, role: remover }));
    assert_eq!(nodes[0].target.group().unwrap().as_str(), "sandbox");
    assert_eq!(nodes[1].target.group().unwrap().as_str(), "component:db");
}

#[test]
fn copies_of_secrets_go_between_the_components_and_the_sandbox() {
    let all = with_copies(&version(), &["site"], &TeardownParts::All, true).unwrap();
    let sandbox = with_copies(&version(), &["db", "site", "web"], &TeardownParts::Sandbox, true).unwrap();
    let component = with_copies(&version(), &[], &of("site"), true).unwrap();

    assert_eq!(
        shown(&all),
        [
            r#"sandbox after {"db", "secrets:copies", "web"}"#,
            r#"db after {"web"}"#,
            "web after {}",
            r#"secrets:copies after {"db", "web"}"#,
        ]
    );
    assert_eq!(shown(&sandbox), [r#"sandbox after {"secrets:copies"}"#, "secrets:copies after {}"]);
    assert_eq!(shown(&component), ["site after {}"]);
    assert!(all.iter().all(|node| node.serial == 3));
}

#[test]
fn a_component_goes_with_what_depends_on_it_and_the_sandbox_only_alone() {
    assert_eq!(shown(&planned(&version(), &of("db")).unwrap()), [r#"db after {"web"}"#, "web after {}"]);
    assert_eq!(shown(&planned(&version(), &of("site")).unwrap()), ["site after {}"]);
    assert_eq!(
        shown(&without(&version(), &["db", "site", "web"], &TeardownParts::Sandbox).unwrap()),
        ["sandbox after {}"]
    );
}

#[test]
fn what_still_exists_is_listed_after_all_removals_under_the_role_of_the_last_one() {
    let leftovers_node = |deployed_without: &[&str]| {
        let mut nodes = with_copies(&version(), deployed_without, &TeardownParts::All, true).unwrap();
        add_leftovers(&mut nodes, 3);
        nodes.pop().unwrap()
    };
    let line = |node: &Node| format!("{} after {:?}", node.name, node.dependencies);

    let (all, web, none) = (
        leftovers_node(&[]),
        leftovers_node(&["sandbox", "db", "site"]),
        leftovers_node(&["sandbox", "db", "site", "web"]),
    );

    assert_eq!(line(&all), r#"leftovers:list after {"db", "sandbox", "secrets:copies", "site", "web"}"#);
    assert_eq!((all.runs_as, all.serial), (None, 3));
    assert_eq!(web.runs_as, Some(RunsAs { mode: Mode::Deprovision, role: Some("custom-remover".parse().unwrap()) }));
    assert_eq!(none.dependencies, ["secrets:copies".to_owned()].into());
}

#[test]
fn what_cannot_be_removed_is_refused_by_name() {
    let refused = |found: Result<Vec<Node>, TeardownError>| found.unwrap_err().to_string();

    assert_eq!(
        refused(planned(&version(), &of("api"))),
        "component `api` is not deployed, so there is nothing to remove"
    );
    assert_eq!(
        refused(without(&version(), &["sandbox"], &TeardownParts::Sandbox)),
        "the sandbox is not deployed, so there is nothing to remove"
    );
    assert_eq!(
        refused(without(&version(), &["db"], &TeardownParts::Sandbox)),
        "the sandbox cannot be removed while components live in it: `site`, `web`; remove them too by leaving `--sandbox` out"
    );
}

const NAMES: [&str; 5] = ["a", "b", "c", "d", "sandbox"];

/// Components that depend on earlier ones; `sandbox` is a component's name where the app has no sandbox.
fn versions() -> impl Strategy<Value = AppVersion> {
    let one = |at: usize| prop::collection::btree_set(0..at.max(1), 0..=at);
    (one(0), one(1), one(2), one(3), one(4), any::<bool>()).prop_map(|(a, b, c, d, e, sandbox)| {
        let count = if sandbox { 4 } else { 5 };
        let components = [a, b, c, d, e].into_iter().take(count).enumerate().map(|(at, after)| {
            let after: Vec<&str> = after.into_iter().filter(|on| *on < at).map(|on| NAMES[on]).collect();
            component(NAMES[at], &after)
        });
        document(&components.collect::<Vec<_>>(), sandbox)
    })
}

proptest! {
    #[test]
    fn nothing_is_removed_before_what_needs_it(version in versions(), at in 0_usize..4) {
        for what in [TeardownParts::All, of(NAMES[at])] {
            let nodes = planned(&version, &what).unwrap();

            let named: Vec<_> = nodes
                .iter()
                .map(|node| (node.name.as_str(), node.dependencies.iter().map(String::as_str).collect()))
                .collect();
            let steps = crate::graph::order::order(&named).steps;
            prop_assert!(crate::graph::order::check(&named).is_ok());
            let deploy: BTreeMap<&str, &Node> = nodes.iter().map(|node| (node.name.as_str(), node)).collect();
            for component in &version.components {
                for needed in &component.dependencies {
                    let (Some(one), Some(other)) = (steps.get(component.name.as_str()), steps.get(needed.as_str())) else {
                        // Whatever is removed takes its dependents along.
                        prop_assert!(!deploy.contains_key(needed.as_str()));
                        continue;
                    };
                    prop_assert!(one < other, "{component:?} needs {needed}");
                }
            }
            if version.sandbox.is_some() && what == TeardownParts::All {
                prop_assert!(steps.iter().all(|(name, step)| *name == "sandbox" || step < &steps["sandbox"]));
            }
        }
    }
}
