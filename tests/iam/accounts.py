"""One account of the simulated world: what a tenant or an install has in it, and what others have there."""

import policies
from templates import REGION


class Account:
    """The account of a tenant (`t`), or of one of its installs (`t` and `i`); what is added has `name` in front."""

    def __init__(self, world, name, number, t, i=None):
        self.world, self.name, self.number, self.t, self.i = world, name, number, t, i

    def arn(self, service, resource):
        return f"arn:aws:{service}:{REGION}:{self.number}:{resource}"

    def role_arn(self, role):
        return f"arn:aws:iam::{self.number}:role/{role}"

    def add_principal(self, name, kind, role, identity=(), boundary=(), context=None, account=None):
        """Adds the session of a role: its identity policies, its boundaries and the context of its requests."""
        self.world.principals[f"{self.name}/{name}"] = {
            "kind": kind,
            "account": account or self.number,
            "role": role,
            "t": self.t,
            "i": self.i,
            "identity": list(identity),
            "boundary": list(boundary),
            "context": context or {},
        }

    def add_service(self, name, kind, service, whose, anywhere=False, source=""):
        """Adds an AWS service that works for the account `whose`, there for the resource with the ARN `source`."""
        self.world.principals[f"{self.name}/{name}"] = {
            "kind": kind,
            "service": f"{service}.amazonaws.com",
            "t": self.t,
            "i": self.i,
            "context": {"aws:SourceAccount": whose, **({"aws:SourceArn": source} if source else {})},
            "anywhere": anywhere,
        }

    def add_resource(self, name, kind, arn, actions, policy=None, account=None):
        """Adds a resource and what is asked about it: actions, or pairs of an action and its request's context."""
        self.world.resources[f"{self.name}/{name}"] = {
            "kind": kind,
            "arn": arn,
            "account": account or self.number,
            "t": self.t,
            "i": self.i,
            "actions": [(action, {}) if isinstance(action, str) else action for action in actions],
            "policy": policy,
        }

    def add_resources_of_others(self):
        """Adds one resource of each kind that is in the account and that Freehold did not make."""
        kind, role_kind = ("vendor-elsewhere", "vendor-role") if self.i is None else ("elsewhere", "their-role")
        group = "autoScalingGroup:2:autoScalingGroupName/theirs"
        bucket = f"arn:aws:s3:::theirs-{self.number}"
        queue_actions = ["sqs:SendMessage", "sqs:ReceiveMessage", "sqs:SetQueueAttributes"]
        for name, arn, actions in (
            ("queue", self.arn("sqs", "theirs"), queue_actions),
            ("fifo", self.arn("sqs", "theirs.fifo"), ["sqs:SetQueueAttributes"]),
            ("stack", self.arn("cloudformation", "stack/theirs/1"), ["cloudformation:DescribeStacks"]),
            ("machine-of-theirs", self.arn("ec2", "instance/i-2"), ["ec2:TerminateInstances"]),
            (
                "group",
                self.arn("autoscaling", group),
                ["autoscaling:CompleteLifecycleAction", "autoscaling:SetDesiredCapacity"],
            ),
            ("object", f"{bucket}/x", ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"]),
            (
                "image",
                self.arn("ecr", "repository/theirs"),
                ["ecr:PutImage", "ecr:BatchGetImage", "ecr:BatchDeleteImage"],
            ),
            ("secret", self.arn("secretsmanager", "secret:theirs-AbCdEf"), ["secretsmanager:GetSecretValue"]),
            ("table", self.arn("dynamodb", "table/theirs"), ["dynamodb:GetItem", "dynamodb:PutItem"]),
            ("machine", self.arn("states", "stateMachine:theirs"), ["states:StartExecution"]),
            ("bucket", bucket, ["s3:ListBucket"]),
            ("function", self.arn("lambda", "function:theirs"), ["lambda:InvokeFunction"]),
            ("execution", self.arn("states", "execution:theirs:x"), ["states:DescribeExecution"]),
            ("log", self.arn("logs", "log-group:theirs:log-stream:x"), ["logs:PutLogEvents"]),
            (
                "buckets-state",
                bucket,
                [("s3:ListBucket", {"s3:prefix": "terraform/x"}), ("s3:ListBucket", {"s3:prefix": "audit/x"})],
            ),
        ):
            self.add_resource(f"their-{name}", kind, arn, actions)
        by_s3 = ("kms:Decrypt", {"kms:ViaService": f"s3.{REGION}.amazonaws.com"})
        key_actions = ["kms:Decrypt", by_s3, "kms:Sign", "kms:GetPublicKey"]
        key_policy = policies.open_to_account(self.number, "*", Resource="*")
        self.add_resource("their-key", kind, self.arn("kms", "key/theirs"), key_actions, key_policy)
        trust = policies.open_to_account(self.number, "sts:AssumeRole")
        role = self.role_arn("theirs")
        self.add_resource("their-role", role_kind, role, ["sts:AssumeRole"], trust)
        changes = ["iam:PassRole", "iam:PutRolePolicy", "iam:SimulatePrincipalPolicy"]
        self.add_resource("their-role-to-change", role_kind, role, changes)
