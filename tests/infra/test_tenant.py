"""The tenant stack: what it makes, what it costs when idle, and what each role may do."""

import unittest
from fnmatch import fnmatchcase

import linting
import templates
from intrinsics import Evaluator, statements
from templates import as_list, of_type, properties, resource_text

TABLE = ["BatchGetItem", "ConditionCheckItem", "DeleteItem", "GetItem", "PutItem", "Query", "UpdateItem"]
TABLE = {f"dynamodb:{action} Table.Arn" for action in TABLE}
CONSUME = {"sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"}
START = {f"states:StartExecution states:stateMachine:fh-T--{name}" for name in templates.DEFINITIONS}
STEPS = {one for one in START if one.endswith(("--deploy-components", "--run-action", "--teardown-install"))}
RESUME = {f"states:SendTask{what} *" for what in ("Heartbeat", "Success")}
SIGN = {"kms:Sign RootKeyArn or SigningKey.Arn", "kms:GetPublicKey RootKeyArn or SigningKey.Arn"}
ORDERS = {"sqs:SendMessage sqs:fh-T--*.fifo"}
VERSIONS = {"s3:GetObject s3:B/versions/*"}
DEAD = ("DeadLetters", "OrdersDeadLetters")
LATER = "sqs:fh-T--reports--*"
GROUP = "autoscaling:autoScalingGroup:*:autoScalingGroupName/fh-T--build-runner"
WAKE = {f"autoscaling:SetDesiredCapacity {GROUP}"}


# The functions that reserve concurrency: what the others, or people, wait for.
KEPT = {"Api", "RegisterInstall", "PlanWorkflow", "DispatchJob", "GrantArtifact", "FinishWorkflow", "Sweep", "Console"}


def consume(queue):
    return {f"{action} {queue}.Arn" for action in CONSUME} | send("DeadLetters")


def send(*queues):
    return {f"sqs:SendMessage {queue}.Arn" for queue in queues}


# The actions that each function may do, besides writing to its own log group.
TOPIC = "sns:fh-T--notifications"
TELL = {f"sns:Publish {TOPIC}", *(f"kms:{action} kms:key/*" for action in ("GenerateDataKey", "Decrypt"))}
ALLOWED = {
    "Api": TABLE
    | START
    | TELL
    | {f"sns:{action} {TOPIC}" for action in ("Subscribe", "ListSubscriptionsByTopic")}
    | {f"sns:{action} {TOPIC}{of}" for action in ("GetSubscriptionAttributes", "Unsubscribe") for of in ("", ":*")}
    | {"kms:GetPublicKey RootKeyArn or SigningKey.Arn", "s3:ListBucket s3:B"}
    | {f"s3:{action} s3:B/{folder}/*" for action in ("GetObject", "PutObject") for folder in ("sources", "versions")},
    "RegisterInstall": TABLE
    | {
        f"sqs:{action} {queues}"
        for queues in ("sqs:fh-T--*.fifo", LATER)
        for action in ("CreateQueue", "GetQueueUrl", "SetQueueAttributes", "TagQueue")
    }
    | {"sqs:SetQueueAttributes ReportsQueue.Arn"}
    | {"lambda:CreateEventSourceMapping *"},
    "PlanWorkflow": TABLE | send("DispatchQueue") | VERSIONS,
    "FinishWorkflow": TABLE | send("DispatchQueue") | VERSIONS | STEPS,
    "DispatchJob": TABLE | consume("DispatchQueue") | SIGN | ORDERS | VERSIONS | WAKE,
    "AcceptReport": TABLE
    | consume("ReportsQueue")
    | {f"{action} {LATER}" for action in CONSUME | {"sqs:GetQueueUrl"}}
    | send("DispatchQueue", "GrantsQueue")
    | RESUME,
    "GrantArtifact": {
        f"dynamodb:{action} Table.Arn" for action in ("ConditionCheckItem", "GetItem", "PutItem", "UpdateItem")
    }
    | consume("GrantsQueue")
    | SIGN
    | ORDERS
    | {
        f"ecr:{action} Repository.Arn"
        for action in ("BatchCheckLayerAvailability", "BatchGetImage", "GetDownloadUrlForLayer")
    }
    | {"s3:GetObject s3:B/sources/*"},
    "PruneArtifacts": {
        f"dynamodb:{action} Table.Arn"
        for action in ("GetItem", "BatchGetItem", "Query", "PutItem", "UpdateItem", "ConditionCheckItem")
    }
    | VERSIONS
    | {"ecr:BatchDeleteImage Repository.Arn"},
    "Console": TABLE - {"dynamodb:BatchGetItem Table.Arn"},
    "Sweep": TABLE
    | TELL
    | send("DispatchQueue", "GrantsQueue", "ReportsQueue")
    | {f"sqs:{action}Message {queue}.Arn" for action in ("Receive", "Delete") for queue in DEAD}
    # It removes what is kept about a forgotten install, and closes the queue of a runner that has lost its access.
    | {f"sqs:{action} sqs:fh-T--*.fifo" for action in ("DeleteQueue", "GetQueueUrl", "SetQueueAttributes")}
    | {"sqs:SetQueueAttributes ReportsQueue.Arn"}
    | {f"sqs:{action} {LATER}" for action in ("SendMessage", "SetQueueAttributes", "GetQueueUrl")}
    | START
    | RESUME
    | VERSIONS
    | WAKE,
}
# Actions that do not take a resource: callbacks, log delivery, a registry token.
WITHOUT_RESOURCE = {
    "states:SendTaskSuccess",
    "states:SendTaskHeartbeat",
    "ecr:GetAuthorizationToken",
    "logs:CreateLogDelivery",
    "logs:GetLogDelivery",
    "logs:UpdateLogDelivery",
    "logs:DeleteLogDelivery",
    "logs:ListLogDeliveries",
    "logs:PutResourcePolicy",
    "logs:DescribeResourcePolicies",
    "logs:DescribeLogGroups",
}
# The types of resources in the stack. None is billed by the hour; check the price of a new type before adding it. A
# machine of the group is, and the group has none while nothing is built.
TYPES = {
    "AWS::AutoScaling::AutoScalingGroup",
    "AWS::EC2::LaunchTemplate",
    "AWS::EC2::SecurityGroup",
    "AWS::ApiGatewayV2::Api",
    "AWS::ApiGatewayV2::Authorizer",
    "AWS::ApiGatewayV2::Integration",
    "AWS::ApiGatewayV2::Route",
    "AWS::ApiGatewayV2::Stage",
    "AWS::CloudWatch::Alarm",
    # A user pool is billed by the people who sign in during a month, and 10,000 of them are free.
    "AWS::Cognito::UserPool",
    "AWS::Cognito::UserPoolClient",
    "AWS::Cognito::UserPoolDomain",
    "AWS::DynamoDB::Table",
    "AWS::ECR::Repository",
    "AWS::Events::Rule",
    "AWS::IAM::InstanceProfile",
    "AWS::IAM::ManagedPolicy",
    "AWS::IAM::Role",
    "AWS::KMS::Alias",
    "AWS::KMS::Key",
    "AWS::Lambda::EventSourceMapping",
    "AWS::Lambda::Function",
    "AWS::Lambda::Permission",
    "AWS::Logs::LogGroup",
    "AWS::Logs::MetricFilter",
    "AWS::Logs::QueryDefinition",
    "AWS::SNS::Subscription",
    "AWS::SNS::Topic",
    "AWS::SQS::Queue",
    "AWS::SQS::QueuePolicy",
    "AWS::StepFunctions::StateMachine",
}


def allows(role, action, pk):
    """Returns whether a role allows a table action on the partition `pk`, as IAM decides.

    The local cloud cannot decide it, since it does not know leading keys.
    """
    decisions = {
        statement["Effect"]
        for statement in statements(role)
        if "Table.Arn" in map(resource_text, as_list(statement["Resource"])) and applies(statement, action, pk)
    }
    return decisions == {"Allow"}


def applies(statement, action, pk):
    named = any(
        fnmatchcase(action, pattern) for pattern in as_list(statement.get("Action", statement.get("NotAction")))
    )
    condition = dict(statement.get("Condition", {}))
    # This key asks for the replaced item; the tests ask whether the write itself is allowed.
    if condition.pop("StringEquals", None):
        return False
    # A request has one key, so `ForAllValues` and `ForAnyValue` mean the same.
    keys = [key for test in condition.values() for key in test["dynamodb:LeadingKeys"]]
    return named == ("Action" in statement) and (not condition or any(fnmatchcase(pk, key) for key in keys))


class Tenant(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.template = templates.tenant()

    def test_cfn_lint_finds_nothing(self):
        found = linting.lint((templates.INFRA / "tenant.yaml").read_text())

        self.assertEqual(found, [])

    def test_it_is_plain_cloudformation(self):
        self.assertNotIn("Transform", self.template)
        self.assertEqual([name for name, r in self.template["Resources"].items() if "ZipFile" in str(r)], [])

    def test_nothing_in_it_is_billed_by_the_hour(self):
        types = {resource["Type"] for resource in self.template["Resources"].values()}

        self.assertEqual(types - TYPES, set())
        for function in of_type(self.template, "AWS::Lambda::Function").values():
            self.assertNotIn("ProvisionedConcurrencyConfig", function["Properties"])

    def test_everything_taggable_carries_the_tenant(self):
        self.assertEqual(linting.untagged(self.template, {"freehold:tenant": {"Ref": "TenantName"}}), [])

    def test_the_table_is_on_demand_recoverable_encrypted_streamed_and_forgets(self):
        table = self.template["Resources"]["Table"]
        have = table["Properties"]

        self.assertEqual(have["BillingMode"], "PAY_PER_REQUEST")
        self.assertEqual(have["PointInTimeRecoverySpecification"], {"PointInTimeRecoveryEnabled": True})
        self.assertEqual(have["TimeToLiveSpecification"], {"AttributeName": "ttl", "Enabled": True})
        self.assertEqual(have["StreamSpecification"], {"StreamViewType": "NEW_AND_OLD_IMAGES"})
        self.assertEqual(
            have["SSESpecification"]["KMSMasterKeyId"],
            {"Fn::If": ["HasTableKey", {"Ref": "TableKeyArn"}, {"Ref": "AWS::NoValue"}]},
        )
        self.assertEqual([key["AttributeName"] for key in have["KeySchema"]], ["pk", "sk"])

    def test_what_holds_data_outlives_the_stack(self):
        for name in ("Table", "Repository", "SigningKey"):
            resource = self.template["Resources"][name]
            self.assertEqual(resource["DeletionPolicy"], "RetainExceptOnCreate", name)
            self.assertEqual(resource["UpdateReplacePolicy"], "Retain", name)

    def test_a_flood_of_reports_leaves_concurrency_to_the_other_functions(self):
        for reserves, most in (("yes", 100), ("no", 5)):
            evaluator = Evaluator(self.template, "t", "111111111111", {"ReservedConcurrency": reserves})
            functions = evaluator.resolve(of_type(self.template, "AWS::Lambda::Function"))
            kept = {name: one["Properties"].get("ReservedConcurrentExecutions") for name, one in functions.items()}
            kept = {name: count for name, count in kept.items() if count}
            source = evaluator.resolve(properties(self.template, "AcceptReportSource")["ScalingConfig"])

            self.assertEqual(source, {"MaximumConcurrency": most})
            # Lambda keeps 100 of the account's quota for functions that reserve none.
            self.assertLessEqual(sum(kept.values()) + max(100, 3 * most), 500)
            self.assertEqual(set(kept), KEPT if reserves == "yes" else set())

    def test_the_reports_queue_has_no_policy_that_an_update_would_put_back(self):
        queues = [
            queue
            for policy in of_type(self.template, "AWS::SQS::QueuePolicy").values()
            for queue in policy["Properties"]["Queues"]
        ]

        self.assertEqual(queues, [{"Ref": "BuildQueue"}, {"Ref": "NotificationsDeadLetters"}])

    def test_build_orders_go_from_two_functions_to_the_build_runner(self):
        denials = {
            statement["Action"] if isinstance(statement["Action"], str) else statement["Action"][0]: statement
            for statement in properties(self.template, "BuildQueuePolicy")["PolicyDocument"]["Statement"]
        }

        self.assertEqual({statement["Effect"] for statement in denials.values()}, {"Deny"})
        self.assertEqual(
            denials["sqs:SendMessage"]["Condition"],
            {
                "ArnNotEquals": {
                    "aws:PrincipalArn": [
                        {"Fn::GetAtt": ["DispatchJobRole", "Arn"]},
                        {"Fn::GetAtt": ["GrantArtifactRole", "Arn"]},
                    ]
                }
            },
        )
        self.assertEqual(
            denials["sqs:ReceiveMessage"]["Condition"],
            {"ArnNotEquals": {"aws:PrincipalArn": {"Fn::GetAtt": ["BuildRunnerRole", "Arn"]}}},
        )

    def test_only_the_build_runner_pushes_and_tags_do_not_move(self):
        repository = properties(self.template, "Repository")
        [deny] = repository["RepositoryPolicyText"]["Statement"]

        self.assertEqual(repository["ImageTagMutability"], "IMMUTABLE")
        self.assertEqual((deny["Effect"], deny["Principal"]), ("Deny", "*"))
        self.assertLessEqual({"ecr:PutImage", "ecr:InitiateLayerUpload"}, set(deny["Action"]))
        self.assertIn("role/fh-${TenantName}--build-runner", str(deny["Condition"]["ArnNotEquals"]))

    def test_only_two_roles_sign_and_the_key_is_ed25519(self):
        key = properties(self.template, "SigningKey")
        signs = [s for s in key["KeyPolicy"]["Statement"] if {"kms:Sign", "kms:*"} & set(as_list(s["Action"]))]

        self.assertEqual((key["KeySpec"], key["KeyUsage"]), ("ECC_NIST_EDWARDS25519", "SIGN_VERIFY"))
        self.assertEqual(len(signs), 1)
        roles = signs[0]["Condition"]["ArnEquals"]["aws:PrincipalArn"]
        self.assertEqual(
            [role["Fn::Sub"].rpartition("${TenantName}--")[2] for role in roles], ["dispatch-job", "grant-artifact"]
        )

    def test_every_function_logs_into_its_own_group_with_retention(self):
        groups = of_type(self.template, "AWS::Logs::LogGroup")
        for name, logical in templates.FUNCTIONS.items():
            self.assertEqual(
                groups[f"{logical}Logs"]["Properties"]["LogGroupName"],
                {"Fn::Sub": f"/aws/lambda/fh-${{TenantName}}--{name}"},
            )
        for name, group in groups.items():
            self.assertEqual(group["Properties"]["RetentionInDays"], {"Ref": "LogRetentionDays"}, name)

    def test_functions_are_named_sized_and_made_of_their_own_code(self):
        functions = of_type(self.template, "AWS::Lambda::Function")

        self.assertEqual(set(functions), set(templates.FUNCTIONS.values()))
        for name, logical in templates.FUNCTIONS.items():
            have = functions[logical]["Properties"]
            self.assertEqual(have["FunctionName"], {"Fn::Sub": f"fh-${{TenantName}}--{name}"})
            self.assertEqual(
                (have["Runtime"], have["MemorySize"]), ("provided.al2023", 256 if name in ("api", "console") else 128)
            )
            self.assertEqual(have["Role"], {"Fn::GetAtt": [f"{logical}Role", "Arn"]})
            self.assertEqual(have["Code"]["S3Key"], {"Ref": f"{logical}Code"})

    def test_every_function_may_do_what_its_row_lists_and_nothing_else(self):
        for logical, expected in ALLOWED.items():
            allowed = set()
            for statement in statements(self.template["Resources"][f"{logical}Role"]):
                if statement["Effect"] == "Allow":
                    allowed |= {
                        f"{action} {resource_text(resource)}"
                        for action in as_list(statement["Action"])
                        for resource in as_list(statement["Resource"])
                    }
            own_logs = {f"logs:{action} {logical}Logs.Arn" for action in ("CreateLogStream", "PutLogEvents")}
            with self.subTest(logical):
                self.assertEqual(allowed, expected | own_logs)

    def test_task_tokens_and_grants_have_walls(self):
        def who(action, pk):
            return {
                name
                for name, logical in templates.FUNCTIONS.items()
                if allows(self.template["Resources"][f"{logical}Role"], f"dynamodb:{action}", pk)
            }

        # The console's role permits the rows of sessions alone.
        everyone = set(templates.FUNCTIONS) - {"console"}
        for action in ("GetItem", "Query", "BatchGetItem", "DeleteItem", "ConditionCheckItem"):
            self.assertEqual(who(action, "token#wf_1"), {"accept-report", "sweep"}, action)
        for action in ("PutItem", "UpdateItem"):
            self.assertEqual(who(action, "token#wf_1"), {"accept-report", "sweep", "plan-workflow"}, action)
            self.assertEqual(who(action, "grant#gr_1"), {"grant-artifact"}, action)
            for pk in ("job#job_1", "install#prod", "workflow#wf_1", "open"):
                self.assertEqual(who(action, pk), everyone - {"grant-artifact", "prune-artifacts"}, pk)
            self.assertEqual(who(action, "app#shop"), everyone - {"grant-artifact"}, action)
        self.assertEqual(who("GetItem", "grant#gr_1"), {"grant-artifact"})
        for action in ("Query", "DeleteItem"):
            self.assertEqual(who(action, "grant#gr_1"), {"sweep"}, action)
        for pk in ("job#job_1", "workflow#wf_1", "install#prod", "app#shop"):
            self.assertEqual(who("GetItem", pk), everyone, pk)
        self.assertEqual(who("GetItem", "installs"), everyone - {"grant-artifact"})
        self.assertEqual(who("Scan", "job#job_1"), set())

    def test_the_console_reaches_the_rows_of_sessions_alone(self):
        role = self.template["Resources"]["ConsoleRole"]

        for action in ("GetItem", "Query", "PutItem", "UpdateItem", "DeleteItem", "ConditionCheckItem"):
            self.assertTrue(allows(role, f"dynamodb:{action}", "console-session#1"), action)
            for pk in ("job#job_1", "token#wf_1", "grant#gr_1", "app#shop", "installs", "console", "members"):
                self.assertFalse(allows(role, f"dynamodb:{action}", pk), f"{action} {pk}")
        self.assertFalse(allows(role, "dynamodb:Scan", "console-session#1"))

    def test_no_role_names_all_resources_for_an_action_that_knows_one(self):
        holders = of_type(self.template, "AWS::IAM::Role") | of_type(self.template, "AWS::IAM::ManagedPolicy")
        for name, role in holders.items():
            for statement in statements(role):
                if statement.get("Action") == "lambda:CreateEventSourceMapping":
                    # A mapping is known by its function only, before it exists.
                    function = {"ArnEquals": {"lambda:FunctionArn": {"Fn::GetAtt": ["AcceptReport", "Arn"]}}}
                    self.assertEqual(statement["Condition"], function, name)
                elif statement["Effect"] == "Allow" and "*" in as_list(statement["Resource"]):
                    self.assertLessEqual(set(as_list(statement["Action"])), WITHOUT_RESOURCE, name)
                if statement["Effect"] == "Allow":
                    self.assertEqual([a for a in as_list(statement["Action"]) if "*" in a], [], name)

    def test_only_the_build_role_reads_secrets_and_only_those_of_its_sources(self):
        roles = of_type(self.template, "AWS::IAM::Role") | of_type(self.template, "AWS::IAM::ManagedPolicy")
        read = {
            (name, resource_text(resource))
            for name, role in roles.items()
            for statement in statements(role)
            for resource in as_list(statement["Resource"])
            if statement["Effect"] == "Allow"
            and any(action.startswith("secretsmanager:") for action in as_list(statement["Action"]))
        }

        self.assertEqual(
            read,
            {
                ("BuildRunnerRole", "secretsmanager:secret:fh-T/source/*"),
            },
        )

    def test_the_build_role_takes_the_roles_of_private_registries_that_were_named_and_no_other(self):
        takes = [
            statement
            for statement in properties(self.template, "BuildRunnerRole")["Policies"][0]["PolicyDocument"]["Statement"]
            if "Fn::If" in statement and statement["Fn::If"][0] == "HasSourceRoles"
        ]

        self.assertEqual(
            takes,
            [
                {
                    "Fn::If": [
                        "HasSourceRoles",
                        {
                            "Sid": "SourceRoles",
                            "Effect": "Allow",
                            "Action": "sts:AssumeRole",
                            "Resource": {"Ref": "SourceRoles"},
                        },
                        {"Ref": "AWS::NoValue"},
                    ]
                }
            ],
        )

    def test_the_build_role_trusts_ec2_and_on_demand_one_principal_of_this_account(self):
        trust = properties(self.template, "BuildRunnerRole")["AssumeRolePolicyDocument"]["Statement"]
        condition, other, nothing = trust[1]["Fn::If"]

        self.assertEqual(trust[0]["Principal"], {"Service": "ec2.amazonaws.com"})
        self.assertEqual((condition, nothing), ("HasBuildRunnerPrincipal", {"Ref": "AWS::NoValue"}))
        self.assertEqual(other["Condition"], {"StringEquals": {"aws:PrincipalAccount": {"Ref": "AWS::AccountId"}}})

    def test_the_build_role_trusts_a_principal_of_this_account_whichever_account_the_parameter_names(self):
        for principal in ("root", "role/ci/builder", "user/me"):
            parameters = {"TenantName": "acme", "BuildRunnerPrincipal": f"arn:aws:iam::999999999999:{principal}"}
            stack = Evaluator(self.template, "freehold-acme", templates.TENANT_ACCOUNT, parameters)

            trust = stack.resolve(properties(self.template, "BuildRunnerRole")["AssumeRolePolicyDocument"])

            own = {"AWS": f"arn:aws:iam::{templates.TENANT_ACCOUNT}:{principal}"}
            self.assertEqual(trust["Statement"][1]["Principal"], own)

    def test_parameters_and_outputs_are_those_of_the_contract(self):
        code = {f"{name}Code" for name in templates.FUNCTIONS.values()}
        definitions = set(templates.DEFINITION_FILES)

        self.assertEqual(
            set(self.template["Parameters"]),
            {"RootKeyArn", "RootSuccession", "SecondRootKey", *code, *definitions}
            | {
                "TenantName",
                "DeployBucket",
                "Architecture",
                "TableKeyArn",
                "LogRetentionDays",
                "AlarmEmail",
                "BuildRunnerPrincipal",
                "SourceRoles",
                "RunnerUrl",
                "RunnerSha256",
                "RolesBoundary",
                "BuildSubnetIds",
                "BuildVpcId",
                "BuildInstanceType",
                "BuildImageId",
                "BuildIdleSecs",
                "BuilderUrl",
                "BuilderSha256",
                "ReservedConcurrency",
                "Webhooks",
                "InstallMetrics",
                "PeopleIssuer",
                "PeopleClientId",
                "PeopleSecondFactor",
                "PipelineIssuer",
                "PipelineAudience",
                "ConsoleAddress",
            },
        )
        self.assertEqual(
            set(self.template["Outputs"]),
            {
                "ApiUrl",
                "PeopleIssuer",
                "PeopleClientId",
                "SignInUrl",
                "ConsoleUrl",
                "TableName",
                "DeployBucket",
                "ReportsQueueUrl",
                "BuildQueueUrl",
                "RepositoryName",
                "SigningKeyId",
                "BuildRoleArn",
                "AlarmsTopicArn",
                "NotificationsTopicArn",
                "BuildGroupName",
            },
        )
