use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn component(name: &str, dependencies: &[&str], references: &Value) -> Value {
    json!({
        "name": name, "dependencies": dependencies, "references": references, "deploy_timeout_secs": 600,
        "source": { "from": "version" }, "spec": { "kind": "container_image" },
    })
}

fn version(components: &[Value]) -> AppVersion {
    serde_json::from_value(json!({
        "format": 1, "app": "demo", "components": components,
        "actions": [{
            "name": "check", "timeout_secs": 60, "steps": [], "triggers": [{ "on": "manual" }],
            "references": [{ "to": "component", "name": "api" }],
        }],
    }))
    .unwrap()
}

#[test]
fn steps_are_in_deploy_order_and_edges_say_why() {
    let reads_db = json!([{ "to": "component", "name": "db" }, { "to": "input", "name": "size" }]);
    let version = version(&[
        component("api", &["db", "queue"], &reads_db),
        component("db", &[], &json!([])),
        component("queue", &[], &json!([])),
        component("web", &["api"], &json!([])),
    ]);

    let graph = graph(&version);

    let steps: Vec<_> = graph.components.iter().map(|one| (one.name.as_str(), one.step)).collect();
    assert_eq!(steps, [("db", 1), ("queue", 1), ("api", 2), ("web", 3)]);
    let edges: Vec<_> = graph.edges.iter().map(|e| (e.to.as_str(), e.from.as_str(), e.why)).collect();
    assert_eq!(edges, [("api", "db", Why::Template), ("api", "queue", Why::Declared), ("web", "api", Why::Declared)]);
    assert!(graph.components[2].reads.inputs.contains("size"));
    assert_eq!(graph.actions[0].needs.iter().map(|name| name.as_str()).collect::<Vec<_>>(), ["api"]);
}

proptest! {
    #[test]
    fn any_edges_at_all_give_a_graph_and_without_loops_every_edge_goes_up(
        edges in prop::collection::vec((0_usize..6, 0_usize..6), 0..16),
        loops in any::<bool>(),
    ) {
        let names = ["a", "b", "c", "d", "e", "f"];
        let components: Vec<Value> = (0..6)
            .map(|at| {
                let on = edges.iter().filter(|(from, to)| *from == at && (loops || to < from));
                let on: Vec<&str> = on.map(|(_, to)| names[*to]).collect();
                component(names[at], &on, &json!([]))
            })
            .collect();

        let graph = graph(&version(&components));

        let step = |name: &ComponentName| graph.components.iter().find(|one| one.name == *name).unwrap().step;
        prop_assert_eq!(graph.components.len(), 6);
        if !loops {
            prop_assert!(graph.edges.iter().all(|edge| step(&edge.from) < step(&edge.to)));
        }
    }
}
