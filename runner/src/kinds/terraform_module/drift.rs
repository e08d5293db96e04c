//! The drift of a module: what a plan with the values of its last deploy would change. The plan takes no lock and writes no
//! state.

use std::path::Path;

use freehold_protocol::approval::ChangeKind;
use freehold_protocol::order::ApplyTerraform;
use freehold_protocol::order::drift::DriftedResource;
use serde_json::Value;

use super::files::{MODULE, PLAN_FILE, Variables};
use super::own_tags::{only_adds_tags, with_added_tags};
use super::program::Terraform;
use super::{Prepared, plan, prepare};
use crate::approvals::kind_of_change;
use crate::attribute_names::{Marks, differing};
use crate::job::bucket::JobBucket;
use crate::job::failure::Failure;
use crate::job::{Job, sdk_config};
use crate::kinds::plan_file::PlanFile;
use crate::kinds::result::job_aws;

/// Returns the resources that differ from the module. The plan stays in the workspace.
pub(in crate::kinds) async fn check(job: &Job, work: &ApplyTerraform) -> Result<Vec<DriftedResource>, Failure> {
    let bucket = JobBucket::of(job, &sdk_config(job).await)?;
    let aws = job_aws(job).await?;
    let Prepared { terraform, variables, .. } = prepare(job, work, &bucket, &aws).await?;
    let found = make_plan(&terraform, &variables).await;
    aws.finish().await;
    Ok(drifted(&found?))
}

/// Makes a plan and returns it as JSON.
async fn make_plan(terraform: &Terraform<'_>, variables: &Variables) -> Result<Value, Failure> {
    terraform.check_version().await?;
    terraform.init().await?;
    let plan = ["plan", "-input=false", "-no-color", "-lock=false", "-out=plan.bin"].map(String::from);
    terraform.run_unlogged("plan", plan.into_iter().chain(variables.options.iter().cloned()).collect()).await?;
    let file = PlanFile::copy(terraform.job(), &Path::new(MODULE).join(PLAN_FILE)).await?;
    let (_, document) = plan::read(terraform, &file).await?;
    Ok(document)
}

/// Returns the resources that the plan changes. Outputs and data sources are left out: a resource that differs explains
/// them. Tags of the install that a resource lacks do not count: an earlier version of the runner did not set them.
fn drifted(document: &Value) -> Vec<DriftedResource> {
    let all = document.get("resource_changes").and_then(Value::as_array).into_iter().flatten();
    let text = |one: &Value, key: &str| one.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let drifted = all.filter_map(|one| {
        let change = one.get("change")?;
        let kind = kind_of_change(change)?;
        let of = |key: &str| change.get(key).unwrap_or(&Value::Null);
        if kind == ChangeKind::Update && only_adds_tags(of("before"), of("after"), of("after_unknown")) {
            return None;
        }
        let attributes = match kind {
            ChangeKind::Update | ChangeKind::Replace | ChangeKind::Run => attributes(change),
            ChangeKind::Create | ChangeKind::Delete => Vec::new(),
        };
        let (address, of) = (text(one, "address"), text(one, "type"));
        Some(DriftedResource { address, kind: of, change: kind, attributes, more_attributes: 0 })
    });
    drifted.collect()
}

fn attributes(change: &Value) -> Vec<String> {
    let of = |key: &str| change.get(key).unwrap_or(&Value::Null);
    let sensitive = [of("before_sensitive"), of("after_sensitive")];
    differing(
        &with_added_tags(of("before"), of("after")),
        of("after"),
        Marks { sensitive, unknown: of("after_unknown") },
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_plan_is_read_as_names_of_resources_and_attributes() {
        let document = json!({
            "resource_changes": [
                { "address": "aws_sqs_queue.jobs", "type": "aws_sqs_queue", "change": {
                    "actions": ["update"],
                    "before": { "delay_seconds": 90, "tags": { "Owner": "ada" }, "policy": "secret-1", "arn": "a" },
                    "after": { "delay_seconds": 0, "tags": {}, "policy": "secret-2",
                        "tags_all": { "freehold:app": "shop" } },
                    "after_unknown": { "arn": true }, "before_sensitive": { "policy": true }, "after_sensitive": {} } },
                { "address": "aws_sqs_queue.gone", "type": "aws_sqs_queue", "change": {
                    "actions": ["create"], "before": null, "after": { "name": "gone" } } },
                { "address": "aws_sqs_queue.older", "type": "aws_sqs_queue", "change": {
                    "actions": ["update"],
                    "before": { "name": "older", "tags_all": {} },
                    "after": { "name": "older", "tags_all": { "freehold:app": "shop" } } } },
                { "address": "aws_sqs_queue.same", "type": "aws_sqs_queue", "change": { "actions": ["no-op"] } },
                { "address": "data.aws_region.r", "type": "aws_region", "change": { "actions": ["read"] } },
            ],
            "output_changes": { "url": { "actions": ["update"], "before": "secret-3" } },
        });

        let found = drifted(&document);

        let lines: Vec<String> = found
            .iter()
            .map(|one| format!("{} {} {}", one.change.as_str(), one.address, one.attributes.join(",")))
            .collect();
        assert_eq!(lines, ["update aws_sqs_queue.jobs delay_seconds,policy,tags.Owner", "create aws_sqs_queue.gone "]);
        assert!(!serde_json::to_string(&found).unwrap().contains("secret"));
    }
}
