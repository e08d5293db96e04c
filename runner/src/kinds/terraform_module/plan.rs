//! Reads the changes in a plan, and the outputs after the apply.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde_json::Value;

use super::data::holds_data;
use super::own_tags;
use super::program::Terraform;
use crate::job::failure::Failure;
use crate::kinds::plan_file::PlanFile;

/// The numbers of resources that a plan creates, updates, replaces and deletes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    create: u32,
    update: u32,
    replace: u32,
    delete: u32,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { create, update, replace, delete } = self;
        write!(f, "{create} to create, {update} to update, {replace} to replace, {delete} to delete")
    }
}

/// The part of the output of `terraform show -json` that the runner itself needs. Policies get all of it.
#[derive(Deserialize)]
struct Plan {
    #[serde(default)]
    resource_changes: Vec<ResourceChange>,
    #[serde(default)]
    output_changes: BTreeMap<String, OutputChange>,
}

#[derive(Deserialize)]
struct OutputChange {
    actions: Vec<String>,
}

#[derive(Deserialize)]
struct ResourceChange {
    #[serde(default)]
    address: String,
    #[serde(default, rename = "type")]
    kind: String,
    /// The address before a `moved` block took effect.
    #[serde(default)]
    previous_address: Option<String>,
    change: Change,
}

#[derive(Deserialize)]
struct Change {
    actions: Vec<String>,
    /// Present for a resource that an `import` block takes into the state.
    #[serde(default)]
    importing: Option<Value>,
    #[serde(default)]
    before: Value,
    #[serde(default)]
    after: Value,
    /// `true` for each attribute that is known only after the apply.
    #[serde(default)]
    after_unknown: Value,
}

impl Change {
    fn is_noop(&self) -> bool {
        self.actions == ["no-op"]
    }

    /// Returns whether the change is an update that only adds tags of the install.
    fn only_adds_tags(&self) -> bool {
        self.actions == ["update"] && own_tags::only_adds_tags(&self.before, &self.after, &self.after_unknown)
    }
}

/// The changes that a plan would make.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Changes {
    pub(super) counts: Counts,
    /// The addresses of the resources that hold data and would be destroyed.
    pub(super) data: Vec<String>,
    /// Whether an apply of the plan would change neither a resource, nor an output, nor the state. Tags of the install that
    /// a resource lacks do not count: an apply for another reason sets them.
    pub(super) is_noop: bool,
    /// Whether an apply of the plan would add tags of the install to resources, and change nothing else.
    pub(super) only_adds_tags: bool,
}

impl Plan {
    /// Counts the changes by their lists of actions (Terraform "JSON output format", "Change representation").
    fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for change in &self.resource_changes {
            let actions: Vec<&str> = change.change.actions.iter().map(String::as_str).collect();
            match actions.as_slice() {
                ["create"] => counts.create += 1,
                ["update"] => counts.update += 1,
                ["delete"] => counts.delete += 1,
                ["delete", "create"] | ["create", "delete"] => counts.replace += 1,
                _ => {}
            }
        }
        counts
    }

    fn is_noop(&self) -> bool {
        let resources = self.resource_changes.iter().all(|one| {
            let is_kept = one.change.is_noop() || one.change.only_adds_tags();
            is_kept && one.change.importing.is_none() && one.previous_address.is_none()
        });
        resources && self.output_changes.values().all(|one| one.actions == ["no-op"])
    }

    fn only_adds_tags(&self) -> bool {
        self.is_noop() && self.resource_changes.iter().any(|one| !one.change.is_noop())
    }

    fn destroyed_data(&self) -> Vec<String> {
        let destroyed =
            self.resource_changes.iter().filter(|one| one.change.actions.iter().any(|word| word == "delete"));
        let held = destroyed.filter(|one| holds_data(&one.kind, &one.change.before));
        held.map(|one| one.address.clone()).collect()
    }
}

/// Returns the changes in the plan file, and the whole plan as JSON.
pub(super) async fn read(terraform: &Terraform<'_>, plan: &PlanFile) -> Result<(Changes, Value), Failure> {
    let mut arguments = ["show", "-json", "-no-color"].map(String::from).to_vec();
    arguments.push(plan.path().display().to_string());
    let document: Value = terraform.capture_of("show", arguments, plan).await?;
    let plan = Plan::deserialize(&document)
        .map_err(|error| Failure::because("could not read what `terraform show` printed", &error))?;
    let changes = Changes {
        counts: plan.counts(),
        data: plan.destroyed_data(),
        is_noop: plan.is_noop(),
        only_adds_tags: plan.only_adds_tags(),
    };
    Ok((changes, document))
}

/// The outputs in the state.
#[derive(Default)]
pub(super) struct Outputs {
    pub(super) plain: BTreeMap<String, Value>,
    /// The sensitive outputs. Their values are not reported.
    pub(super) sensitive: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
struct One {
    #[serde(default)]
    sensitive: bool,
    value: Value,
}

/// Reads the outputs.
pub(super) async fn outputs(terraform: &Terraform<'_>) -> Result<Outputs, Failure> {
    let arguments = ["output", "-json", "-no-color"].map(String::from).to_vec();
    let all: BTreeMap<String, One> = terraform.capture("output", arguments).await?;
    Ok(split(all))
}

fn split(all: BTreeMap<String, One>) -> Outputs {
    let mut outputs = Outputs::default();
    for (name, one) in all {
        let place = if one.sensitive { &mut outputs.sensitive } else { &mut outputs.plain };
        place.insert(name, one.value);
    }
    outputs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_counted_by_what_they_do() {
        let text = r#"{"format_version":"1.2","resource_changes":[
            {"change":{"actions":["create"]}},{"change":{"actions":["no-op"]}},{"change":{"actions":["delete","create"]}},
            {"change":{"actions":["create","delete"]}},{"change":{"actions":["delete"]}},{"change":{"actions":["read"]}}]}"#;

        let counts = serde_json::from_str::<Plan>(text).unwrap().counts();

        assert_eq!(counts.to_string(), "1 to create, 0 to update, 2 to replace, 1 to delete");
    }

    #[test]
    fn a_plan_is_a_noop_when_neither_resources_nor_outputs_nor_addresses_change() {
        let is_noop = |text: &str| serde_json::from_str::<Plan>(text).unwrap().is_noop();
        let kept = r#""address":"a.b","change":{"actions":["no-op"]}"#;

        assert!(is_noop(&format!(
            r#"{{"resource_changes":[{{{kept}}}],"output_changes":{{"x":{{"actions":["no-op"]}}}}}}"#
        )));
        for changed in [
            r#"{"resource_changes":[{"change":{"actions":["update"]}}]}"#.to_owned(),
            r#"{"resource_changes":[{"change":{"actions":["read"]}}]}"#.to_owned(),
            r#"{"resource_changes":[{"change":{"actions":["no-op"],"importing":{"id":"i"}}}]}"#.to_owned(),
            format!(r#"{{"resource_changes":[{{"previous_address":"a.c",{kept}}}]}}"#),
            r#"{"output_changes":{"x":{"actions":["create"]}}}"#.to_owned(),
        ] {
            assert!(!is_noop(&changed), "{changed}");
        }
    }

    #[test]
    fn a_plan_that_only_adds_our_tags_is_a_noop() {
        let plan = |after: &str| {
            let change = format!(r#"{{"actions":["update"],"before":{{"size":1,"tags_all":{{}}}},"after":{after}}}"#);
            let text =
                format!(r#"{{"resource_changes":[{{"change":{{"actions":["no-op"]}}}},{{"change":{change}}}]}}"#);
            let plan: Plan = serde_json::from_str(&text).unwrap();
            (plan.is_noop(), plan.only_adds_tags())
        };

        assert_eq!(plan(r#"{"size":1,"tags_all":{"freehold:app":"shop"}}"#), (true, true));
        assert_eq!(plan(r#"{"size":2,"tags_all":{"freehold:app":"shop"}}"#), (false, false));
        assert_eq!(plan(r#"{"size":1,"tags_all":{"app":"shop"}}"#), (false, false));
        let unchanged: Plan =
            serde_json::from_str(r#"{"resource_changes":[{"change":{"actions":["no-op"]}}]}"#).unwrap();
        assert!(unchanged.is_noop() && !unchanged.only_adds_tags());
    }

    #[test]
    fn only_what_is_destroyed_counts_as_data_that_would_be_lost() {
        let text = r#"{"resource_changes":[
            {"address":"aws_db_instance.main","type":"aws_db_instance","change":{"actions":["delete"],"before":{}}},
            {"address":"aws_dynamodb_table.a","type":"aws_dynamodb_table","change":{"actions":["delete","create"],"before":{}}},
            {"address":"aws_db_instance.kept","type":"aws_db_instance","change":{"actions":["update"],"before":{}}},
            {"address":"aws_vpc.main","type":"aws_vpc","change":{"actions":["delete"],"before":{}}},
            {"address":"aws_s3_bucket.x","type":"aws_s3_bucket","change":{"actions":["delete"],"before":{"force_destroy":true}}}]}"#;

        let plan: Plan = serde_json::from_str(text).unwrap();

        assert_eq!(plan.destroyed_data(), ["aws_db_instance.main", "aws_dynamodb_table.a", "aws_s3_bucket.x"]);
    }

    #[test]
    fn sensitive_outputs_are_apart() {
        let text = r#"{"a":{"sensitive":false,"type":"string","value":"x"},"b":{"sensitive":true,"type":"string","value":"s"}}"#;

        let outputs = split(serde_json::from_str(text).unwrap());

        assert_eq!(outputs.plain, BTreeMap::from([("a".to_owned(), Value::from("x"))]));
        assert_eq!(outputs.sensitive, BTreeMap::from([("b".to_owned(), Value::from("s"))]));
    }
}
