//! The IAM action that creates a resource, for the resource types that apps use most. A role with this action alone is
//! not enough: tagging, waiting and removal need other actions, which this table does not have.

/// Resource types, as CloudFormation and as Terraform name them, with the IAM action that creates a resource.
const CREATIONS: [(&str, &str, &str); 47] = [
    ("AWS::ApiGatewayV2::Api", "aws_apigatewayv2_api", "apigateway:POST"),
    ("AWS::AutoScaling::AutoScalingGroup", "aws_autoscaling_group", "autoscaling:CreateAutoScalingGroup"),
    ("AWS::CertificateManager::Certificate", "aws_acm_certificate", "acm:RequestCertificate"),
    ("AWS::CloudFront::Distribution", "aws_cloudfront_distribution", "cloudfront:CreateDistribution"),
    ("AWS::CloudWatch::Alarm", "aws_cloudwatch_metric_alarm", "cloudwatch:PutMetricAlarm"),
    ("AWS::Cognito::UserPool", "aws_cognito_user_pool", "cognito-idp:CreateUserPool"),
    ("AWS::DynamoDB::Table", "aws_dynamodb_table", "dynamodb:CreateTable"),
    ("AWS::EC2::EIP", "aws_eip", "ec2:AllocateAddress"),
    ("AWS::EC2::Instance", "aws_instance", "ec2:RunInstances"),
    ("AWS::EC2::InternetGateway", "aws_internet_gateway", "ec2:CreateInternetGateway"),
    ("AWS::EC2::LaunchTemplate", "aws_launch_template", "ec2:CreateLaunchTemplate"),
    ("AWS::EC2::NatGateway", "aws_nat_gateway", "ec2:CreateNatGateway"),
    ("AWS::EC2::RouteTable", "aws_route_table", "ec2:CreateRouteTable"),
    ("AWS::EC2::SecurityGroup", "aws_security_group", "ec2:CreateSecurityGroup"),
    ("AWS::EC2::Subnet", "aws_subnet", "ec2:CreateSubnet"),
    ("AWS::EC2::VPC", "aws_vpc", "ec2:CreateVpc"),
    ("AWS::EC2::VPCEndpoint", "aws_vpc_endpoint", "ec2:CreateVpcEndpoint"),
    ("AWS::ECR::Repository", "aws_ecr_repository", "ecr:CreateRepository"),
    ("AWS::ECS::Cluster", "aws_ecs_cluster", "ecs:CreateCluster"),
    ("AWS::ECS::Service", "aws_ecs_service", "ecs:CreateService"),
    ("AWS::ECS::TaskDefinition", "aws_ecs_task_definition", "ecs:RegisterTaskDefinition"),
    ("AWS::EFS::FileSystem", "aws_efs_file_system", "elasticfilesystem:CreateFileSystem"),
    ("AWS::EKS::Cluster", "aws_eks_cluster", "eks:CreateCluster"),
    ("AWS::ElastiCache::ReplicationGroup", "aws_elasticache_replication_group", "elasticache:CreateReplicationGroup"),
    ("AWS::ElasticLoadBalancingV2::LoadBalancer", "aws_lb", "elasticloadbalancing:CreateLoadBalancer"),
    ("AWS::ElasticLoadBalancingV2::TargetGroup", "aws_lb_target_group", "elasticloadbalancing:CreateTargetGroup"),
    ("AWS::Events::Rule", "aws_cloudwatch_event_rule", "events:PutRule"),
    ("AWS::IAM::InstanceProfile", "aws_iam_instance_profile", "iam:CreateInstanceProfile"),
    ("AWS::IAM::ManagedPolicy", "aws_iam_policy", "iam:CreatePolicy"),
    ("AWS::IAM::Role", "aws_iam_role", "iam:CreateRole"),
    ("AWS::IAM::User", "aws_iam_user", "iam:CreateUser"),
    ("AWS::KMS::Alias", "aws_kms_alias", "kms:CreateAlias"),
    ("AWS::KMS::Key", "aws_kms_key", "kms:CreateKey"),
    ("AWS::Kinesis::Stream", "aws_kinesis_stream", "kinesis:CreateStream"),
    ("AWS::Lambda::Function", "aws_lambda_function", "lambda:CreateFunction"),
    ("AWS::Logs::LogGroup", "aws_cloudwatch_log_group", "logs:CreateLogGroup"),
    ("AWS::RDS::DBCluster", "aws_rds_cluster", "rds:CreateDBCluster"),
    ("AWS::RDS::DBInstance", "aws_db_instance", "rds:CreateDBInstance"),
    ("AWS::RDS::DBSubnetGroup", "aws_db_subnet_group", "rds:CreateDBSubnetGroup"),
    ("AWS::Route53::HostedZone", "aws_route53_zone", "route53:CreateHostedZone"),
    ("AWS::Route53::RecordSet", "aws_route53_record", "route53:ChangeResourceRecordSets"),
    ("AWS::S3::Bucket", "aws_s3_bucket", "s3:CreateBucket"),
    ("AWS::SNS::Topic", "aws_sns_topic", "sns:CreateTopic"),
    ("AWS::SQS::Queue", "aws_sqs_queue", "sqs:CreateQueue"),
    ("AWS::SSM::Parameter", "aws_ssm_parameter", "ssm:PutParameter"),
    ("AWS::SecretsManager::Secret", "aws_secretsmanager_secret", "secretsmanager:CreateSecret"),
    ("AWS::StepFunctions::StateMachine", "aws_sfn_state_machine", "states:CreateStateMachine"),
];

/// Returns the IAM action that creates a resource of type `kind`; `None` for a type that the table does not have.
pub(super) fn action(kind: &str) -> Option<&'static str> {
    let known = CREATIONS.iter().find(|(stack, module, _)| kind == *stack || kind == *module);
    known.map(|(_, _, action)| *action)
}
