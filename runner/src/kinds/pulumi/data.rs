//! Decides which resources hold data, whose only copy their removal would destroy.

use serde_json::Value;

use crate::kinds::cloudformation_stack;

/// The types of resources that hold data, as Pulumi's AWS provider names them.
const HOLDERS: [&str; 34] = [
    "aws:backup/vault:Vault",
    "aws:cognito/userPool:UserPool",
    "aws:docdb/cluster:Cluster",
    "aws:docdb/elasticCluster:ElasticCluster",
    "aws:dsql/cluster:Cluster",
    "aws:dynamodb/table:Table",
    "aws:ebs/snapshot:Snapshot",
    "aws:ebs/volume:Volume",
    "aws:efs/fileSystem:FileSystem",
    "aws:elasticache/cluster:Cluster",
    "aws:elasticache/replicationGroup:ReplicationGroup",
    "aws:elasticache/serverlessCache:ServerlessCache",
    "aws:elasticsearch/domain:Domain",
    "aws:fsx/lustreFileSystem:LustreFileSystem",
    "aws:fsx/ontapFileSystem:OntapFileSystem",
    "aws:fsx/openZfsFileSystem:OpenZfsFileSystem",
    "aws:fsx/windowsFileSystem:WindowsFileSystem",
    "aws:glacier/vault:Vault",
    "aws:keyspaces/table:Table",
    "aws:kms/key:Key",
    "aws:memorydb/cluster:Cluster",
    "aws:mq/broker:Broker",
    "aws:msk/cluster:Cluster",
    "aws:msk/serverlessCluster:ServerlessCluster",
    "aws:neptune/cluster:Cluster",
    "aws:opensearch/domain:Domain",
    "aws:opensearch/serverlessCollection:ServerlessCollection",
    "aws:rds/cluster:Cluster",
    "aws:rds/instance:Instance",
    "aws:redshift/cluster:Cluster",
    "aws:redshiftserverless/namespace:Namespace",
    "aws:s3tables/table:Table",
    "aws:secretsmanager/secret:Secret",
    "aws:timestreamwrite/table:Table",
];

/// Types of resources that AWS removes only while they are empty, and the property by which a program asks to remove
/// their contents too.
const EMPTIED: [(&str, &str); 5] = [
    ("aws:s3/bucket:Bucket", "forceDestroy"),
    ("aws:s3/bucketV2:BucketV2", "forceDestroy"),
    ("aws:s3/directoryBucket:DirectoryBucket", "forceDestroy"),
    ("aws:ecr/repository:Repository", "forceDelete"),
    ("aws:athena/database:Database", "forceDestroy"),
];

/// Returns whether the removal of a resource destroys data. `kind` is its type, and `outputs` are its properties.
/// Pulumi's `aws-native` provider names types as CloudFormation does, with other separators.
pub(super) fn holds_data(kind: &str, outputs: &Value) -> bool {
    let emptied = |(of, property): &(&str, &str)| *of == kind && outputs.get(property) == Some(&Value::Bool(true));
    HOLDERS.contains(&kind) || EMPTIED.iter().any(emptied) || is_native_holder(kind)
}

fn is_native_holder(kind: &str) -> bool {
    let Some((module, name)) = kind.strip_prefix("aws-native:").and_then(|rest| rest.split_once(':')) else {
        return false;
    };
    let same = |holder: &str| {
        let mut parts = holder.split("::").skip(1);
        parts.next().is_some_and(|of| of.eq_ignore_ascii_case(module)) && parts.next() == Some(name)
    };
    cloudformation_stack::HOLDERS.iter().any(|holder| same(holder))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_bucket_counts_when_its_contents_would_go_with_it() {
        assert!(holds_data("aws:s3/bucket:Bucket", &json!({ "forceDestroy": true })));
        assert!(!holds_data("aws:s3/bucket:Bucket", &json!({ "forceDestroy": false })));
        assert!(holds_data("aws:rds/instance:Instance", &Value::Null));
        assert!(!holds_data("aws:ec2/vpc:Vpc", &json!({ "forceDestroy": true })));
    }

    #[test]
    fn the_native_provider_has_the_types_of_cloudformation() {
        assert!(holds_data("aws-native:rds:DBInstance", &Value::Null));
        assert!(holds_data("aws-native:dynamodb:Table", &Value::Null));
        assert!(!holds_data("aws-native:ec2:Vpc", &Value::Null) && !holds_data("aws-native:rds", &Value::Null));
    }
}
