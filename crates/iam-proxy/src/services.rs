//! Lists of AWS services: the services that may assume a role that a job makes, and the services for which a job may
//! make a service-linked role.

use crate::home::dns_suffix;

/// The services that may assume a role that a job makes; they act inside the role's account. The list leaves out
/// services that give the role's credentials to someone outside of the account: `rolesanywhere` and `credentials.iot`
/// (for certificates), `ssm` (for activations of any machine), `cognito-identity` and `sso` (for users from elsewhere).
const TAKES_ROLES: [&str; 65] = [
    "airflow",
    "airflow-env",
    "apigateway",
    "application-autoscaling",
    "appsync",
    "athena",
    "autoscaling",
    "backup",
    "batch",
    "bedrock",
    "bedrock-agentcore",
    "build.apprunner",
    "cloudformation",
    "cloudtrail",
    "codebuild",
    "codedeploy",
    "codepipeline",
    "config",
    "datasync",
    "delivery.logs",
    "dlm",
    "dms",
    "ec2",
    "ecs",
    "ecs-tasks",
    "edgelambda",
    "eks",
    "eks-fargate-pods",
    "eks-nodegroup",
    "elasticache",
    "elasticbeanstalk",
    "elasticfilesystem",
    "elasticloadbalancing",
    "elasticmapreduce",
    "emr-serverless",
    "es",
    "events",
    "export.rds",
    "firehose",
    "glue",
    "grafana",
    "kafkaconnect",
    "kinesisanalytics",
    "lambda",
    "logs",
    "monitoring.rds",
    "opensearchservice",
    "osis-pipelines",
    "pipes",
    "pods.eks",
    "rds",
    "redshift",
    "replicator.lambda",
    "s3",
    "sagemaker",
    "scheduler",
    "ses",
    "sns",
    "spotfleet",
    "states",
    "streams.metrics.cloudwatch",
    "synthetics",
    "tasks.apprunner",
    "transfer",
    "vpc-flow-logs",
];

/// The services for which a job may make a service-linked role. AWS decides the permissions of such a role, and only
/// the service can assume it.
const LINKED: [&str; 25] = [
    "airflow",
    "apprunner",
    "autoscaling",
    "batch",
    "dynamodb.application-autoscaling",
    "ecs",
    "ecs.application-autoscaling",
    "eks",
    "eks-fargate",
    "eks-nodegroup",
    "elasticache",
    "elasticfilesystem",
    "elasticloadbalancing",
    "elasticmapreduce",
    "es",
    "kafka",
    "memorydb",
    "mq",
    "networking.apprunner",
    "ops.apigateway",
    "opensearchservice",
    "rds",
    "rds.application-autoscaling",
    "replication.ecr",
    "spot",
];

/// Returns whether a service may assume a role that a job makes. `service` is the service's name without domain and
/// region, such as `states`.
fn takes_roles(service: &str) -> bool {
    TAKES_ROLES.contains(&service)
}

/// Returns whether a service principal may assume a role that a job makes.
pub(crate) fn may_take_roles(principal: &str, region: &str) -> bool {
    name(principal, region).is_some_and(takes_roles)
}

/// Returns whether a job may make the service-linked role of a service principal.
pub(crate) fn may_be_linked(principal: &str, region: &str) -> bool {
    name(principal, region).is_some_and(|name| LINKED.contains(&name))
}

/// Returns the service's name in a service principal, without a region: `logs` for `logs.eu-west-1.amazonaws.com`.
fn name<'a>(principal: &'a str, region: &str) -> Option<&'a str> {
    let own = principal.strip_suffix(dns_suffix(region)).and_then(|name| name.strip_suffix('.'));
    // Many services use the suffix `.amazonaws.com` in every partition.
    let name = own.or_else(|| principal.strip_suffix(".amazonaws.com"))?;
    Some(name.strip_suffix(region).and_then(|name| name.strip_suffix('.')).unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_known_with_its_region_and_in_other_partitions() {
        assert!(may_take_roles("ec2.amazonaws.com", "eu-west-1"));
        assert!(may_take_roles("logs.eu-west-1.amazonaws.com", "eu-west-1"));
        assert!(may_take_roles("ec2.amazonaws.com.cn", "cn-north-1"));
        assert!(may_take_roles("eks.amazonaws.com", "cn-north-1"));
        assert!(may_be_linked("autoscaling.amazonaws.com", "eu-west-1"));
    }

    #[test]
    fn services_that_serve_others_and_names_that_only_look_like_a_service_are_not_known() {
        for principal in [
            "rolesanywhere.amazonaws.com",
            "credentials.iot.amazonaws.com",
            "ssm.amazonaws.com",
            "logs.us-east-1.amazonaws.com",
            "ec2.example.com",
            "ec2amazonaws.com",
            "amazonaws.com",
            "*",
        ] {
            assert!(!may_take_roles(principal, "eu-west-1"), "{principal}");
        }
    }
}
