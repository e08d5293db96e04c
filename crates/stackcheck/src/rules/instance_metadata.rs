//! Checks that the metadata of an instance can be read only with a token, and only from the instance itself.

use crate::finding::{Finding, Rule};
use crate::template::{Resource, Template};

/// Finds instances and launch templates that do not require IMDSv2 with a hop limit of 1.
pub(super) fn find(template: &Template<'_>) -> Vec<Finding> {
    let instances = template.resources().flat_map(|resource| match resource.kind {
        "AWS::EC2::LaunchTemplate" => of_instance(resource, &["LaunchTemplateData", "MetadataOptions"]),
        "AWS::EC2::Instance" => of_instance(resource, &["MetadataOptions"]),
        _ => Vec::new(),
    });
    instances.collect()
}

fn of_instance(resource: Resource<'_>, under: &[&str]) -> Vec<Finding> {
    let options = resource.property(under);
    let at = options.unwrap_or(resource.node);
    let says = |key: &str| options.and_then(|options| options.get(key)?.text());
    let mut found = Vec::new();
    if says("HttpTokens") != Some("required") {
        found.push(resource.finding(Rule::InstanceMetadata, at, "`HttpTokens` has to be `required` (IMDSv2)"));
    }
    if says("HttpPutResponseHopLimit") != Some("1") {
        found.push(resource.finding(Rule::InstanceMetadata, at, "`HttpPutResponseHopLimit` has to be 1"));
    }
    found
}
