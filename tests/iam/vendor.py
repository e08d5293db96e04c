"""A tenant in its vendor's account: the roles and resources of the tenant stack, and who else is in the account."""

import json
from pathlib import Path

import policies
import templates
from accounts import Account
from customer import add_install
from intrinsics import Evaluator
from templates import REGION, properties

# Functions, the build runner and the state machines, by the logical name of their role without `Role`.
ROLES = {
    **templates.FUNCTIONS,
    "build-runner": "BuildRunner",
    **{f"{name}-machine": f"{logical}Machine" for name, logical in templates.DEFINITIONS.items()},
}
# Another vendor's account, with a role that lets a tenant's build runner in.
FOREIGN = "999999999999"
QUEUE_ACTIONS = [
    "sqs:SendMessage",
    "sqs:ReceiveMessage",
    "sqs:PurgeQueue",
    "sqs:SetQueueAttributes",
    "sqs:DeleteQueue",
    "sqs:DeleteMessage",
    "sqs:ChangeMessageVisibility",
    "sqs:CreateQueue",
    "sqs:TagQueue",
    "sqs:GetQueueUrl",
]
PUSH_ACTIONS = ["ecr:PutImage", "ecr:InitiateLayerUpload", "ecr:UploadLayerPart", "ecr:CompleteLayerUpload"]


def add_tenant(world, t, customers):
    """Adds tenant `t` with an install for each of its customers' accounts."""
    tenant = Tenant(world, t)
    tenant.add_roles()
    tenant.add_services()
    tenant.add_attackers()
    tenant.add_build_runner_surroundings()
    tenant.add_functions()
    tenant.add_machines()
    tenant.add_table()
    tenant.add_bucket()
    tenant.add_queues(customers)
    tenant.add_topics()
    tenant.add_registry_and_key()
    tenant.account.add_resources_of_others()
    for i, customer in enumerate(customers):
        tenant.add_install(i, customer)


class Tenant:
    def __init__(self, world, t):
        self.world, self.t = world, t
        # No tenant is called `fh-...`: the tenant stack and the checks of a customer refuse it (decision 0038).
        self.name, number = f"tenant{t}", f"{1000 + t:04d}".ljust(12, "1")
        self.account = Account(world, self.name, number, t)
        self.bucket = f"fh-{self.name}--{number}--{REGION}"
        # The second tenant names a principal of another vendor, whom the role's condition keeps out.
        self.builder_account = FOREIGN if t == 1 else number
        self.stack = Evaluator(
            world.tenant_template,
            f"freehold-{self.name}",
            number,
            {
                "TenantName": self.name,
                "DeployBucket": self.bucket,
                "TableKeyArn": "",
                "SourceRoles": [f"arn:aws:iam::{FOREIGN}:role/source-of-{self.name}"],
                "BuildRunnerPrincipal": f"arn:aws:iam::{self.builder_account}:role/builder-host",
                "BuildSubnetIds": "subnet-1",
            },
        )

    def resolved(self, logical, key):
        return self.stack.resolve(properties(self.stack.template, logical)[key])

    def add_roles(self):
        resources = self.stack.template["Resources"]
        for kind, logical in ROLES.items():
            declared = properties(self.stack.template, f"{logical}Role")
            role = self.stack.resolve(declared)
            attached = [arn["Ref"] for arn in declared.get("ManagedPolicyArns", []) if arn.get("Ref") in resources]
            identity = [policy["PolicyDocument"] for policy in role["Policies"]]
            identity += [self.resolved(policy, "PolicyDocument") for policy in attached]
            self.account.add_principal(kind, kind, role["RoleName"], identity)
            is_function, is_builder = kind in templates.FUNCTIONS, kind == "build-runner"
            self.account.add_resource(
                f"{kind}-role",
                "function-role" if is_function else "build-role" if is_builder else "machine-role",
                self.account.role_arn(role["RoleName"]),
                ["sts:AssumeRole", "sts:TagSession"],
                role["AssumeRolePolicyDocument"],
            )

    def add_services(self):
        """Adds the AWS services that take roles or send messages, each also as it works for somebody else."""
        own = self.account.number
        # Whoever may pass a role to Lambda or EC2 decides whose role it is; nothing in the service's request does.
        for service in ("lambda", "ec2"):
            self.account.add_service(f"service-{service}", f"service-{service}", service, own, anywhere=True)
        self.account.add_service("service-states", "service-states", "states", own)
        others = "service-states-for-others"
        self.account.add_service(others, others, "states", FOREIGN)
        for name, topic in (("service-sns", "notifications"), ("service-sns-for-others", "alarms")):
            source = self.account.arn("sns", f"fh-{self.name}--{topic}")
            self.account.add_service(name, name, "sns", own, source=source)
        # The queue of the topic names its sender twice: by the service, and by the topic that the service works for.
        source, name = self.account.arn("sns", f"fh-{self.name}--notifications"), "service-events-for-the-topic"
        self.account.add_service(name, name, "events", own, source=source)

    def add_attackers(self):
        """Adds principals that may ask for all of a service: only the policy of the resource can stop them."""
        host = "builder-host" if self.builder_account == self.account.number else "builder-host-of-others"
        sts, kms = policies.everything_of("sts"), policies.everything_of("kms")
        self.account.add_principal("builder-host", host, "builder-host", [sts], account=self.builder_account)
        self.account.add_principal("mighty-dispatch-job", "mighty-dispatch-job", f"fh-{self.name}--dispatch-job", [kms])
        # A policy of a resource that names the account lets in nobody whose own policies do not.
        self.account.add_principal("bare-dispatch-job", "bare-dispatch-job", f"fh-{self.name}--dispatch-job")
        self.account.add_principal("stranger", "vendor-stranger", "stranger")
        # A role that is called like a runner of the tenant's, in the account of a stranger.
        name, sqs = f"fh-{self.name}--globex--runner", policies.everything_of("sqs")
        self.account.add_principal("runner-of-nobody", "vendor-stranger", name, [sqs], account=FOREIGN)
        self.account.add_principal("admin", "vendor-admin", "admin", [policies.EVERYTHING])

    def add_build_runner_surroundings(self):
        """Adds the build runner's group, the credential of a source, a role for sources and another role."""
        trust = policies.open_to_account(self.account.number, "sts:*")
        source, other = (f"arn:aws:iam::{FOREIGN}:role/{name}" for name in (f"source-of-{self.name}", "other-source"))
        both = ["sts:AssumeRole", "sts:TagSession"]
        self.account.add_resource("source-role", "source-role", source, both, trust, account=FOREIGN)
        self.account.add_resource("other-source", "other-source", other, ["sts:AssumeRole"], trust, account=FOREIGN)
        self.account.add_resource(
            "build-group",
            "build-group",
            self.account.arn("autoscaling", f"autoScalingGroup:1:autoScalingGroupName/fh-{self.name}--build-runner"),
            ["autoscaling:SetDesiredCapacity", "autoscaling:UpdateAutoScalingGroup"],
        )
        self.account.add_resource(
            "source-credential",
            "source-credential",
            self.account.arn("secretsmanager", f"secret:fh-{self.name}/source/https/git.example/team-AbCdEf"),
            ["secretsmanager:GetSecretValue", "secretsmanager:PutSecretValue"],
            self.source_policy(),
        )
        beside = self.account.arn("secretsmanager", f"secret:fh-{self.name}/other-AbCdEf")
        self.account.add_resource("vendor-secret", "vendor-secret", beside, ["secretsmanager:GetSecretValue"])

    def source_policy(self):
        """Returns the policy that `freehold tenant source add` gives to the secret of a source."""
        text = (Path(__file__).parents[2] / "infra/source-policy.json").read_text()
        values = {"PARTITION": "aws", "ACCOUNT": self.account.number, "TENANT": self.name}
        for name, value in values.items():
            text = text.replace(f"%{{{name}}}", value)
        return json.loads(text)

    def add_functions(self):
        for kind in templates.FUNCTIONS:
            function = f"fh-{self.name}--{kind}"
            self.account.add_resource(
                f"{kind}-log",
                f"log-of-{kind}",
                self.account.arn("logs", f"log-group:/aws/lambda/{function}:log-stream:x"),
                ["logs:PutLogEvents", "logs:DeleteLogStream"],
            )
            self.account.add_resource(
                kind,
                f"function-{kind}",
                self.account.arn("lambda", f"function:{function}"),
                ["lambda:InvokeFunction", "lambda:UpdateFunctionCode"],
            )

        self.add_event_source_mappings()

    def add_event_source_mappings(self):
        """Adds what invokes a function for the messages of a queue; before it is created, it has no ARN."""

        def function(name):
            return {"lambda:FunctionArn": self.account.arn("lambda", f"function:{name}")}

        reports, create = function(f"fh-{self.name}--accept-report"), "lambda:CreateEventSourceMapping"
        others = [(create, function(name)) for name in (f"fh-{self.name}--dispatch-job", "theirs")]
        mapping = self.account.arn("lambda", "event-source-mapping:1")
        changes = [(f"lambda:{action}EventSourceMapping", reports) for action in ("Update", "Delete")]
        for name, arn, asked in (
            ("new-mapping-of-reports", "*", [(create, reports)]),
            ("new-mapping-of-others", "*", others),
            ("mapping-of-reports", mapping, changes),
        ):
            self.account.add_resource(name, name, arn, asked)

    def add_machines(self):
        for kind in templates.DEFINITIONS:
            machine = f"fh-{self.name}--{kind}"
            # Steps of a runbook are deploys, runs of actions and teardowns.
            is_step = kind in ("deploy-components", "run-action", "teardown-install")
            self.account.add_resource(
                kind,
                "step-machine" if is_step else "machine",
                self.account.arn("states", f"stateMachine:{machine}"),
                ["states:StartExecution", "states:DeleteStateMachine"],
            )
            self.account.add_resource(
                f"{kind}-run",
                "execution",
                self.account.arn("states", f"execution:{machine}:x"),
                ["states:DescribeExecution", "states:StopExecution"],
            )

    def add_table(self):
        """Adds the table once for each kind of row, since the policies tell rows apart by their leading key."""
        table = self.stack.attribute("Table", "Arn")
        get, put = "dynamodb:GetItem", "dynamodb:PutItem"

        def row(key, **more):
            return {"dynamodb:LeadingKeys": [key], **more}

        returned = [{"dynamodb:ReturnValues": what} for what in ("ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW")]
        given_back = [(action, row("token#1", **what)) for action in (put, "dynamodb:UpdateItem") for what in returned]

        # A batch or a transaction is asked about with the keys of all its rows.
        def beside_a_job(key, **more):
            return {"dynamodb:LeadingKeys": ["job#1", key], **more}

        of_grants = (get, put, "dynamodb:DeleteItem")
        for name, kind, actions in (
            ("rows", "rows", [(get, row("job#1")), (put, row("job#1")), "dynamodb:DeleteTable"]),
            ("rows-of-several", "rows", [(put, beside_a_job("app#1"))]),
            ("tokens-beside", "tokens", [(get, beside_a_job("token#1"))]),
            ("tokens-given-back-beside", "tokens-given-back", [(put, beside_a_job("token#1", **returned[0]))]),
            ("grants-beside", "grant-rows-beside", [(action, beside_a_job("grant#1")) for action in of_grants]),
            ("app-rows", "app-rows", [(put, row("app#1"))]),
            ("tokens", "tokens", [(get, row("token#1"))]),
            ("tokens-given-back", "tokens-given-back", given_back),
            ("grants", "grant-rows", [(action, row("grant#1")) for action in of_grants]),
            ("sessions", "session-rows", [(action, row("console-session#1")) for action in of_grants]),
            ("sessions-beside", "session-rows-beside", [(get, beside_a_job("console-session#1"))]),
        ):
            self.account.add_resource(name, kind, table, actions)

    def add_bucket(self):
        bucket = f"arn:aws:s3:::{self.bucket}"
        objects = ["s3:GetObject", "s3:DeleteObject"]
        self.account.add_resource("bucket", "vendor-bucket", bucket, ["s3:ListBucket", "s3:DeleteBucket"])
        self.account.add_resource("versions", "versions", f"{bucket}/versions/x.json", objects)
        self.account.add_resource("sources", "sources", f"{bucket}/sources/x.tar.gz", objects)
        self.account.add_resource("functions", "vendor-objects", f"{bucket}/functions/x.zip", objects)

    def add_queues(self, customers):
        reports = self.world.queue_policy("Reports", customers, tenant=self.name, tenant_account=self.account.number)
        for name, logical, policy in (
            ("reports", "ReportsQueue", reports),
            ("build-queue", "BuildQueue", self.resolved("BuildQueuePolicy", "PolicyDocument")),
            ("dispatch-queue", "DispatchQueue", None),
            ("grants-queue", "GrantsQueue", None),
            ("dead-letters", "DeadLetters", None),
            ("orders-dead-letters", "OrdersDeadLetters", None),
            (
                "notifications-dead-letters",
                "NotificationsDeadLetters",
                self.resolved("NotificationsDeadLettersPolicy", "PolicyDocument"),
            ),
        ):
            self.account.add_resource(name, name, self.stack.attribute(logical, "Arn"), QUEUE_ACTIONS, policy)
        later = f"{self.stack.attribute('ReportsQueue', 'Arn')}--2"
        self.account.add_resource("later-reports", "later-reports", later, QUEUE_ACTIONS, None)
        # Names that begin alike: of another tenant in the same account, and of an install of this one.
        for part in ("eu--globex.fifo", "eu--reports--2"):
            arn = self.account.arn("sqs", f"fh-{self.name}-{part}")
            self.account.add_resource(f"next-{part}", "next-queue", arn, QUEUE_ACTIONS)
        alike = self.account.arn("sqs", f"fh-{self.name}--reports-eu.fifo")
        self.account.add_resource("orders-alike", "orders-alike", alike, QUEUE_ACTIONS)

    def add_topics(self):
        """Adds the topics and their keys. The simulator, like AWS, lists no resource for a subscription's actions."""
        actions = [
            "sns:Publish",
            "sns:Subscribe",
            "sns:ListSubscriptionsByTopic",
            "sns:SetTopicAttributes",
            "sns:DeleteTopic",
        ]
        for name in ("notifications", "alarms"):
            self.account.add_resource(name, name, self.account.arn("sns", f"fh-{self.name}--{name}"), actions)
        # A key that SNS uses for a topic, and one of another account: the policies of both let this account in.
        by_sns = {"kms:ViaService": f"sns.{REGION}.amazonaws.com"}
        asked = [(f"kms:{action}", by_sns) for action in ("GenerateDataKey", "Decrypt", "CreateGrant")]
        policy = policies.open_to_account(self.account.number, "kms:*", Resource="*")
        for name, number in (("topic-key", self.account.number), ("topic-key-of-others", FOREIGN)):
            arn = f"arn:aws:kms:{REGION}:{number}:key/of-a-topic"
            self.account.add_resource(name, name, arn, asked, policy, account=number)

    def add_registry_and_key(self):
        registry = self.resolved("Repository", "RepositoryPolicyText")
        for statement in registry["Statement"]:
            statement["Resource"] = "*"
        self.account.add_resource(
            "registry",
            "registry",
            self.stack.attribute("Repository", "Arn"),
            [*PUSH_ACTIONS, "ecr:BatchGetImage", "ecr:BatchDeleteImage", "ecr:DeleteRepository"],
            registry,
        )
        self.account.add_resource(
            "root-key",
            "root-key",
            self.stack.attribute("SigningKey", "Arn"),
            ["kms:Sign", "kms:ScheduleKeyDeletion", "kms:CreateGrant"],
            self.resolved("SigningKey", "KeyPolicy"),
        )

    def add_install(self, i, customer):
        """Adds the orders queue of an install, which is in the vendor's account, and the install itself."""
        install = f"globex{self.t}x{i}"
        orders = self.account.arn("sqs", f"fh-{self.name}--{install}.fifo")
        vendors_side = Account(self.world, install, self.account.number, self.t, i)
        names = {"tenant": self.name, "tenant_account": self.account.number, "install": install, "account": customer}
        policy = self.world.queue_policy("Orders", **names)
        vendors_side.add_resource("orders", "orders", orders, QUEUE_ACTIONS, policy)
        queues = {"orders": orders, "reports": self.stack.attribute("ReportsQueue", "Arn")}
        add_install(Account(self.world, install, customer, self.t, i), self.account, queues)
