//! Reads what `pulumi preview --json` and `pulumi stack export` print.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde_json::Value;

use super::data::holds_data;

/// The numbers of changes in a preview, by operation, such as `create`.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Steps {
    #[serde(default, rename = "changeSummary")]
    summary: BTreeMap<String, u64>,
}

impl Steps {
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
    use serde_json::json;

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
