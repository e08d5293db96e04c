//! Checks that buckets, secrets, queues, topics and volumes are encrypted.

use crate::finding::{Finding, Rule};
use crate::node::Node;
use crate::template::{Resource, Template};

/// Finds resources and volumes of instances that are not encrypted.
pub(super) fn find(template: &Template<'_>) -> Vec<Finding> {
    template.resources().flat_map(|resource| of_resource(resource).into_iter().chain(of_volumes(resource))).collect()
}

fn of_resource(resource: Resource<'_>) -> Option<Finding> {
    let says = |key: &str| resource.property(&[key]).map(Node::to_text);
    let kind = resource.kind;
    let is = match kind {
        "AWS::S3::Bucket" => resource.property(&["BucketEncryption", "ServerSideEncryptionConfiguration"]).is_some(),
        "AWS::SecretsManager::Secret" => says("KmsKeyId").is_some(),
        "AWS::SNS::Topic" => says("KmsMasterKeyId").is_some(),
        "AWS::EC2::Volume" => says("Encrypted").as_deref() == Some("true"),
        "AWS::SQS::Queue" => {
            says("SqsManagedSseEnabled").as_deref() != Some("false") || says("KmsMasterKeyId").is_some()
        }
        _ => true,
    };
    let reason = match kind {
        "AWS::S3::Bucket" => "this bucket has no `BucketEncryption`".to_owned(),
        _ => format!("this `{kind}` is not encrypted"),
    };
    (!is).then(|| resource.finding(Rule::Encryption, resource.node, reason))
}

/// Finds volumes that a resource attaches to instances without encryption.
fn of_volumes(resource: Resource<'_>) -> Vec<Finding> {
    let mut volumes = Vec::new();
    resource.node.walk(&mut |node| {
        let mappings = node.get("BlockDeviceMappings").map(Node::each).unwrap_or_default();
        volumes.extend(mappings.into_iter().filter_map(|mapping| mapping.get("Ebs")));
    });
    let volumes = volumes.into_iter().flat_map(Node::each);
    let open = volumes.filter(|volume| volume.get("Encrypted").and_then(Node::text) != Some("true"));
    open.map(|volume| resource.finding(Rule::Encryption, volume, "this volume is not encrypted")).collect()
}
