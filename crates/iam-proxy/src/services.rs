//! AWS services by name: which may assume a role that a job makes, and for which a job may make a service-linked role.

use crate::home::dns_suffix;

/// Services that act inside the account in which the role is. Left out are those that hand the role's credentials to
/// whoever is outside: `rolesanywhere` and `credentials.iot` (certificates), `ssm` (activations of any machine),
/// `cognito-identity` and `sso` (other people's users).
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

/// Services whose own role a job may have made. What such a role may do is AWS's to say, and only the service takes it.
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

/// Whether the service may assume a role that a job makes. `service` is the name without domain and region: `states`.
fn takes_roles(service: &str) -> bool {
    TAKES_ROLES.contains(&service)
}

/// Whether the service principal may assume a role that a job makes.
pub(crate) fn may_take_roles(principal: &str, region: &str) -> bool {
    name(principal, region).is_some_and(takes_roles)
}

/// Whether a job may make the role that is linked to the service.
pub(crate) fn may_be_linked(principal: &str, region: &str) -> bool {
    name(principal, region).is_some_and(|name| LINKED.contains(&name))
}

/// Returns the name of a service principal, which may name the region: `logs.eu-west-1.amazonaws.com` is `logs`.
fn name<'a>(principal: &'a str, region: &str) -> Option<&'a str> {
    let own = principal.strip_suffix(dns_suffix(region)).and_then(|name| name.strip_suffix('.'));
    // Many services have this name in every partition.
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
