//! Checks that no bucket can be made public.

use crate::finding::{Finding, Rule};
use crate::template::{Resource, Template};

/// The four settings that block public access to a bucket.
const BLOCKS: [&str; 4] = ["BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"];

/// Finds buckets that lack one of the four settings.
pub(super) fn find(template: &Template<'_>) -> Vec<Finding> {
    template.resources().filter(|resource| resource.kind == "AWS::S3::Bucket").filter_map(of_bucket).collect()
}

fn of_bucket(bucket: Resource<'_>) -> Option<Finding> {
    let block = bucket.property(&["PublicAccessBlockConfiguration"]);
    let is_open = |key: &&str| block.and_then(|block| block.get(key)?.text()) != Some("true");
    let open: Vec<&str> = BLOCKS.into_iter().filter(is_open).collect();
    let reason = format!("`PublicAccessBlockConfiguration` is not `true` for {}", open.join(", "));
    (!open.is_empty()).then(|| bucket.finding(Rule::NoPublicAccess, block.unwrap_or(bucket.node), reason))
}
