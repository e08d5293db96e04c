use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::graph::order;
use crate::workflow::{NodeState, Target};

/// Returns a version of four components, `web` after `api` after `db`, and `log`, with these actions.
fn version(actions: &[Value]) -> AppVersion {
    let component = |name: &str, dependencies: &[&str]| {
        json!({
            "name": name, "dependencies": dependencies, "deploy_timeout_secs": 600,
            "source": { "from": "version" }, "spec": { "kind": "container_image" },
        })
    };
    let components =
        [component("api", &["db"]), component("db", &[]), component("log", &[]), component("web", &["api"])];
    serde_json::from_value(json!({ "format": 1, "app": "demo", "components": components, "actions": actions })).unwrap()
}

fn action(name: &str, triggers: &[Value]) -> Value {
    json!({ "name": name, "timeout_secs": 60, "steps": [], "triggers": triggers })
}

fn on(event: &str) -> Value {
    json!({ "on": "event", "event": event })
}

fn on_component(event: &str, component: &str) -> Value {
    json!({ "on": "event", "event": event, "component": component })
}

fn references(components: &[&str]) -> Value {
    components.iter().map(|name| json!({ "to": "component", "name": name })).collect()
}

fn names(names: &[&str]) -> BTreeSet<ComponentName> {
    names.iter().map(|name| name.parse().unwrap()).collect()
}

fn target(component: &ComponentName) -> Target {
    let digest = freehold_protocol::Digest::of(b"x");
    let build = freehold_protocol::BuildId::derive(&"demo".parse().unwrap(), &digest, component);
    let fields = json!({
        "target": "component", "component": component, "build": build, "artifact": digest, "fingerprint": digest,
    });
    serde_json::from_value(fields).unwrap()
}

/// Returns the nodes of a deploy of `touched`, as the planner makes them.
fn planned(version: &AppVersion, touched: &BTreeSet<ComponentName>, scope: &DeployScope) -> Vec<Node> {
    let mut nodes: Vec<Node> = version
        .components
        .iter()
        .filter(|one| touched.contains(&one.name))
        .map(|one| Node {
            name: one.name.to_string(),
            target: target(&one.name),
            dependencies: one.dependencies.intersection(touched).map(ToString::to_string).collect(),
            timeout_secs: 60,
            serial: 0,
            runs_as: None,
            retries: 0,
            retried: 0,
            earlier: 0,
            state: NodeState::Waiting,
        })
        .collect();
    let lacking = Lacking { components: &BTreeSet::new(), because: lacks_text };
    add(
        version,
        &mut nodes,
        &events_of_deploy(version, Parts::deploys(touched), SecretNodes::default(), scope),
        lacking,
    );
    nodes
}

/// Returns the nodes with what they wait for, as lines.
fn shown(nodes: &[Node]) -> String {
    let line = |node: &Node| {
        let after: Vec<&str> = node.dependencies.iter().map(String::as_str).collect();
        format!("{} <- {}", node.name, after.join(" ")).trim_end().to_owned()
    };
    nodes.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn an_action_before_a_component_waits_for_what_the_component_waits_for() {
    let version = version(&[action("backup", &[on_component("pre-deploy-component", "api")])]);

    let nodes = planned(&version, &names(&["api", "db", "web"]), &DeployScope::default());

    insta::assert_snapshot!(shown(&nodes), @r"
    api <- action:backup db
    db <-
    web <- api
    action:backup <- db
    ");
}

#[test]
fn events_stand_inside_each_other() {
    let version = version(&[
        action("all", &[on("pre-deploy-all-components"), json!({ "on": "post_deploy_all_components" })]),
        action("inputs", &[on("pre-update-inputs"), on("post-update-inputs")]),
        action(
            "one",
            &[
                json!({ "on": "post_deploy_component", "component": "log" }),
                on_component("pre-deploy-component", "log"),
            ],
        ),
        action("whole", &[on("pre-provision"), json!({ "on": "post_provision" })]),
    ]);
    let scope = DeployScope { provision: true, inputs_changed: true, ..DeployScope::default() };

    let nodes = planned(&version, &names(&["log"]), &scope);

    let at = |name: &str| nodes.iter().position(|node| node.name == name).unwrap();
    let waits = |name: &str| with_what_it_waits_for(&nodes, name);
    let before = [
        "action:whole@pre-provision",
        "action:inputs@pre-update-inputs",
        "action:all@pre-deploy-all-components",
        "action:one@pre-deploy-component:log",
        "log",
    ];
    for (place, name) in before.iter().enumerate() {
        assert!(before[..place].iter().all(|outer| waits(name).contains(*outer)), "{name} in {}", shown(&nodes));
    }
    for name in [
        "action:one@post-deploy-component:log",
        "action:all@post-deploy-all-components",
        "action:inputs@post-update-inputs",
        "action:whole@post-provision",
    ] {
        assert!(waits(name).contains("log"), "{name} in {}", shown(&nodes));
        assert!(at(name) > at("log"));
    }
    assert_eq!(nodes.len(), 9);
}

#[test]
fn actions_of_one_event_start_by_index_and_those_without_one_follow_by_name() {
    let with_index = |name: &str, trigger: Value, index: u32| {
        let mut action = action(name, &[trigger.clone(), on("pre-update-inputs")]);
        action["indexes"] = json!([{ "trigger": trigger, "index": index }]);
        action
    };
    let after = json!({ "on": "post_deploy_all_components" });
    let version = version(&[
        action("a", std::slice::from_ref(&after)),
        with_index("b", after.clone(), 7),
        with_index("c", after.clone(), 0),
        action("d", std::slice::from_ref(&after)),
        with_index("e", on("pre-deploy-all-components"), 1),
        with_index("f", on("pre-deploy-all-components"), 0),
    ]);

    let nodes = planned(&version, &names(&["log"]), &DeployScope::default());

    insta::assert_snapshot!(shown(&nodes), @r"
    log <- action:e action:f
    action:f <-
    action:e <-
    action:c <- action:e action:f log
    action:b <- action:e action:f log
    action:a <- action:e action:f log
    action:d <- action:e action:f log
    ");
}

#[test]
fn an_action_of_two_events_has_the_place_of_each() {
    let (one, all) =
        (json!({ "on": "post_deploy_component", "component": "log" }), json!({ "on": "post_deploy_all_components" }));
    let with_places = |name: &str, places: [u32; 2]| {
        let mut action = action(name, &[one.clone(), all.clone()]);
        action["indexes"] = json!([{ "trigger": one, "index": places[0] }, { "trigger": all, "index": places[1] }]);
        action
    };
    let version = version(&[with_places("a", [1, 2]), with_places("b", [2, 1])]);

    let nodes = planned(&version, &names(&["log"]), &DeployScope::default());

    let order: Vec<&str> = nodes.iter().skip(1).map(|node| node.name.as_str()).collect();
    let expected = [
        "action:a@post-deploy-component:log",
        "action:b@post-deploy-component:log",
        "action:b@post-deploy-all-components",
        "action:a@post-deploy-all-components",
    ];
    assert_eq!(order, expected);
}

#[test]
fn an_action_waits_for_the_components_that_it_needs() {
    let mut reads = action("check", &[json!({ "on": "post_deploy_component", "component": "log" })]);
    reads["dependencies"] = json!(["web"]);
    let version = version(&[reads]);

    let nodes = planned(&version, &names(&["log", "web"]), &DeployScope::default());

    insta::assert_snapshot!(shown(&nodes), @r"
    log <-
    web <-
    action:check <- log web
    ");
}

#[test]
fn an_action_waits_for_the_components_that_it_reads_and_for_no_other() {
    let reading = |name: &str, read: &[&str]| {
        let mut reads = action(name, &[json!({ "on": "post_deploy_component", "component": "log" })]);
        reads["references"] = references(read);
        reads
    };
    let version = version(&[reading("all", &COMPONENTS), reading("one", &["db"])]);

    let nodes = planned(&version, &names(&COMPONENTS), &DeployScope::default());

    insta::assert_snapshot!(shown(&nodes), @r"
    api <- db
    db <-
    log <-
    web <- api
    action:all <- api db log web
    action:one <- db log
    ");
}

#[test]
fn an_older_word_of_the_event_still_counts() {
    let version = version(&[action("backup", &[on_component("pre-component-deploy", "log")])]);

    let nodes = planned(&version, &names(&["log"]), &DeployScope::default());

    assert_eq!(shown(&nodes), "log <- action:backup\naction:backup <-");
}

#[test]
fn the_sandbox_has_events_of_its_own_before_those_of_the_components() {
    let mut version = version(&[
        action("network", &[on("post-provision-sandbox"), on("post-reprovision-sandbox")]),
        action("all", &[on("pre-deploy-all-components")]),
    ]);
    version.sandbox = serde_json::from_value(json!({
        "tool": { "tool": "terraform", "version": "1.11.3" },
        "source": { "from": "directory", "digest": freehold_protocol::Digest::of(b"") },
    }))
    .unwrap();
    let events = |scope: &DeployScope| {
        let occurrences =
            events_of_deploy(&version, Parts::deploys(&names(&["log", "sandbox"])), SecretNodes::default(), scope);
        fired(&version, &occurrences)
            .into_iter()
            .map(|one| (one.node, occurrences[one.at].nodes.clone()))
            .collect::<Vec<_>>()
    };

    let first = events(&DeployScope { first: true, ..DeployScope::default() });
    let again = events(&DeployScope::default());

    let of = |name: &str| BTreeSet::from([name.to_owned()]);
    let expected = [("action:network".to_owned(), of("sandbox")), ("action:all".to_owned(), of("log"))];
    assert_eq!((first, again), (expected.to_vec(), expected.to_vec()));
}

#[test]
fn changed_inputs_that_no_component_reads_still_start_their_actions() {
    let version = version(&[action("tell", &[on("pre-update-inputs"), on("post-update-inputs")])]);
    let scope = DeployScope { inputs_changed: true, ..DeployScope::default() };

    let nodes = planned(&version, &BTreeSet::new(), &scope);

    assert_eq!(
        shown(&nodes),
        "action:tell@pre-update-inputs <-\naction:tell@post-update-inputs <- action:tell@pre-update-inputs"
    );
}

fn with_what_it_waits_for(nodes: &[Node], name: &str) -> BTreeSet<String> {
    let node = nodes.iter().find(|node| node.name == name).unwrap();
    let mut all = node.dependencies.clone();
    for dependency in &node.dependencies {
        all.extend(with_what_it_waits_for(nodes, dependency));
    }
    all
}

const COMPONENTS: [&str; 4] = ["api", "db", "log", "web"];

fn trigger() -> impl Strategy<Value = Value> {
    prop_oneof![
        prop::sample::select(vec![
            "pre-deploy-all-components",
            "post-deploy-all-components",
            "pre-provision",
            "post-provision",
            "pre-update-inputs",
            "post-update-inputs",
            "pre-deprovision",
            "post-secrets-sync",
        ])
        .prop_map(on),
        (
            prop::sample::select(vec!["pre-deploy-component", "post-deploy-component"]),
            prop::sample::select(&COMPONENTS[..])
        )
            .prop_map(|(event, component)| on_component(event, component)),
        Just(json!({ "on": "manual" })),
        Just(json!({ "on": "cron", "schedule": "* * * * *" })),
    ]
}

proptest! {
    #[test]
    fn any_triggers_give_a_graph_in_which_each_event_starts_each_action_once(
        triggers in prop::collection::vec(prop::collection::vec(trigger(), 0..4), 0..5),
        reads in prop::collection::vec(prop::sample::subsequence(&COMPONENTS[..], 0..=4), 5),
        touched in prop::sample::subsequence(&COMPONENTS[..], 0..=4),
        provision: bool,
        inputs_changed: bool,
    ) {
        let mut actions: Vec<Value> = triggers.iter().enumerate().map(|(at, of)| action(&format!("a{at}"), of)).collect();
        for (action, read) in actions.iter_mut().zip(&reads) {
            action["references"] = references(read);
        }
        let version = version(&actions);
        let scope = DeployScope { provision, inputs_changed, ..DeployScope::default() };
        let touched = names(&touched);

        let nodes = planned(&version, &touched, &scope);

        let graph: Vec<order::Named<'_>> = nodes
            .iter()
            .map(|node| (node.name.as_str(), node.dependencies.iter().map(String::as_str).collect()))
            .collect();
        prop_assert_eq!(order::check(&graph), Ok(()));
        let occurrences = events_of_deploy(&version, Parts::deploys(&touched), SecretNodes::default(), &scope);
        for one in fired(&version, &occurrences) {
            prop_assert_eq!(nodes.iter().filter(|node| node.name == one.node).count(), 1);
            for of_event in &occurrences[one.at].nodes {
                let (earlier, later) = match one.moment {
                    Moment::Pre => (one.node.as_str(), of_event.as_str()),
                    Moment::Post => (of_event.as_str(), one.node.as_str()),
                };
                prop_assert!(with_what_it_waits_for(&nodes, later).contains(earlier), "{} in {}", one.node, shown(&nodes));
            }
        }
        for (action, of) in version.actions.iter().zip(&triggers) {
            let distinct: BTreeSet<String> = of.iter().map(ToString::to_string).collect();
            let started = nodes.iter().filter(|node| matches!(&node.target, Target::Action { action: name, .. } if *name == action.name));
            prop_assert!(started.count() <= distinct.len());
        }
    }
}
