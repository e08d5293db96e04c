"""The role that makes the tenant stack may do what CloudFormation needs and nothing else, under its boundary.

CloudFormation's resource schemas list which actions the handlers of each type need, and AWS's policy editor lists which
actions take a resource. cfn-lint ships both.
"""

import json
import re
import unittest
from fnmatch import fnmatchcase
from importlib import resources

from cfnlint.schema import PROVIDER_SCHEMA_MANAGER

import templates
from intrinsics import statements
from templates import REGION, TENANT, TENANT_ACCOUNT, as_list, of_type

ARN = f"{REGION}:{TENANT_ACCOUNT}"
ROLE = f"arn:aws:iam::{TENANT_ACCOUNT}:role/"
ID = "0123456789"
# The ARN of a resource by its type, made of its name or of the id that AWS gives it.
ARNS = {
    "AWS::ApiGatewayV2::Api": f"arn:aws:apigateway:{REGION}::/apis/{ID}",
    "AWS::ApiGatewayV2::Authorizer": f"arn:aws:apigateway:{REGION}::/apis/{ID}/authorizers/{ID}",
    "AWS::ApiGatewayV2::Integration": f"arn:aws:apigateway:{REGION}::/apis/{ID}/integrations/{ID}",
    "AWS::ApiGatewayV2::Route": f"arn:aws:apigateway:{REGION}::/apis/{ID}/routes/{ID}",
    "AWS::ApiGatewayV2::Stage": f"arn:aws:apigateway:{REGION}::/apis/{ID}/stages/$default",
    "AWS::CloudWatch::Alarm": f"arn:aws:cloudwatch:{ARN}:alarm:{{AlarmName}}",
    "AWS::Cognito::UserPool": f"arn:aws:cognito-idp:{ARN}:userpool/{REGION}_{ID}",
    "AWS::Cognito::UserPoolClient": f"arn:aws:cognito-idp:{ARN}:userpool/{REGION}_{ID}",
    "AWS::Cognito::UserPoolDomain": f"arn:aws:cognito-idp:{ARN}:userpool/{REGION}_{ID}",
    "AWS::DynamoDB::Table": f"arn:aws:dynamodb:{ARN}:table/{{TableName}}",
    "AWS::ECR::Repository": f"arn:aws:ecr:{ARN}:repository/{{RepositoryName}}",
    "AWS::Events::Rule": f"arn:aws:events:{ARN}:rule/{{Name}}",
    "AWS::IAM::InstanceProfile": f"arn:aws:iam::{TENANT_ACCOUNT}:instance-profile/{{InstanceProfileName}}",
    "AWS::IAM::ManagedPolicy": f"arn:aws:iam::{TENANT_ACCOUNT}:policy/{{ManagedPolicyName}}",
    "AWS::IAM::Role": f"{ROLE}{{RoleName}}",
    "AWS::KMS::Alias": f"arn:aws:kms:{ARN}:{{AliasName}}",
    "AWS::KMS::Key": f"arn:aws:kms:{ARN}:key/{ID}",
    "AWS::Lambda::EventSourceMapping": f"arn:aws:lambda:{ARN}:event-source-mapping:{ID}",
    "AWS::Lambda::Function": f"arn:aws:lambda:{ARN}:function:{{FunctionName}}",
    "AWS::Lambda::Permission": f"arn:aws:lambda:{ARN}:function:{{FunctionName}}",
    "AWS::Logs::LogGroup": f"arn:aws:logs:{ARN}:log-group:{{LogGroupName}}",
    "AWS::Logs::MetricFilter": f"arn:aws:logs:{ARN}:log-group:{{LogGroupName}}",
    "AWS::Logs::QueryDefinition": f"arn:aws:logs:{ARN}:query-definition:{ID}",
    "AWS::SNS::Subscription": f"arn:aws:sns:{ARN}:fh-{TENANT}--alarms",
    "AWS::SNS::Topic": f"arn:aws:sns:{ARN}:{{TopicName}}",
    "AWS::SQS::Queue": f"arn:aws:sqs:{ARN}:{{QueueName}}",
    "AWS::SQS::QueuePolicy": f"arn:aws:sqs:{ARN}:fh-{TENANT}--build.fifo",
    "AWS::StepFunctions::StateMachine": f"arn:aws:states:{ARN}:stateMachine:{{StateMachineName}}",
}
# Actions by type that the handlers list for properties that the template does not set.
UNUSED = {
    "AWS::ApiGatewayV2::Api": {"s3:getObject"},
    # Attributes of one's own, keys for functions that send mail, text messages, mail of one's own domain.
    "AWS::Cognito::UserPool": {
        "cognito-idp:AddCustomAttributes",
        "iam:CreateServiceLinkedRole",
        "kms:CreateGrant",
        "kms:Decrypt",
        "kms:Encrypt",
        "kms:GenerateDataKey",
        "kms:GenerateDataKeyWithoutPlaintext",
        "kms:ReEncryptFrom",
        "kms:ReEncryptTo",
    },
    # Analytics of Pinpoint.
    "AWS::Cognito::UserPoolClient": {"iam:CreateServiceLinkedRole"},
    # A domain of the vendor's.
    "AWS::Cognito::UserPoolDomain": {
        "cloudfront:updateDistribution",
        "kms:CreateGrant",
        "kms:Decrypt",
        "kms:Encrypt",
        "kms:GenerateDataKeyWithoutPlaintext",
        "kms:ReEncryptFrom",
        "kms:ReEncryptTo",
    },
    "AWS::DynamoDB::Table": {
        # Replicas, imports, exports, Kinesis streams, contributor insights, a resource policy.
        "dynamodb:AssociateTableReplica",
        "dynamodb:BatchWriteItem",
        "dynamodb:CreateTableReplica",
        "dynamodb:DeleteItem",
        "dynamodb:DescribeImport",
        "dynamodb:DisableKinesisStreamingDestination",
        "dynamodb:EnableKinesisStreamingDestination",
        "dynamodb:GetItem",
        "dynamodb:ImportTable",
        "dynamodb:PutItem",
        "dynamodb:PutResourcePolicy",
        "dynamodb:Query",
        "dynamodb:Scan",
        "dynamodb:UpdateContributorInsights",
        "dynamodb:UpdateItem",
        "dynamodb:DeleteResourcePolicy",
        "dynamodb:UpdateKinesisStreamingDestination",
        "iam:CreateServiceLinkedRole",
        "kinesis:DescribeStream",
        "kinesis:PutRecords",
        "logs:CreateLogStream",
        "logs:DescribeLogStreams",
        "logs:PutLogEvents",
        "s3:GetObjectMetadata",
        # The policy of the key that `TableKeyArn` names lets this account's principals use it.
        "kms:CreateGrant",
        "kms:Decrypt",
        "kms:Encrypt",
        "kms:ListAliases",
        "kms:RevokeGrant",
    },
    "AWS::ECR::Repository": {"kms:CreateGrant", "kms:RetireGrant"},
    "AWS::IAM::ManagedPolicy": {
        "iam:AttachGroupPolicy",
        "iam:AttachUserPolicy",
        "iam:DetachGroupPolicy",
        "iam:DetachUserPolicy",
    },
    # The boundary of a role is never removed.
    "AWS::IAM::Role": {"iam:DeleteRolePermissionsBoundary", "iam:UpdateRoleDescription"},
    "AWS::KMS::Key": {"kms:DisableKey", "kms:EnableKey", "kms:EnableKeyRotation", "kms:DisableKeyRotation"},
    "AWS::Lambda::EventSourceMapping": {"kms:Decrypt", "kms:GenerateDataKey"},
    "AWS::Lambda::Function": {
        # Networks, file systems, layers, keys, versions, signing, runtime management.
        "ec2:DescribeNetworkInterfaces",
        "ec2:DescribeSecurityGroups",
        "ec2:DescribeSubnets",
        "ec2:DescribeVpcs",
        "elasticfilesystem:DescribeMountTargets",
        "kms:CreateGrant",
        "kms:Decrypt",
        "kms:Encrypt",
        "kms:GenerateDataKey",
        "lambda:AssociateRuntimeAlias",
        "lambda:DeleteFunctionCodeSigningConfig",
        "lambda:GetCodeSigningConfig",
        "lambda:GetLayerVersion",
        "lambda:PassCapacityProvider",
        "lambda:PublishVersion",
        "lambda:PutFunctionCodeSigningConfig",
        "lambda:PutFunctionRecursionConfig",
        "lambda:PutFunctionScalingConfig",
        "lambda:PutRuntimeManagementConfig",
        "s3:GetObjectVersion",
        "s3files:ListMountTargets",
    },
    "AWS::Logs::LogGroup": {
        "firehose:TagDeliveryStream",
        "logs:AssociateKmsKey",
        "logs:DeleteDataProtectionPolicy",
        "logs:DeleteIndexPolicy",
        "logs:DeleteResourcePolicy",
        "logs:DisassociateKmsKey",
        "logs:PutBearerTokenAuthentication",
        "logs:PutDataProtectionPolicy",
        "logs:PutIndexPolicy",
        "logs:PutLogGroupDeletionProtection",
        "s3:REST.PUT.OBJECT",
    },
    "AWS::SNS::Subscription": {"sns:SetSubscriptionAttributes"},
    "AWS::SNS::Topic": {"sns:PutDataProtectionPolicy"},
    "AWS::StepFunctions::StateMachine": {"kms:Decrypt", "kms:GenerateDataKey", "s3:GetObjectVersion"},
}
# The calls of `freehold tenant deploy` itself: the stack, its bucket, and reading what was made.
BY_THE_COMMAND = {"Stack", "DeployBucket", "DeployObjects"}
ALSO = {
    "lambda:GetFunctionConfiguration",
    # The command reads the quota of concurrency.
    "lambda:GetAccountSettings",
    # API Gateway and Step Functions deliver logs with the rights of whoever turns logging on.
    "logs:DeleteLogDelivery",
    "logs:GetLogDelivery",
    "logs:ListLogDeliveries",
    "logs:UpdateLogDelivery",
}


def allowed(policy, action, arn):
    """Returns the statements that allow an action on a resource, whatever their conditions."""
    return [
        statement
        for statement in policy["Statement"]
        if any(fnmatchcase(action.lower(), pattern.lower()) for pattern in as_list(statement["Action"]))
        and (
            any(fnmatchcase(arn, pattern) for pattern in as_list(statement["Resource"]))
            if "Resource" in statement
            else not any(fnmatchcase(arn, pattern) for pattern in as_list(statement["NotResource"]))
        )
    ]


def needed(type_):
    """Returns what CloudFormation needs to make, read, change, tag and remove a resource of a type."""
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema(REGION, type_).schema
    permissions = [
        schema["handlers"].get(handler, {}).get("permissions", []) for handler in ("create", "read", "update", "delete")
    ]
    return set().union(*permissions, schema.get("tagging", {}).get("permissions", [])) - UNUSED.get(type_, set())


def filled(template, value):
    """Returns a name in the template with the tenant filled in; for a `Ref`, the name of that resource."""
    if "Ref" in value:
        return next(
            filled(template, named)
            for key, named in template["Resources"][value["Ref"]]["Properties"].items()
            if key in ("FunctionName", "LogGroupName")
        )
    return re.sub(r"\$\{TenantName\}", TENANT, value["Fn::Sub"])


def without_build_machine(template):
    """Leaves out the build runner's machine: an administrator makes and changes it."""
    made = {name: one for name, one in template["Resources"].items() if one.get("Condition") != "HasBuildGroup"}
    return {**template, "Resources": made}


def arn(template, resource):
    names = {
        key: filled(template, value)
        for key, value in resource["Properties"].items()
        if f"{{{key}}}" in ARNS[resource["Type"]]
    }
    return ARNS[resource["Type"]].format(**names)


class DeployPolicy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.template = without_build_machine(templates.tenant())
        cls.policy = templates.deploy_policy()
        cls.actions = {action for s in cls.policy["Statement"] for action in as_list(s["Action"])}
        cls.types = {resource["Type"] for resource in cls.template["Resources"].values()}
        cls.known = json.loads(resources.files("cfnlint.data.AdditionalSpecs").joinpath("Policies.json").read_text())

    def knows_resources(self, action):
        service, _, name = action.lower().partition(":")
        return bool(self.known[service]["Actions"][name].get("Resources"))

    def test_everything_that_cloudformation_needs_is_allowed_on_each_resource(self):
        self.assertEqual(set(ARNS), self.types)
        for name, resource in self.template["Resources"].items():
            own = ARNS[resource["Type"]].split(":")[2]
            for action in sorted(needed(resource["Type"])):
                with self.subTest(f"{name} {action}"):
                    if action.split(":")[0] == own and self.is_about(resource["Type"], action):
                        self.assertTrue(allowed(self.policy, action, arn(self.template, resource)))
                    else:
                        self.assertIn(action, self.actions)

    def is_about(self, type_, action):
        """Returns whether an action has the resource itself as its target: not a role of the resource, and not none."""
        others = {
            "AWS::IAM::ManagedPolicy": {"iam:AttachRolePolicy", "iam:DetachRolePolicy"},
            "AWS::IAM::InstanceProfile": {"iam:PassRole"},
            "AWS::IAM::Role": {"iam:AttachRolePolicy", "iam:DetachRolePolicy"},
        }
        return action not in others.get(type_, set()) and (
            action.startswith("apigateway:") or self.knows_resources(action)
        )

    def test_nothing_is_allowed_that_neither_cloudformation_nor_the_command_needs(self):
        needs = set().union(*map(needed, self.types)) | ALSO

        for statement in self.policy["Statement"]:
            if statement["Sid"] not in BY_THE_COMMAND:
                with self.subTest(statement["Sid"]):
                    self.assertEqual(set(as_list(statement["Action"])) - needs, set())
        self.assertEqual(ALSO - self.actions, set())

    def test_what_is_left_out_is_still_listed_by_a_handler_and_not_allowed(self):
        for type_, actions in UNUSED.items():
            schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema(REGION, type_).schema
            listed = {action for handler in schema["handlers"].values() for action in handler["permissions"]}
            with self.subTest(type_):
                self.assertEqual(actions - listed, set())
        other = set().union(*map(needed, self.types))
        self.assertEqual(set().union(*UNUSED.values()) & self.actions - other - {"s3:GetObject"}, set())

    def test_all_resources_are_named_only_where_an_action_knows_none(self):
        # AWS chooses the id of these, so the function and the tag at creation limit them.
        by_condition = {"FunctionSources", "MakeTheSigningKey", "MakeTheUserPool"}
        for statement in self.policy["Statement"]:
            for action in as_list(statement["Action"]):
                with self.subTest(f"{statement['Sid']} {action}"):
                    self.assertNotIn("*", action)
                    if "*" in as_list(statement["Resource"]) and statement["Sid"] not in by_condition:
                        self.assertFalse(self.knows_resources(action))
        for statement in self.policy["Statement"]:
            self.assertEqual(
                "Condition" in statement,
                statement["Sid"]
                in by_condition
                | {
                    "RolesUnderTheBoundary",
                    "PassRoles",
                    "LogDeliveryOfMachines",
                    "KeepTheSigningKey",
                    "KeepTheUserPool",
                },
                statement["Sid"],
            )

    def test_it_names_the_tenants_resources_alone(self):
        by_id = {"FunctionSourcesByTheirIds", "KeepTheSigningKey", "KeepTheUserPool", "HttpApi"}
        for statement in self.policy["Statement"]:
            for resource in as_list(statement["Resource"]):
                if resource != "*" and statement["Sid"] not in by_id:
                    with self.subTest(statement["Sid"]):
                        self.assertRegex(resource, r"[:/](fh|freehold)-acme\b")

    def test_it_does_not_make_machines(self):
        left_out = set(templates.tenant()["Resources"]) - set(self.template["Resources"])

        self.assertEqual(left_out, {"BuildSecurityGroup", "BuildMachine", "BuildGroup"})
        self.assertEqual({a for a in self.actions if a.startswith(("ec2:", "autoscaling:"))}, set())

    def test_it_reads_no_data_and_signs_nothing(self):
        self.assertEqual(
            self.actions
            & {
                "kms:Sign",
                "dynamodb:GetItem",
                "dynamodb:Query",
                "dynamodb:Scan",
                "sqs:ReceiveMessage",
                "sqs:SendMessage",
                "secretsmanager:GetSecretValue",
                "lambda:InvokeFunction",
                "sts:AssumeRole",
                "states:StartExecution",
            },
            set(),
        )

    def test_it_makes_roles_under_the_boundary_only_and_cannot_change_that(self):
        boundary = f"arn:aws:iam::{TENANT_ACCOUNT}:policy/fh-{TENANT}--boundary"
        under = {"StringEquals": {"iam:PermissionsBoundary": boundary}}

        for action in ("iam:CreateRole", "iam:PutRolePermissionsBoundary", "iam:PutRolePolicy"):
            self.assertEqual(
                [s["Condition"] for s in self.policy["Statement"] if action in as_list(s["Action"])], [under], action
            )
        self.assertEqual(
            [
                s["Sid"]
                for s in self.policy["Statement"]
                if any(a.startswith("iam:") and allowed({"Statement": [s]}, a, boundary) for a in self.actions)
            ],
            [],
        )
        self.assertEqual(
            self.actions
            & {
                "iam:DeleteRolePermissionsBoundary",
                "iam:CreateUser",
                "iam:CreateAccessKey",
                "iam:PutUserPolicy",
                "iam:AttachUserPolicy",
                "iam:CreateServiceLinkedRole",
                "iam:SetDefaultPolicyVersion",
            },
            set(),
        )
        [attach] = [s for s in self.policy["Statement"] if "iam:AttachRolePolicy" in as_list(s["Action"])]
        self.assertEqual(
            attach["Condition"],
            {"ArnEquals": {"iam:PolicyARN": f"arn:aws:iam::{TENANT_ACCOUNT}:policy/fh-{TENANT}--log-delivery"}},
        )

    def test_it_passes_roles_to_three_services_only(self):
        [passes] = [s for s in self.policy["Statement"] if "iam:PassRole" in as_list(s["Action"])]
        trusted = {
            service
            for role in of_type(self.template, "AWS::IAM::Role").values()
            for s in role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
            if "Principal" in s
            for service in as_list(s["Principal"]["Service"])
        }

        self.assertEqual(set(passes["Condition"]["StringEquals"]["iam:PassedToService"]), trusted)
        self.assertEqual(passes["Resource"], f"{ROLE}fh-{TENANT}--*")

    def test_policies_fit_where_they_are_put(self):
        def characters(policy):
            return len(json.dumps(policy, separators=(",", ":")))

        inline, managed = (
            templates.policy(name, "t" * 20, TENANT_ACCOUNT, REGION) for name in templates.DEPLOY_POLICIES
        )
        self.assertLessEqual(characters(inline), 10240, "inline policies of a role")
        self.assertLessEqual(characters(managed), 6144, "a managed policy")
        self.assertLessEqual(characters(templates.tenant_boundary(tenant="t" * 20)), 6144, "a managed policy")


class Boundary(unittest.TestCase):
    def test_every_role_has_it_when_it_is_given(self):
        template = templates.tenant()

        for name, role in of_type(template, "AWS::IAM::Role").items():
            self.assertEqual(
                role["Properties"]["PermissionsBoundary"],
                {"Fn::If": ["HasRolesBoundary", {"Ref": "RolesBoundary"}, {"Ref": "AWS::NoValue"}]},
                name,
            )

    def test_it_lets_every_role_do_what_its_policies_list(self):
        template, boundary = templates.tenant(), templates.tenant_boundary()
        holders = of_type(template, "AWS::IAM::Role") | of_type(template, "AWS::IAM::ManagedPolicy")

        for name, holder in holders.items():
            for statement in statements(holder):
                for action in as_list(statement["Action"]) if statement["Effect"] == "Allow" else []:
                    for resource in as_list(statement["Resource"]):
                        with self.subTest(f"{name} {action}"):
                            self.assertTrue(allowed(boundary, action, self.resolved(template, resource)))

    def resolved(self, template, resource):
        if resource == "*":
            return resource
        if resource == {"Ref": "SourceRoles"}:
            return "arn:aws:iam::333333333333:role/reads-images"
        if "Fn::If" in resource:
            # As it is without parameters: the root key is the stack's own.
            return self.resolved(template, resource["Fn::If"][2])
        if "Fn::GetAtt" in resource:
            return arn(template, template["Resources"][resource["Fn::GetAtt"][0]])
        known = {
            "AWS::Partition": "aws",
            "AWS::Region": REGION,
            "AWS::AccountId": TENANT_ACCOUNT,
            "TenantName": TENANT,
            "DeployBucket": f"fh-{TENANT}--{TENANT_ACCOUNT}--{REGION}",
        }
        return re.sub(r"\$\{([\w:]+)\}", lambda match: known[match[1]], resource["Fn::Sub"])

    def test_it_grants_nothing_that_no_role_lists(self):
        template, boundary = templates.tenant(), templates.tenant_boundary()
        holders = of_type(template, "AWS::IAM::Role") | of_type(template, "AWS::IAM::ManagedPolicy")
        expected = {
            action
            for holder in holders.values()
            for s in statements(holder)
            if s["Effect"] == "Allow"
            for action in as_list(s["Action"])
        }

        for statement in boundary["Statement"]:
            if statement["Sid"] != "KeyOfTheTable":
                self.assertEqual(set(as_list(statement["Action"])) - expected, set(), statement["Sid"])

    def test_no_role_of_the_own_account_is_taken_and_iam_is_not_written(self):
        boundary = templates.tenant_boundary()

        self.assertEqual(allowed(boundary, "sts:AssumeRole", f"{ROLE}admin"), [])
        self.assertEqual([a for s in boundary["Statement"] for a in as_list(s["Action"]) if a.startswith("iam:")], [])
