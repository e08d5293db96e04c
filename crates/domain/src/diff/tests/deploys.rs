//! The nodes that a diff predicts, compared with those that the planner plans.

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::app_version::{AppVersion, Component, Input};
use freehold_protocol::order::Artifact;
use freehold_protocol::sealing::{SealedValue, SealingKey};
use freehold_protocol::{BuildId, ComponentName, Digest, JobId, Timestamp, WorkflowId};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::version;
use crate::build::{Build, BuildState};
use crate::diff::{Cause, diff};
use crate::inputs::resolve_inputs;
use crate::plan::{DeployInput, DeployScope, Deployed, SecretsState, TogglesState, deploy_nodes};
use crate::sealed_inputs::is_sealed;
use crate::workflow::{Deploys, Node};

const NAMES: [&str; 4] = ["api", "db", "queue", "web"];

/// Components that depend on earlier ones only, read inputs, and come of one of two sources.
fn components() -> impl Strategy<Value = Vec<Value>> {
    let one = |at: usize| {
        let inputs = prop::collection::btree_set(0_usize..3, 0..3);
        let after = prop::collection::btree_set(0..at.max(1), 0..3);
        let parts = (any::<bool>(), 0_u8..2, 0_u8..2, after, inputs, any::<bool>());
        parts.prop_map(move |(there, files, size, after, inputs, reads)| {
            let after: Vec<&str> = after.into_iter().filter(|on| *on < at).map(|on| NAMES[on]).collect();
            let sandbox = reads.then(|| json!({ "to": "sandbox", "name": "vpc" }));
            let inputs = inputs.into_iter().map(|input| json!({ "to": "input", "name": format!("i{input}") }));
            let references: Vec<Value> = inputs.chain(sandbox).collect();
            there.then(|| {
                json!({
                    "name": NAMES[at], "dependencies": after, "references": references, "deploy_timeout_secs": 60,
                    "source": { "from": "directory", "digest": Digest::of(&[files]) },
                    "spec": { "kind": "terraform_module", "terraform_version": "1.11.3", "vars": { "size": size } },
                })
            })
        })
    };
    let all = (one(0), one(1), one(2), one(3));
    all.prop_map(|(a, b, c, d)| [a, b, c, d].into_iter().flatten().collect::<Vec<Value>>()).prop_map(only_known)
}

/// A component cannot depend on one that is not there.
fn only_known(mut components: Vec<Value>) -> Vec<Value> {
    let known: BTreeSet<String> = components.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect();
    for component in &mut components {
        let on = component["dependencies"].as_array_mut().unwrap();
        on.retain(|name| known.contains(name.as_str().unwrap()));
    }
    components
}

fn inputs() -> impl Strategy<Value = Vec<Value>> {
    let one = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), prop::option::of(0_u8..2), any::<bool>());
    prop::collection::vec(one, 3).prop_map(|all| {
        let there = all.into_iter().enumerate().filter(|(_, one)| one.0);
        there
            .map(|(at, (_, required, customer, sensitive, default, number))| {
                let kind = if number { "number" } else { "string" };
                json!({
                    "name": format!("i{at}"), "type": kind, "required": required, "customer": customer,
                    "sensitive": sensitive, "default": default.map(|default| default.to_string()),
                })
            })
            .collect()
    })
}

fn versions() -> impl Strategy<Value = AppVersion> {
    let parts = (components(), inputs(), 0_usize..4, 0_usize..4, prop::option::of(0_u8..2));
    parts.prop_map(|(components, inputs, event, of, sandbox)| {
        let sandbox = sandbox.map(|size| {
            json!({
                "tool": { "tool": "terraform", "version": "1.11.3" }, "source": { "from": "directory", "digest": Digest::of(b"") },
                "vars": { "size": size },
            })
        });
        let trigger = match event {
            0 => json!({ "on": "post_deploy_all_components" }),
            1 => json!({ "on": "post_deploy_component", "component": NAMES[of] }),
            2 => json!({ "on": "event", "event": "pre-deploy-component", "component": NAMES[of] }),
            _ => json!({ "on": "event", "event": "pre-deploy-all-components" }),
        };
        let action = |name: &str, triggers: Value| {
            json!({ "name": name, "timeout_secs": 60, "steps": [], "triggers": triggers })
        };
        version(json!({
            "components": components, "inputs": inputs, "sandbox": sandbox,
            "actions": [action("check", json!([{ "on": "manual" }, trigger])), action("say", json!([{ "on": "manual" }]))],
        }))
    })
}

/// Returns builds whose artifacts are named after their sources.
fn builds(version: &AppVersion) -> BTreeMap<ComponentName, Build> {
    let built = |component: &Component| {
        let source_digest = component.source_digest().unwrap();
        let artifact = Artifact {
            digest: source_digest.clone(),
            media_type: String::new(),
            manifests: Vec::new(),
            blobs: Vec::new(),
            provenance: None,
        };
        Build {
            id: BuildId::derive(&version.app, &source_digest, &component.name),
            app: version.app.clone(),
            component: component.name.clone(),
            package: component.spec.package(),
            source: component.source.clone(),
            source_digest,
            created_at: Timestamp::default(),
            unused_since: None,
            revoked: None,
            state: BuildState::Built { job: job(), artifact, built_at: Timestamp::default() },
        }
    };
    version.parts().map(|part| (part.name.clone(), built(&part))).collect()
}

fn job() -> JobId {
    JobId::derive(&WorkflowId::derive("build", "1"), "x")
}

/// Plans a deploy of `version` as the install's planner would.
fn planned(
    version: &AppVersion,
    given: &BTreeMap<String, Value>,
    answers: &BTreeMap<String, String>,
    deployed: &BTreeMap<ComponentName, Deployed>,
) -> Vec<Node> {
    let given = crate::inputs::known_inputs(version, given);
    let sealing = crate::sealed_inputs::Sealing { install: &"globex".parse().unwrap(), key: Some(&sealing_key()) };
    let inputs = resolve_inputs(version, &given, answers, sealing).unwrap();
    let input = DeployInput {
        version,
        builds: &builds(version),
        inputs: &inputs,
        secrets: SecretsState::none(),
        healthy: &BTreeSet::new(),
        toggles: TogglesState::none(),
        deployed,
        required: &BTreeMap::new(),
        licence: None,
        serial: 1,
    };
    deploy_nodes(input, &DeployScope::default()).unwrap()
}

fn deployed(nodes: Vec<Node>) -> BTreeMap<ComponentName, Deployed> {
    let one = |node: Node| {
        let Deploys { part, artifact, fingerprint, reads, .. } = node.target.deploys()?;
        let outputs = BTreeMap::new();
        let deployed = Deployed {
            component: part.clone(),
            fingerprint: fingerprint.clone(),
            artifact: artifact.clone(),
            version: Digest::of(b"from"),
            job: job(),
            at: Timestamp::default(),
            serial: 1,
            sandbox: reads.and_then(|reads| reads.digest(&outputs).unwrap()),
            outputs,
            sensitive: None,
            partial: false,
            partial_by: None,
            attempted: false,
            skipped: None,
            drift: None,
        };
        Some((part, deployed))
    };
    nodes.into_iter().filter_map(one).collect()
}

/// What the vendor gives where it must, the same for the same question, and told apart from every default.
fn given(version: &AppVersion) -> BTreeMap<String, Value> {
    let asked = version.inputs.iter().filter(|input| !input.customer && input.required && input.default.is_none());
    asked.map(|input| (input.name.clone(), value(input))).collect()
}

/// What the vendor gives for an input: a text that is also a number, sealed if the input is sensitive.
fn value(input: &Input) -> Value {
    if is_sealed(input) { json!(SealedValue::new(sealing_key(), [2; 32], vec![3; 80])) } else { json!("77") }
}

fn sealing_key() -> SealingKey {
    SealingKey::from_bytes([1; 32])
}

fn answers(version: &AppVersion) -> BTreeMap<String, String> {
    let asked = version.inputs.iter().filter(|input| input.customer);
    asked.map(|input| (input.parameter(), "88".to_owned())).collect()
}

proptest! {
    #[test]
    fn what_a_diff_says_will_run_is_what_the_planner_runs(from in versions(), to in versions()) {
        let (first, stack) = (given(&from), answers(&from));
        let live = deployed(planned(&from, &first, &stack, &BTreeMap::new()));
        let mut second = given(&to);
        for input in to.inputs.iter().filter(|input| first.contains_key(&input.name)) {
            // A value is given again when its input becomes sensitive, or is no longer.
            second.insert(input.name.clone(), value(input));
        }
        // The customer answers what is new and required before a deploy.
        let mut answered = stack.clone();
        let new = to.inputs.iter().filter(|input| input.customer && input.required && input.default.is_none());
        for input in new {
            answered.entry(input.parameter()).or_insert_with(|| "88".to_owned());
        }

        let nodes = planned(&to, &second, &answered, &live);
        let runs = diff(&from, &to).deploy;

        let nodes: BTreeSet<String> = nodes.into_iter().map(|node| node.name).collect();
        let names: BTreeSet<String> = runs.iter().map(|run| run.node.clone()).collect();
        prop_assert_eq!(&names, &nodes);
        prop_assert_eq!(runs.len(), nodes.len());
    }

    #[test]
    fn every_node_stands_after_those_that_cause_it(from in versions(), to in versions()) {
        let runs = diff(&from, &to).deploy;

        let at = |name: &str| runs.iter().position(|run| run.node == name);
        for (place, run) in runs.iter().enumerate() {
            let causes = match &run.cause {
                Cause::New | Cause::Changed => continue,
                Cause::Precedes { components } => {
                    prop_assert!(components.iter().all(|later| at(later).is_some_and(|after| after > place)), "{:?}", runs);
                    continue;
                }
                Cause::DependsOn { components } | Cause::TriggeredBy { components } => components,
            };
            prop_assert!(!causes.is_empty(), "{:?}", run);
            prop_assert!(causes.iter().all(|cause| at(cause).is_some_and(|before| before < place)), "{:?}", runs);
        }
    }

    #[test]
    fn a_diff_is_empty_when_nothing_differs_only(from in versions(), to in versions()) {
        prop_assert!(diff(&from, &from).is_empty());
        if from != to {
            prop_assert!(!diff(&from, &to).is_empty());
        }
    }
}
