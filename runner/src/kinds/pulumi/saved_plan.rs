//! Reads from a saved plan of Pulumi whether an update would change anything.
//!
//! `preview --json` counts the changes of resources. The saved plan also shows how each resource's inputs and outputs
//! change, and the stack is one of these resources (`DeploymentPlanV1` in Pulumi's package `apitype`). The saved plan
//! does not show which options of a resource change, so the preview must also show that the resource is unchanged.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufReader, Read as _};

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::kinds::plan_file::PlanFile;

/// The size limit of a plan that is read, in bytes. A larger plan counts as one that changes something.
const MAX_READ: u64 = 64 * 1024 * 1024;

#[derive(Debug, Default, Deserialize)]
struct SavedPlan {
    #[serde(default, rename = "resourcePlans")]
    resources: BTreeMap<String, ResourcePlan>,
}

#[derive(Debug, Deserialize)]
struct ResourcePlan {
    goal: Option<Goal>,
    #[serde(default)]
    steps: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Goal {
    #[serde(default, rename = "inputDiff")]
    inputs: Difference,
    #[serde(default, rename = "outputDiff")]
    outputs: Difference,
}

#[derive(Debug, Default, Deserialize)]
struct Difference {
    #[serde(default)]
    adds: BTreeMap<String, IgnoredAny>,
    #[serde(default)]
    deletes: Vec<String>,
    #[serde(default)]
    updates: BTreeMap<String, IgnoredAny>,
}

/// Returns whether an update by this plan changes nothing: no resource, no option of a resource, and no output of the
/// stack. `kept` are the URNs of the resources whose options stay. A plan that cannot be read counts as one that
/// changes something.
pub(super) async fn is_noop(plan: &PlanFile, kept: BTreeSet<String>) -> bool {
    let path = plan.path();
    let read = tokio::task::spawn_blocking(move || {
        let file = File::open(path).ok()?;
        serde_json::from_reader::<_, SavedPlan>(BufReader::new(file.take(MAX_READ))).ok()
    });
    matches!(read.await, Ok(Some(plan)) if plan.is_noop(&kept))
}

impl SavedPlan {
    fn is_noop(&self, kept: &BTreeSet<String>) -> bool {
        let has_stack = self.resources.keys().any(|urn| urn.contains("::pulumi:pulumi:Stack::"));
        let stays = |urn: &String| kept.contains(urn) || is_default_provider(urn);
        has_stack && self.resources.iter().all(|(urn, plan)| plan.is_noop() && stays(urn))
    }
}

/// Returns whether the resource is a default provider, which Pulumi itself makes for resources that name no provider. A
/// preview does not show a step for it.
fn is_default_provider(urn: &str) -> bool {
    urn.contains("::pulumi:providers:") && urn.rsplit("::").next().is_some_and(|name| name.starts_with("default"))
}

impl ResourcePlan {
    fn is_noop(&self) -> bool {
        let stays = !self.steps.is_empty() && self.steps.iter().all(|step| step == "same");
        stays && self.goal.as_ref().is_some_and(|goal| goal.inputs.is_empty() && goal.outputs.is_empty())
    }
}

impl Difference {
    fn is_empty(&self) -> bool {
        self.adds.is_empty() && self.deletes.is_empty() && self.updates.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const STACK: &str = "urn:pulumi:globex::net::pulumi:pulumi:Stack::net-globex";
    const VPC: &str = "urn:pulumi:globex::net::aws:ec2/vpc:Vpc::main";

    const PROVIDER: &str = "urn:pulumi:globex::net::pulumi:providers:aws::default_6_0_0";

    fn is_noop(resources: Value) -> bool {
        let plan: SavedPlan = serde_json::from_value(json!({ "manifest": {}, "resourcePlans": resources })).unwrap();
        plan.is_noop(&[STACK, VPC].map(str::to_owned).into())
    }

    #[test]
    fn a_plan_changes_nothing_when_each_resource_and_output_stays() {
        let same = json!({ "goal": { "inputDiff": {}, "outputDiff": {} }, "steps": ["same"], "state": {} });
        let with_output = |difference: Value| {
            let stack = json!({ "goal": { "outputDiff": difference }, "steps": ["same"], "state": {} });
            is_noop(json!({ STACK: stack, VPC: same }))
        };

        assert!(is_noop(json!({ STACK: same, VPC: same, PROVIDER: same })));
        assert!(!is_noop(json!({ STACK: same, "urn:pulumi:globex::net::aws:ec2/vpc:Vpc::other": same })));
        let with_input = json!({ "goal": { "inputDiff": { "adds": { "tags": {} } } }, "steps": ["same"] });
        assert!(!is_noop(json!({ STACK: same, VPC: with_input })));
        assert!(!with_output(json!({ "adds": { "zone": "a" } })));
        assert!(!with_output(json!({ "updates": { "zone": "b" } })));
        assert!(!with_output(json!({ "deletes": ["zone"] })));
        for steps in [json!(["update"]), json!(["same", "delete"]), json!([])] {
            assert!(!is_noop(json!({ STACK: same, VPC: { "goal": { "outputDiff": {} }, "steps": steps } })));
        }
        assert!(!is_noop(json!({ STACK: same, VPC: { "goal": null, "steps": ["same"] } })));
        assert!(!is_noop(json!({ VPC: same })), "a plan without the stack does not say whether an output changes");
    }
}
