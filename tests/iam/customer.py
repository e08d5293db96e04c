"""An install in its customer's account: the roles and resources of its stack, and who else is in the account."""

import policies
import templates
from endpoints import add_endpoints
from intrinsics import Evaluator
from shared_account import BOUND_ROLE, SharedAccount
from templates import properties

MODES = ("provision", "maintenance", "deprovision")
# The modes, and the named roles of the app, by the logical names of their roles without `Role`.
MODE_ROLES = {**{mode: mode.title() for mode in MODES}, "break-glass": "BreakGlass", "custom-support": "CustomSupport"}
# When break-glass ends, and a moment after it; the simulation takes place before.
BREAK_GLASS_UNTIL, AFTER_IT = "2026-12-01T00:00:00Z", {"aws:CurrentTime": "2026-12-01T00:00:01Z"}
TAKE = ["sts:AssumeRole", "sts:TagSession"]
# A session from the time before `RevokeSessionsBefore`.
OLD_SESSION = {"aws:TokenIssueTime": "2026-09-30T23:59:59Z"}


def add_install(account, vendor, queues):
    """Adds the install of `account`; `queues` are the ARNs of its queues `orders` and `reports` at the vendor."""
    install = Install(account, vendor, queues)
    install.add_runner()
    for mode, logical in MODE_ROLES.items():
        install.add_mode(mode, f"{logical}Role")
    install.add_mode_beside_the_company()
    install.add_break_glass_that_is_over()
    install.add_attackers()
    install.add_queues_without_policy()
    install.add_machine()
    install.add_bucket()
    install.add_stack_resources()
    install.add_roles_of_the_app()
    install.add_sessions_of_the_app()
    SharedAccount(account, install.owner, install.on.reference("Boundary")).add()
    add_endpoints(account, install.template, install.evaluator, install.queues)
    account.add_resources_of_others()


class Install:
    def __init__(self, account, vendor, queues):
        self.account, self.vendor, self.queues, self.name = account, vendor, queues, account.name
        self.owner = f"{vendor.name}--{account.name}"
        # The second install of a tenant has its runner on a machine of the customer's own.
        self.is_elsewhere = account.i == 1
        template = templates.install_with_roles(
            tenant=vendor.name, tenant_account=vendor.number, install=account.name, account=account.number
        )
        # The widest policies that a vendor can write: only the boundary holds them.
        set_policies(template, [{"PolicyName": "all", "PolicyDocument": policies.EVERYTHING}])
        self.template = account.world.change("install", template)
        self.on = self.evaluator("true")
        # The same stack with the switch of each mode off, and with the kill switch off.
        self.off = self.evaluator("false")
        self.killed = self.evaluator("true", EnableRunner="false")
        self.stopped = self.evaluator("true", EnableAppRoles="false")
        # The same stack with a boundary of the company's, which limits nothing.
        self.company = f"arn:aws:iam::{account.number}:policy/company"
        self.beside = self.evaluator("true", PermissionsBoundaryArn=self.company)
        # And the same, after somebody has read that this boundary has every denial of the stack's own.
        self.read = self.evaluator("true", PermissionsBoundaryArn=self.company, PermissionsBoundaryHasOurs="true")
        self.boundary = self.document(self.on, "Boundary")
        self.base, self.limits = self.document(self.on, "Base"), self.document(self.on, "Limits")

    def evaluator(self, modes, **more):
        parameters = {
            "RevokeSessionsBefore": "2026-10-01T00:00:00Z",
            "RunnerPrincipal": self.account.role_arn("host") if self.is_elsewhere else "",
            "BreakGlassUntil": BREAK_GLASS_UNTIL,
            "AuditLock": "COMPLIANCE",
            **{f"Enable{logical}": modes for logical in MODE_ROLES.values()},
            **more,
        }
        return Evaluator(self.template, f"freehold-{self.owner}", self.account.number, parameters)

    def document(self, evaluator, logical):
        return evaluator.resolve(properties(self.template, logical)["PolicyDocument"])

    def trust(self, evaluator, logical):
        return evaluator.resolve(properties(self.template, logical)["AssumeRolePolicyDocument"])

    def role(self, logical, evaluator=None):
        """Returns the name of a role, its identity policies and its boundaries."""
        role = (evaluator or self.on).resolve(properties(self.template, logical))
        identity = [policy["PolicyDocument"] for policy in role["Policies"]]
        return role["RoleName"], identity, [self.boundary] if "PermissionsBoundary" in role else []

    def add_runner(self):
        name, identity, boundary = self.role("RunnerRole")
        killed = [*identity, self.document(self.killed, "Limits")]
        identity = [*identity, self.limits]
        self.account.add_principal("runner", "runner", name, identity, boundary)
        self.account.add_principal("killed-runner", "killed-runner", name, killed, boundary)
        _, without_locks, _ = self.role("RunnerRole", self.evaluator("true", AuditLock="none"))
        without_locks = [*without_locks, self.limits]
        self.account.add_principal("lockless-runner", "lockless-runner", name, without_locks, boundary)
        # What Limits alone leaves, whatever the runner's own policies say.
        wide = [policies.EVERYTHING, killed[-1]]
        self.account.add_principal("killed-wide-runner", "killed-wide-runner", name, wide, boundary)
        self.account.add_principal("old-runner", "old-session", name, identity, boundary, OLD_SESSION)
        kind = "runner-role-elsewhere" if self.is_elsewhere else "runner-role"
        self.add_role("runner", kind, "RunnerRole")
        if self.is_elsewhere:
            self.add_role_that_is_off("runner", "RunnerRole", self.killed)

    def add_mode(self, mode, logical):
        """Adds a role: on, without the vendor's policies, off, with the kill switch off, and revoked."""
        name, identity, boundary = self.role(logical)
        everywhere, off = [self.base, self.limits], [self.base, self.document(self.off, "Limits")]
        killed = [self.base, self.document(self.killed, "Limits")]
        self.account.add_principal(mode, mode, name, identity + everywhere, boundary)
        bare = "bare-deprovision" if mode == "deprovision" else "bare-mode"
        self.account.add_principal(f"bare-{mode}", bare, name, everywhere, boundary)
        self.account.add_principal(f"off-{mode}", "off-mode", name, identity + off, boundary)
        self.account.add_principal(f"killed-{mode}", "off-mode", name, identity + killed, boundary)
        self.account.add_principal(f"old-{mode}", "old-session", name, identity + everywhere, boundary, OLD_SESSION)
        self.add_role(mode, "mode-role", logical)
        self.add_role_that_is_off(mode, logical, self.off)
        self.add_role_that_is_off(mode, logical, self.killed, "killed")
        arn = self.on.attribute(logical, "Arn")
        trust = policies.open_to_account(self.account.number, "sts:*")
        self.account.add_resource(f"{mode}-role-left-open", "open-mode-role", arn, TAKE, trust)

    def add_mode_beside_the_company(self):
        """Adds a mode whose boundary is the company's; the stack's own is then attached to it as a policy."""
        name, own, _ = self.role("ProvisionRole")
        for kind, stack in (("beside-company", self.beside), ("beside-company-that-has-ours", self.read)):
            identity = [*own, *(self.document(stack, logical) for logical in ("Base", "Limits", "Boundary"))]
            self.account.add_principal(kind, kind, name, identity, [policies.EVERYTHING])

    def add_break_glass_that_is_over(self):
        name, identity, boundary = self.role("BreakGlassRole")
        identity = [*identity, self.base, self.limits]
        self.account.add_principal("over-break-glass", "off-mode", name, identity, boundary, AFTER_IT)
        arn, trust = self.on.attribute("BreakGlassRole", "Arn"), self.trust(self.on, "BreakGlassRole")
        self.account.add_resource("over-break-glass-role", "off-mode-role", arn, [("sts:AssumeRole", AFTER_IT)], trust)

    def add_role(self, name, kind, logical):
        arn = self.on.attribute(logical, "Arn")
        self.account.add_resource(f"{name}-role", kind, arn, TAKE, self.trust(self.on, logical))
        changes = ["iam:PassRole", "iam:PutRolePolicy", "iam:SimulatePrincipalPolicy"]
        self.account.add_resource(f"{name}-role-to-change", "stack-role", arn, changes)

    def add_role_that_is_off(self, name, logical, switched, why="off"):
        arn, trust = self.on.attribute(logical, "Arn"), self.trust(switched, logical)
        self.account.add_resource(f"{why}-{name}-role", "off-mode-role", arn, ["sts:AssumeRole"], trust)

    def add_attackers(self):
        sts = policies.everything_of("sts")
        # Without a boundary, to see what Base itself permits.
        self.account.add_principal("base-alone", "base-alone", f"fh-{self.owner}--provision", [self.base])
        # These may ask for every role, and the runner for every queue: only the policy of either stops them.
        runner = f"fh-{self.owner}--runner"
        self.account.add_principal("mighty-runner", "mighty-runner", runner, [sts, policies.everything_of("sqs")])
        # A policy of a resource that names the account lets in nobody whose own policies do not.
        self.account.add_principal("bare-runner", "bare-runner", runner)
        self.account.add_principal("host", "host" if self.is_elsewhere else "host-of-nothing", "host", [sts])
        # The customer's account lets its administrator, another role and a former runner do everything.
        for kind, role in (("admin", "admin"), ("other", "other"), ("former-runner", f"fh-{self.owner}--runner-old")):
            self.account.add_principal(kind, kind, role, [policies.EVERYTHING])

    def add_queues_without_policy(self):
        """Adds the vendor's queues as if they let the account in, so that only the runner's own policy decides."""
        for kind, arn in self.queues.items():
            self.account.add_resource(
                f"{kind}-left-open",
                f"open-{kind}",
                arn,
                ["sqs:SendMessage", "sqs:ReceiveMessage", "sqs:PurgeQueue"],
                policies.open_to_account(self.account.number, "sqs:*", Resource=arn),
                account=self.vendor.number,
            )

    def add_machine(self):
        tags = {"aws:ResourceTag/freehold:part": "runner", "aws:ResourceTag/freehold:install": self.name}
        group = f"autoScalingGroup:1:autoScalingGroupName/fh-{self.owner}--runner"
        for name, kind, arn, actions in (
            (
                "machine",
                "runner-machine",
                self.account.arn("ec2", "instance/i-1"),
                ["ec2:TerminateInstances", "ec2:ModifyInstanceAttribute"],
            ),
            (
                "group",
                "runner-group",
                self.account.arn("autoscaling", group),
                ["autoscaling:UpdateAutoScalingGroup", "autoscaling:CompleteLifecycleAction"],
            ),
        ):
            self.account.add_resource(name, kind, arn, [(action, tags) for action in actions])

    def add_bucket(self):
        bucket = self.on.attribute("Bucket", "Arn")

        def listing(prefix, *actions):
            return [(f"s3:{action}", {"s3:prefix": prefix}) for action in actions]

        objects = ["s3:PutObject", "s3:DeleteObject"]
        # An object as it is, and as it was.
        reads = ["s3:GetObject", "s3:GetObjectVersion"]

        def lock(days):
            return [("s3:PutObjectRetention", {"s3:object-lock-remaining-retention-days": str(days)})]

        both = ("ListBucket", "ListBucketVersions")
        rules = self.document(self.on, "BucketRules")
        for kind, arn, actions in (
            ("bucket", bucket, ["s3:PutBucketPolicy", "s3:PutBucketObjectLockConfiguration"]),
            ("lock", f"{bucket}/audit/000000000001.json", lock(3650)),
            ("lock-for-ever", f"{bucket}/audit/000000000001.json", lock(3652)),
            ("lock-of-a-state", f"{bucket}/terraform/x.tfstate", lock(30)),
            ("audit", f"{bucket}/audit/1", ["s3:GetObject", *objects]),
            ("record", f"{bucket}/audit/000000000001.json", [("s3:PutObject", {"s3:if-none-match": "*"})]),
            ("record-again", f"{bucket}/audit/000000000001.json", ["s3:PutObject"]),
            ("locked", f"{bucket}/locked/net/1.json", ["s3:GetObject", "s3:PutObjectTagging", *objects]),
            ("policies", f"{bucket}/policies/x.rego", [*reads, "s3:ReplicateObject", *objects]),
            (
                "approvals",
                f"{bucket}/approvals/x.json",
                [*reads, "s3:PutObjectTagging", "s3:ReplicateObject", *objects],
            ),
            ("plans", f"{bucket}/plans/x", objects),
            ("state", f"{bucket}/terraform/x.tfstate", ["s3:GetObject", "s3:PutObject", "s3:PutObjectTagging"]),
            ("audit-list", bucket, listing("audit/x", *both)),
            ("state-list", bucket, listing("terraform/x", *both)),
            ("other-list", bucket, [*listing("x", "ListBucket"), "s3:ListBucket"]),
        ):
            self.account.add_resource(kind, kind, arn, actions, rules)
        self.account.add_resource("logs", "logs", f"{bucket}/logs/x", ["s3:GetObject", *objects], rules)
        # Without the bucket's policy, only the runner's own policy denies it a second write, and only the boundary
        # denies a role of the app the state.
        again, both = ["s3:PutObject"], ["s3:GetObject", "s3:PutObject"]
        self.account.add_resource("open-record", "open-record", f"{bucket}/audit/000000000001.json", again)
        self.account.add_resource("open-state", "open-state", f"{bucket}/terraform/x.tfstate", both)

    def add_stack_resources(self):
        key_policy = self.on.resolve(properties(self.template, "Key")["KeyPolicy"])
        images = ["ecr:PutImage", "ecr:BatchGetImage", "ecr:DeleteRepository"]
        secret_actions = ["secretsmanager:GetSecretValue", "secretsmanager:PutSecretValue"]
        stack_actions = [f"cloudformation:{action}" for action in ("UpdateStack", "DetectStackDrift", "DescribeStacks")]
        self.account.add_resource("repository", "repository", self.on.attribute("Repository", "Arn"), images)
        by_secrets = ("kms:Decrypt", {"kms:ViaService": f"secretsmanager.{templates.REGION}.amazonaws.com"})
        key_actions = ["kms:Decrypt", by_secrets, "kms:PutKeyPolicy"]
        self.account.add_resource("key", "key", self.on.attribute("Key", "Arn"), key_actions, key_policy)
        by_s3 = [("kms:Decrypt", {"kms:ViaService": f"s3.{templates.REGION}.amazonaws.com"})]
        self.account.add_resource("key-by-s3", "key-by-s3", self.on.attribute("Key", "Arn"), by_s3, key_policy)
        key_of_digests = self.on.attribute("SecretsKey", "Id")
        self.account.add_resource("secrets-key", "secret", key_of_digests, secret_actions)
        app_secret = self.on.attribute("SecretAppSecretAdminPassword", "Id")
        self.account.add_resource("app-secret", "app-secret", app_secret, secret_actions)
        answer = self.account.arn("secretsmanager", f"secret:fh-{self.owner}/input/api_token-AbCdEf")
        self.account.add_resource("answer", "secret", answer, secret_actions)
        tags = ["tag:GetResources", "tag:TagResources"]
        self.account.add_resource("leftovers", "leftovers", "*", tags)
        self.account.add_resource("stack", "stack", self.on.values["AWS::StackId"], stack_actions)

    def add_roles_of_the_app(self):
        """Adds roles under the install's prefix, made with and without the boundary."""
        arn = self.account.role_arn(f"{self.owner}--own")
        bound = {"iam:PermissionsBoundary": self.on.reference("Boundary")}
        self.account.add_resource("own-role", "own-role", arn, [("iam:CreateRole", bound), "iam:PassRole"])
        of_company = [(action, {"iam:PermissionsBoundary": self.company}) for action in BOUND_ROLE]
        self.account.add_resource("own-role-of-company", "own-role-of-company", arn, of_company)
        unbound = ["iam:CreateRole", "iam:DeleteRolePermissionsBoundary"]
        self.account.add_resource("own-role-unbound", "unbound-role", arn, unbound)

    def add_sessions_of_the_app(self):
        """Adds a role that the app made, which may do everything within the boundary, and what ends it."""
        stopped = self.document(self.stopped, "Boundary")
        killed = self.document(self.killed, "Boundary")
        for name, kind, boundary, context in (
            ("app-role", "app-session", self.boundary, {}),
            ("app-role-of-a-killed-runner", "app-session", killed, {}),
            ("stopped-app-role", "off-mode", stopped, {}),
            ("old-app-role", "old-session", self.boundary, OLD_SESSION),
        ):
            self.account.add_principal(name, kind, "api", [policies.EVERYTHING], [boundary], context)
            self.account.world.principals[f"{self.account.name}/{name}"]["path"] = f"freehold/{self.owner}/"
        # Beside the company's boundary, which limits nothing here, under the install's path and under its prefix.
        kind, everything = "app-session-beside-company", [policies.EVERYTHING]
        self.account.add_principal(kind, kind, "api", everything, everything)
        self.account.world.principals[f"{self.account.name}/{kind}"]["path"] = f"freehold/{self.owner}/"
        self.account.add_principal(f"{kind}-by-name", kind, f"{self.owner}--api", everything, everything)


def set_policies(template, vendors):
    """Puts these in place of the inline policies that the vendor's app gives each mode and each named role."""
    for logical in MODE_ROLES.values():
        properties(template, f"{logical}Role")["Policies"] = vendors
