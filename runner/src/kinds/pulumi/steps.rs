//! Reads what `pulumi preview --json` and `pulumi stack export` print.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::data::holds_data;
use crate::kinds::guard;

/// The changes in a preview.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Steps {
    /// The numbers of changes by operation, such as `create`.
    #[serde(default, rename = "changeSummary")]
    summary: BTreeMap<String, u64>,
    /// The step of each resource. With `--show-sames`, these are also the steps of unchanged resources.
    #[serde(default)]
    steps: Vec<Step>,
}

#[derive(Debug, Deserialize)]
struct Step {
    op: String,
    urn: String,
    #[serde(default, rename = "oldState")]
    old: Option<Options>,
    #[serde(default, rename = "newState")]
    new: Option<Options>,
}

/// The options of a resource, such as `protect`: its state (`ResourceV3` in Pulumi's package `apitype`) except
/// inputs, outputs and what a preview leaves empty. The saved plan has the changes of inputs and outputs.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Options {
    #[serde(default)]
    id: IgnoredAny,
    #[serde(default)]
    inputs: Inputs,
    #[serde(default)]
    outputs: IgnoredAny,
    #[serde(default)]
    created: IgnoredAny,
    #[serde(default)]
    modified: IgnoredAny,
    #[serde(default)]
    source_position: IgnoredAny,
    #[serde(default)]
    stack_trace: IgnoredAny,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

/// The inputs of a resource. They are not compared, because the saved plan has their changes.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
struct Inputs(Value);

impl PartialEq for Inputs {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Step {
    /// Returns the change of the resource in the form of a plan of Terraform; `None` for a resource that is only read.
    fn change(&self) -> Option<Value> {
        let actions: &[&str] = match self.op.as_str() {
            "same" => &["no-op"],
            "create" => &["create"],
            "update" => &["update"],
            "delete" => &["delete"],
            "replace" => &["delete", "create"],
            "import" | "import-replacement" => &["create"],
            // The two halves of a replacement, which has a step of its own.
            _ => return None,
        };
        let inputs = |options: &Option<Options>| options.as_ref().map_or(Value::Null, |one| one.inputs.0.clone());
        let kind = |options: &Option<Options>| options.as_ref()?.rest.get("type")?.as_str().map(str::to_owned);
        let kind = kind(&self.new).or_else(|| kind(&self.old)).unwrap_or_default();
        let mut change = guard::change(&self.urn, &kind, actions, &inputs(&self.old), &inputs(&self.new));
        if self.op.starts_with("import")
            && let Some(of_plan) = change.get_mut("change").and_then(Value::as_object_mut)
        {
            of_plan.insert("importing".to_owned(), json!({}));
        }
        Some(change)
    }

    /// Returns whether the resource and its options stay as they are. A step of the operation `same` may change options,
    /// and the resource's URN by an alias.
    fn keeps_all(&self) -> bool {
        self.op == "same" && self.old.is_some() && self.old == self.new
    }
}

impl Steps {
    /// Returns the URNs of the resources that stay as they are, with all their options.
    pub(super) fn kept(&self) -> BTreeSet<String> {
        self.steps.iter().filter(|step| step.keeps_all()).map(|step| step.urn.clone()).collect()
    }

    /// Returns the changes in the form of a plan of Terraform.
    pub(super) fn changes(&self) -> Vec<Value> {
        self.steps.iter().filter_map(Step::change).collect()
    }

    /// Returns whether no resource changes. Outputs of the stack may change all the same.
    pub(super) fn is_noop(&self) -> bool {
        self.summary.iter().all(|(operation, count)| operation == "same" || *count == 0)
    }
}

impl fmt::Display for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let changes: Vec<String> = self
            .summary
            .iter()
            .filter(|(operation, count)| operation.as_str() != "same" && **count > 0)
            .map(|(operation, count)| format!("{count} to {operation}"))
            .collect();
        if changes.is_empty() { write!(f, "no change of a resource") } else { write!(f, "{}", changes.join(", ")) }
    }
}

/// The resources of a stack, as `pulumi stack export` prints them.
#[derive(Debug, Deserialize)]
pub(super) struct Exported {
    #[serde(default)]
    deployment: Deployment,
}

#[derive(Debug, Default, Deserialize)]
struct Deployment {
    #[serde(default)]
    resources: Vec<Resource>,
}

#[derive(Debug, Deserialize)]
struct Resource {
    urn: String,
    #[serde(default, rename = "type")]
    kind: String,
    /// Whether a provider manages the resource. The stack itself and components of programs are not.
    #[serde(default)]
    custom: bool,
    /// Whether the resource was only read.
    #[serde(default)]
    external: bool,
    #[serde(default)]
    outputs: Value,
}

impl Exported {
    fn made(&self) -> impl Iterator<Item = &Resource> {
        let is_made = |one: &&Resource| one.custom && !one.external && !one.kind.starts_with("pulumi:providers:");
        self.deployment.resources.iter().filter(is_made)
    }

    /// Returns the changes that a removal makes, in the form of a plan of Terraform.
    pub(super) fn changes(&self) -> Vec<Value> {
        let delete = |one: &Resource| guard::change(&one.urn, &one.kind, &["delete"], &one.outputs, &Value::Null);
        self.made().map(delete).collect()
    }

    /// Returns the number of resources that a removal destroys.
    pub(super) fn count(&self) -> usize {
        self.made().count()
    }

    /// Returns the resources that hold data, by name and type.
    pub(super) fn holding_data(&self) -> Vec<String> {
        let held = self.made().filter(|one| holds_data(&one.kind, &one.outputs));
        held.map(|one| format!("{} ({})", one.urn.rsplit("::").next().unwrap_or(&one.urn), one.kind)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preview_is_shown_by_its_operations() {
        let steps = |summary: Value| serde_json::from_value::<Steps>(json!({ "changeSummary": summary })).unwrap();

        assert_eq!(steps(json!({ "create": 2, "same": 1, "delete": 1 })).to_string(), "2 to create, 1 to delete");
        assert_eq!(steps(json!({ "same": 3 })).to_string(), "no change of a resource");
        assert!(
            steps(json!({ "same": 3, "update": 0 })).is_noop() && !steps(json!({ "same": 3, "read": 1 })).is_noop()
        );
        assert_eq!(serde_json::from_str::<Steps>("{}").unwrap().to_string(), "no change of a resource");
    }

    #[test]
    fn a_resource_that_is_taken_over_is_told_apart_from_a_new_one() {
        let step = |op: &str| json!({ "op": op, "urn": "a", "newState": { "urn": "a", "type": "aws:ec2/vpc:Vpc", "inputs": {} } });
        let all = json!({ "steps": [step("create"), step("import"), step("import-replacement")] });

        let changes = serde_json::from_value::<Steps>(all).unwrap().changes();

        let importing: Vec<bool> = changes.iter().map(|one| one["change"].get("importing").is_some()).collect();
        assert_eq!(importing, [false, true, true]);
    }

    #[test]
    fn a_resource_stays_when_none_of_its_options_changes() {
        let kept = |new: Value| {
            let old = json!({ "urn": "a", "custom": true, "id": "vpc-1", "created": "1", "inputs": { "x": 1 }, "protect": true });
            let step = json!({ "op": "same", "urn": "a", "oldState": old, "newState": new });
            serde_json::from_value::<Steps>(json!({ "steps": [step] })).unwrap().kept().len()
        };

        assert_eq!(kept(json!({ "urn": "a", "custom": true, "protect": true, "sourcePosition": "main.go:2" })), 1);
        for changed in [
            json!({ "urn": "a", "custom": true }),
            json!({ "urn": "b", "custom": true, "protect": true }),
            json!({ "urn": "a", "custom": true, "protect": true, "retainOnDelete": true }),
            Value::Null,
        ] {
            assert_eq!(kept(changed.clone()), 0, "{changed}");
        }
        let updated = json!([{ "op": "update", "urn": "a", "oldState": { "urn": "a" }, "newState": { "urn": "a" } }]);
        assert!(serde_json::from_value::<Steps>(json!({ "steps": updated })).unwrap().kept().is_empty());
    }

    #[test]
    fn resources_that_hold_data_are_found_among_those_that_the_program_made() {
        let one = |kind: &str, more: Value| {
            let mut all = json!({ "urn": format!("urn:pulumi:i::p::{kind}::main"), "type": kind, "custom": true });
            all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            all
        };
        let exported: Exported = serde_json::from_value(json!({ "version": 3, "deployment": { "resources": [
            one("pulumi:pulumi:Stack", json!({ "custom": false })),
            one("pulumi:providers:aws", json!({})),
            one("aws:rds/instance:Instance", json!({})),
            one("aws:rds/cluster:Cluster", json!({ "external": true })),
            one("aws:s3/bucketV2:BucketV2", json!({ "outputs": { "forceDestroy": true } })),
            one("aws:ec2/vpc:Vpc", json!({})),
        ] } }))
        .unwrap();

        assert_eq!(exported.count(), 3);
        assert_eq!(exported.holding_data(), ["main (aws:rds/instance:Instance)", "main (aws:s3/bucketV2:BucketV2)"]);
        let never_updated = json!({ "version": 3, "deployment": {} });
        assert_eq!(serde_json::from_value::<Exported>(never_updated).unwrap().count(), 0);
    }
}
