//! Decides which resources hold data, whose only copy their removal would destroy.

use serde_json::Value;

/// The types of resources that hold data, as Terraform's AWS provider names them.
const HOLDERS: [&str; 34] = [
    "aws_backup_vault",
    "aws_cognito_user_pool",
    "aws_db_instance",
    "aws_docdb_cluster",
    "aws_docdbelastic_cluster",
    "aws_dsql_cluster",
    "aws_dynamodb_table",
    "aws_ebs_snapshot",
    "aws_ebs_volume",
    "aws_efs_file_system",
    "aws_elasticache_cluster",
    "aws_elasticache_replication_group",
    "aws_elasticache_serverless_cache",
    "aws_elasticsearch_domain",
    "aws_fsx_lustre_file_system",
    "aws_fsx_ontap_file_system",
    "aws_fsx_openzfs_file_system",
    "aws_fsx_windows_file_system",
    "aws_glacier_vault",
    "aws_keyspaces_table",
    "aws_kms_key",
    "aws_memorydb_cluster",
    "aws_mq_broker",
    "aws_msk_cluster",
    "aws_msk_serverless_cluster",
    "aws_neptune_cluster",
    "aws_opensearch_domain",
    "aws_opensearchserverless_collection",
    "aws_rds_cluster",
    "aws_redshift_cluster",
    "aws_redshiftserverless_namespace",
    "aws_s3tables_table",
    "aws_secretsmanager_secret",
    "aws_timestreamwrite_table",
];

/// Types of resources that AWS removes only while they are empty, and the attribute by which a module asks to remove
/// their contents too.
const EMPTIED: [(&str, &str); 4] = [
    ("aws_s3_bucket", "force_destroy"),
    ("aws_s3_directory_bucket", "force_destroy"),
    ("aws_ecr_repository", "force_delete"),
    ("aws_athena_database", "force_destroy"),
];

/// Returns whether the removal of a resource destroys data. `kind` is its type, and `values` are its attributes.
pub(super) fn holds_data(kind: &str, values: &Value) -> bool {
    let emptied = |(of, attribute): &(&str, &str)| *of == kind && values.get(attribute) == Some(&Value::Bool(true));
    HOLDERS.contains(&kind) || EMPTIED.iter().any(emptied)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_bucket_counts_when_its_contents_would_go_with_it() {
        assert!(holds_data("aws_s3_bucket", &json!({ "force_destroy": true })));
        assert!(!holds_data("aws_s3_bucket", &json!({ "force_destroy": false })));
        assert!(!holds_data("aws_s3_bucket", &Value::Null));
        assert!(holds_data("aws_db_instance", &json!({})));
        assert!(!holds_data("aws_vpc", &json!({ "force_destroy": true })));
    }
}
