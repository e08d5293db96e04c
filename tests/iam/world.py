"""Tenants, installs and attackers as the templates make them, and who may do what: written down apart from any policy."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "infra"))
import templates  # noqa: E402

REGION = templates.REGION
# Functions and the build runner, by the logical name of their role.
ROLES = {
    **templates.FUNCTIONS,
    "build-runner": "BuildRunner",
    **{f"{name}-machine": f"{logical}Machine" for name, logical in templates.DEFINITIONS.items()},
}
STS, KMS = (
    {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": f"{of}:*", "Resource": "*"}]}
    for of in ("sts", "kms")
)
# Somebody else's account, with a role that lets the build runner of a tenant in.
FOREIGN = "999999999999"
EVERYTHING = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}


class Env:
    """What `Ref` and `Fn::GetAtt` of a template stand for."""

    def __init__(self, template, account, parameters):
        self.template, self.account = template, account
        self.values = {"AWS::Partition": "aws", "AWS::Region": REGION, "AWS::AccountId": account, **parameters}
        for name, parameter in template.get("Parameters", {}).items():
            self.values.setdefault(name, parameter.get("Default", ""))
        self.values["AWS::StackId"] = (
            f"arn:aws:cloudformation:{REGION}:{account}:stack/{self.values['AWS::StackName']}/id"
        )

    def resolve(self, node):
        if isinstance(node, list):
            resolved = [self.resolve(item) for item in node]
            return [item for item in resolved if item is not None]
        if not isinstance(node, dict):
            return node
        if len(node) == 1:
            [(function, value)] = node.items()
            if function == "Ref":
                return None if value == "AWS::NoValue" else self.reference(value)
            if function == "Fn::GetAtt":
                return self.attribute(*value)
            if function == "Fn::Sub":
                return self.sub(value)
            if function == "Fn::If":
                return self.resolve(value[1 if self.holds(value[0]) else 2])
            if function == "Fn::FindInMap":
                name, first, second = self.resolve(value)
                return self.template["Mappings"][name][first][second]
            if function.startswith("Fn::"):
                raise ValueError(f"unknown function {function}")
        resolved = {key: self.resolve(value) for key, value in node.items()}
        return {key: value for key, value in resolved.items() if value is not None}

    def sub(self, value):
        text, extra = (value, {}) if isinstance(value, str) else value
        for name in set(_names(text)):
            found = (
                self.resolve(extra[name])
                if name in extra
                else (self.attribute(*name.split(".", 1)) if "." in name else self.reference(name))
            )
            text = text.replace("${" + name + "}", str(found))
        return text

    def reference(self, name):
        if name in self.values:
            return self.values[name]
        resource = self.template["Resources"][name]
        own = resource["Properties"]
        kind = resource["Type"]
        if kind == "AWS::IAM::ManagedPolicy":
            return f"arn:aws:iam::{self.account}:policy/{self.resolve(own['ManagedPolicyName'])}"
        for key in (
            "RoleName",
            "RepositoryName",
            "BucketName",
            "TableName",
            "QueueName",
            "LogGroupName",
            "FunctionName",
        ):
            if key in own:
                return self.resolve(own[key])
        return f"{name}-{self.values['AWS::StackName']}"

    def attribute(self, name, attribute):
        resource = self.template["Resources"][name]
        kind, own, account = resource["Type"], self.reference(name), self.account
        arns = {
            "AWS::IAM::Role": f"arn:aws:iam::{account}:role/{own}",
            "AWS::ECR::Repository": f"arn:aws:ecr:{REGION}:{account}:repository/{own}",
            "AWS::S3::Bucket": f"arn:aws:s3:::{own}",
            "AWS::DynamoDB::Table": f"arn:aws:dynamodb:{REGION}:{account}:table/{own}",
            "AWS::SQS::Queue": f"arn:aws:sqs:{REGION}:{account}:{own}",
            "AWS::KMS::Key": f"arn:aws:kms:{REGION}:{account}:key/{own}",
            "AWS::Lambda::Function": f"arn:aws:lambda:{REGION}:{account}:function:{own}",
            "AWS::Logs::LogGroup": f"arn:aws:logs:{REGION}:{account}:log-group:{own}:*",
            "AWS::SecretsManager::Secret": f"arn:aws:secretsmanager:{REGION}:{account}:secret:{self.resolve(resource['Properties'].get('Name', own))}-AbCdEf",
        }
        return arns.get(kind, f"arn:aws:other:{REGION}:{account}:{own}")

    def holds(self, name):
        return self._truth(self.template["Conditions"][name])

    def _truth(self, node):
        [(function, value)] = node.items()
        if function == "Fn::Not":
            return not self._truth(value[0])
        if function == "Fn::And":
            return all([self._truth(one) for one in value])
        if function == "Fn::Or":
            return any([self._truth(one) for one in value])
        if function == "Condition":
            return self.holds(value)
        if function == "Fn::Equals":
            left, right = (self._said(side) for side in value)
            return left == right
        raise ValueError(f"unknown condition {function}")

    def _said(self, node):
        if isinstance(node, dict) and "Fn::Join" in node:
            parts = self.resolve(node["Fn::Join"][1])
            return node["Fn::Join"][0].join([parts] if isinstance(parts, str) else parts)
        return self.resolve(node)


def _names(text):
    return [piece.split("}", 1)[0] for piece in text.split("${")[1:] if not piece.startswith("!")]


class World:
    """`tenants` tenants with `installs` installs each, every install in an account of its own; `change` gets the name of each
    template (`tenant` or `install`) and the template, and may change it."""

    def __init__(self, tenants, installs, change=lambda name, template: template):
        self.principals, self.resources, self.change = {}, {}, change
        self.tenant_template = change("tenant", templates.tenant())
        for t in range(tenants):
            self._tenant(t, [(i, f"{2000 + 100 * t + i:04d}".ljust(12, "2")) for i in range(installs)])
        self.principals["anonymous"] = {"kind": "anonymous"}

    def _tenant(self, t, installs):
        name, account = f"tenant{t}", f"{1000 + t:04d}".ljust(12, "1")
        env = Env(
            self.tenant_template,
            account,
            {
                "AWS::StackName": f"freehold-{name}",
                "TenantName": name,
                "DeployBucket": f"fh-{name}-{account}-{REGION}",
                "TableKeyArn": "",
                "SourceRoles": [f"arn:aws:iam::{FOREIGN}:role/source-of-{name}"],
                # The second tenant was given a principal of a stranger's, which the role's condition keeps out.
                "BuildRunnerPrincipal": f"arn:aws:iam::{account if t != 1 else FOREIGN}:role/builder-host",
            },
        )
        resources = self.tenant_template["Resources"]
        for kind, logical in ROLES.items():
            properties = env.resolve(resources[f"{logical}Role"]["Properties"])
            listed = resources[f"{logical}Role"]["Properties"].get("ManagedPolicyArns", [])
            managed = [
                env.resolve(resources[one["Ref"]]["Properties"]["PolicyDocument"])
                for one in listed
                if one.get("Ref") in resources
            ]
            self._principal(
                f"{name}/{kind}",
                kind,
                account,
                properties["RoleName"],
                t,
                None,
                [policy["PolicyDocument"] for policy in properties["Policies"]] + managed,
            )
            of = (
                "function-role"
                if kind in templates.FUNCTIONS
                else "build-role"
                if kind == "build-runner"
                else "machine-role"
            )
            self._resource(
                f"{name}/{kind}-role",
                of,
                f"arn:aws:iam::{account}:role/{properties['RoleName']}",
                account,
                t,
                None,
                [("sts:AssumeRole", {}), ("sts:TagSession", {})],
                properties["AssumeRolePolicyDocument"],
            )
        # AWS's own services, and one that works for somebody else.
        for kind, whose in (("lambda", account), ("ec2", account), ("states", account), ("states", FOREIGN)):
            which = kind if whose == account else f"{kind}-for-others"
            self.principals[f"{name}/service-{which}"] = {
                "kind": f"service-{which}",
                "service": f"{kind}.amazonaws.com",
                "t": t,
                "i": None,
                "context": {"aws:SourceAccount": whose},
                # Who may pass a role to these decides whose it is; nothing in a request does.
                "anywhere": kind in ("lambda", "ec2"),
            }
        # They may ask for anything of a kind, so that only the policy of the resource stands in the way.
        host, where = ("builder-host", account) if t != 1 else ("builder-host-of-others", FOREIGN)
        self._principal(f"{name}/builder-host", host, where, "builder-host", t, None, [STS])
        self._principal(
            f"{name}/mighty-dispatch-job", "mighty-dispatch-job", account, f"fh-{name}-dispatch-job", t, None, [KMS]
        )
        trust = {
            "Version": "2012-10-17",
            "Statement": [{"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{account}:root"}, "Action": "sts:*"}],
        }
        self._resource(
            f"{name}/source-role",
            "source-role",
            f"arn:aws:iam::{FOREIGN}:role/source-of-{name}",
            FOREIGN,
            t,
            None,
            [("sts:AssumeRole", {}), ("sts:TagSession", {})],
            trust,
        )
        self._resource(
            f"{name}/other-source",
            "other-source",
            f"arn:aws:iam::{FOREIGN}:role/other-source",
            FOREIGN,
            t,
            None,
            [("sts:AssumeRole", {})],
            trust,
        )
        for kind in templates.FUNCTIONS:
            group = f"arn:aws:logs:{REGION}:{account}:log-group:/aws/lambda/fh-{name}-{kind}:log-stream:x"
            self._resource(
                f"{name}/{kind}-log",
                f"log-of-{kind}",
                group,
                account,
                t,
                None,
                [("logs:PutLogEvents", {}), ("logs:DeleteLogStream", {})],
            )
            self._resource(
                f"{name}/{kind}",
                f"function-{kind}",
                f"arn:aws:lambda:{REGION}:{account}:function:fh-{name}-{kind}",
                account,
                t,
                None,
                [("lambda:InvokeFunction", {}), ("lambda:UpdateFunctionCode", {})],
            )
        for kind in templates.DEFINITIONS:
            self._resource(
                f"{name}/{kind}",
                "machine",
                f"arn:aws:states:{REGION}:{account}:stateMachine:fh-{name}-{kind}",
                account,
                t,
                None,
                [("states:StartExecution", {}), ("states:DeleteStateMachine", {})],
            )
            self._resource(
                f"{name}/{kind}-run",
                "execution",
                f"arn:aws:states:{REGION}:{account}:execution:fh-{name}-{kind}:x",
                account,
                t,
                None,
                [("states:DescribeExecution", {}), ("states:StopExecution", {})],
            )
        self._principal(f"{name}/stranger", "vendor-stranger", account, "stranger", t, None, [])
        self._principal(f"{name}/admin", "vendor-admin", account, "admin", t, None, [EVERYTHING])
        self._resource(
            f"{name}/enrolment",
            "build-enrolment",
            f"arn:aws:secretsmanager:{REGION}:{account}:secret:fh-{name}/build-enrolment-AbCdEf",
            account,
            t,
            None,
            [("secretsmanager:GetSecretValue", {}), ("secretsmanager:PutSecretValue", {})],
        )
        self._resource(
            f"{name}/bucket",
            "vendor-bucket",
            f"arn:aws:s3:::fh-{name}-{account}-{REGION}",
            account,
            t,
            None,
            [("s3:ListBucket", {}), ("s3:DeleteBucket", {})],
        )
        queue = env.attribute
        ours = [(f"globex{t}x{i}", customer) for i, customer in installs]
        table, bucket = queue("Table", "Arn"), f"arn:aws:s3:::fh-{name}-{account}-{REGION}"
        build = env.resolve(resources["BuildQueuePolicy"]["Properties"]["PolicyDocument"])
        registry = env.resolve(resources["Repository"]["Properties"]["RepositoryPolicyText"])
        for statement in registry["Statement"]:
            statement["Resource"] = "*"
        self._resource(
            f"{name}/rows",
            "rows",
            table,
            account,
            t,
            None,
            [
                ("dynamodb:GetItem", {"dynamodb:LeadingKeys": ["job#1"]}),
                ("dynamodb:PutItem", {"dynamodb:LeadingKeys": ["job#1"]}),
                ("dynamodb:DeleteTable", {}),
            ],
        )
        self._resource(
            f"{name}/app-rows",
            "app-rows",
            table,
            account,
            t,
            None,
            [("dynamodb:PutItem", {"dynamodb:LeadingKeys": ["app#1"]})],
        )
        self._resource(
            f"{name}/tokens",
            "tokens",
            table,
            account,
            t,
            None,
            [("dynamodb:GetItem", {"dynamodb:LeadingKeys": ["token#1"]})],
        )
        self._resource(
            f"{name}/tokens-given-back",
            "tokens-given-back",
            table,
            account,
            t,
            None,
            [("dynamodb:PutItem", {"dynamodb:LeadingKeys": ["token#1"], "dynamodb:ReturnValues": "ALL_OLD"})],
        )
        self._resource(
            f"{name}/grants",
            "grant-rows",
            table,
            account,
            t,
            None,
            [("dynamodb:PutItem", {"dynamodb:LeadingKeys": ["grant#1"]})],
        )
        both = [
            (f"sqs:{action}", {})
            for action in ("SendMessage", "ReceiveMessage", "PurgeQueue", "SetQueueAttributes", "DeleteQueue")
        ]
        self._elsewhere(name, account, t, None)
        self._resource(
            f"{name}/reports",
            "reports",
            queue("ReportsQueue", "Arn"),
            account,
            t,
            None,
            both,
            _reports_policy(queue("ReportsQueue", "Arn"), sorted(customer for _, customer in ours)),
        )
        self._resource(f"{name}/build-queue", "build-queue", queue("BuildQueue", "Arn"), account, t, None, both, build)
        self._resource(
            f"{name}/dispatch-queue", "dispatch-queue", queue("DispatchQueue", "Arn"), account, t, None, both
        )
        self._resource(f"{name}/grants-queue", "grants-queue", queue("GrantsQueue", "Arn"), account, t, None, both)
        self._resource(
            f"{name}/registry",
            "registry",
            queue("Repository", "Arn"),
            account,
            t,
            None,
            [
                ("ecr:PutImage", {}),
                ("ecr:BatchGetImage", {}),
                ("ecr:BatchDeleteImage", {}),
                ("ecr:DeleteRepository", {}),
            ],
            registry,
        )
        self._resource(
            f"{name}/root-key",
            "root-key",
            queue("SigningKey", "Arn"),
            account,
            t,
            None,
            [("kms:Sign", {}), ("kms:ScheduleKeyDeletion", {}), ("kms:CreateGrant", {})],
            env.resolve(resources["SigningKey"]["Properties"]["KeyPolicy"]),
        )
        objects = [("s3:GetObject", {}), ("s3:DeleteObject", {})]
        self._resource(f"{name}/versions", "versions", f"{bucket}/versions/x.json", account, t, None, objects)
        self._resource(f"{name}/sources", "sources", f"{bucket}/sources/x.tar.gz", account, t, None, objects)
        for i, (install, customer) in enumerate(ours):
            arn = f"arn:aws:sqs:{REGION}:{account}:fh-{name}-{install}.fifo"
            self._resource(
                f"{install}/orders", "orders", arn, account, t, i, both, _orders_policy(arn, install, customer)
            )
            self._install(t, i, name, account, install, customer, arn, queue("ReportsQueue", "Arn"))

    def _install(self, t, i, tenant, tenant_account, install, customer, orders, reports):
        words = {
            "TENANT": tenant,
            "TENANT_ACCOUNT": tenant_account,
            "INSTALL": install,
            "ACCOUNT": customer,
            "ORDERS_QUEUE_ARN": orders,
            "REPORTS_QUEUE_ARN": reports,
            "PROVISION_MANAGED": "",
            # As mighty as a vendor could write them: what holds them is the boundary.
            **{
                f"{mode}_POLICIES": json.dumps([{"PolicyName": "all", "PolicyDocument": EVERYTHING}])
                for mode in ("PROVISION", "MAINTENANCE", "DEPROVISION")
            },
        }
        template = self.change("install", templates.parse(templates.install_text(**words)))
        # The second install's runner works on a machine of the customer's.
        given = {
            "AWS::StackName": f"freehold-{install}",
            "RevokeSessionsBefore": "2026-10-01T00:00:00Z",
            "RunnerPrincipal": f"arn:aws:iam::{customer}:role/host" if i == 1 else "",
        }
        switches = ("EnableProvision", "EnableMaintenance", "EnableDeprovision")
        env = Env(template, customer, {**given, **dict.fromkeys(switches, "true")})
        off = Env(template, customer, {**given, **dict.fromkeys(switches, "false"), "EnableRunner": "false"})
        resources = template["Resources"]
        boundary = env.resolve(resources["Boundary"]["Properties"]["PolicyDocument"])
        base, taken = (env.resolve(resources[name]["Properties"]["PolicyDocument"]) for name in ("Base", "Limits"))
        for kind, logical in (
            ("runner", "RunnerRole"),
            ("provision", "ProvisionRole"),
            ("maintenance", "MaintenanceRole"),
            ("deprovision", "DeprovisionRole"),
        ):
            properties = env.resolve(resources[logical]["Properties"])
            identity, role = [policy["PolicyDocument"] for policy in properties["Policies"]], properties["RoleName"]
            limits = [boundary] if "PermissionsBoundary" in properties else []
            self._principal(
                f"{install}/{kind}",
                kind,
                customer,
                role,
                t,
                i,
                identity + ([] if kind == "runner" else [base, taken]),
                limits,
            )
            of = "mode-role" if kind != "runner" else "runner-role" if i != 1 else "runner-role-elsewhere"
            self._resource(
                f"{install}/{kind}-role",
                of,
                env.attribute(logical, "Arn"),
                customer,
                t,
                i,
                [("sts:AssumeRole", {}), ("sts:TagSession", {})],
                properties["AssumeRolePolicyDocument"],
            )
            self._resource(
                f"{install}/{kind}-role-to-change",
                "stack-role",
                env.attribute(logical, "Arn"),
                customer,
                t,
                i,
                [("iam:PassRole", {}), ("iam:PutRolePolicy", {}), ("iam:SimulatePrincipalPolicy", {})],
            )
            left_open = {
                "Version": "2012-10-17",
                "Statement": [
                    {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{customer}:root"}, "Action": "sts:*"}
                ],
            }
            if kind == "runner":
                if i == 1:
                    self._resource(
                        f"{install}/off-runner-role",
                        "off-mode-role",
                        env.attribute(logical, "Arn"),
                        customer,
                        t,
                        i,
                        [("sts:AssumeRole", {})],
                        off.resolve(resources[logical]["Properties"]["AssumeRolePolicyDocument"]),
                    )
                continue
            self._resource(
                f"{install}/{kind}-role-left-open",
                "open-mode-role",
                env.attribute(logical, "Arn"),
                customer,
                t,
                i,
                [("sts:AssumeRole", {}), ("sts:TagSession", {})],
                left_open,
            )
            self._principal(f"{install}/bare-{kind}", "bare-mode", customer, role, t, i, [base, taken], limits)
            # Switched off: with what the vendor wrote and what every mode has, but for what takes it away.
            nothing = off.resolve(resources["Limits"]["Properties"]["PolicyDocument"])
            self._principal(
                f"{install}/off-{kind}", "off-mode", customer, role, t, i, identity + [base, nothing], limits
            )
            self._principal(
                f"{install}/old-{kind}",
                "old-session",
                customer,
                role,
                t,
                i,
                identity + [base, taken],
                limits,
                {"aws:TokenIssueTime": "2026-09-30T23:59:59Z"},
            )
            self._resource(
                f"{install}/off-{kind}-role",
                "off-mode-role",
                env.attribute(logical, "Arn"),
                customer,
                t,
                i,
                [("sts:AssumeRole", {})],
                off.resolve(resources[logical]["Properties"]["AssumeRolePolicyDocument"]),
            )
        # Without the boundary, to see what it does not have to hold back; and whom only the trust of a role stops.
        self._principal(f"{install}/base-alone", "base-alone", customer, f"fh-{install}-provision", t, i, [base])
        self._principal(f"{install}/mighty-runner", "mighty-runner", customer, f"fh-{install}-runner", t, i, [STS])
        self._principal(f"{install}/host", "host" if i == 1 else "host-of-nothing", customer, "host", t, i, [STS])
        group, mark = (
            "autoScalingGroup:1:autoScalingGroupName",
            {"aws:ResourceTag/freehold:part": "runner", "aws:ResourceTag/freehold:install": install},
        )
        self._resource(
            f"{install}/machine",
            "runner-machine",
            f"arn:aws:ec2:{REGION}:{customer}:instance/i-1",
            customer,
            t,
            i,
            [("ec2:TerminateInstances", mark), ("ec2:ModifyInstanceAttribute", mark)],
        )
        self._resource(
            f"{install}/group",
            "runner-group",
            f"arn:aws:autoscaling:{REGION}:{customer}:{group}/fh-{install}-runner",
            customer,
            t,
            i,
            [("autoscaling:UpdateAutoScalingGroup", mark), ("autoscaling:CompleteLifecycleAction", mark)],
        )
        # As if the vendor's side let everything in: what is left is what the runner's own policy says.
        everything = [(f"sqs:{action}", {}) for action in ("SendMessage", "ReceiveMessage", "PurgeQueue")]
        for kind, arn in (("orders", orders), ("reports", reports)):
            open_to_all = {
                "Version": "2012-10-17",
                "Statement": [
                    {
                        "Effect": "Allow",
                        "Principal": {"AWS": f"arn:aws:iam::{customer}:root"},
                        "Action": "sqs:*",
                        "Resource": arn,
                    }
                ],
            }
            self._resource(
                f"{install}/{kind}-left-open", f"open-{kind}", arn, tenant_account, t, i, everything, open_to_all
            )
        self._elsewhere(install, customer, t, i)
        limit = {"iam:PermissionsBoundary": env.reference("Boundary")}
        own = f"arn:aws:iam::{customer}:role/{install}-own"
        self._resource(
            f"{install}/own-role", "own-role", own, customer, t, i, [("iam:CreateRole", limit), ("iam:PassRole", {})]
        )
        self._resource(
            f"{install}/own-role-unbound",
            "unbound-role",
            own,
            customer,
            t,
            i,
            [("iam:CreateRole", {}), ("iam:DeleteRolePermissionsBoundary", {})],
        )
        self._resource(
            f"{install}/stack",
            "stack",
            env.values["AWS::StackId"],
            customer,
            t,
            i,
            [("cloudformation:UpdateStack", {}), ("cloudformation:DescribeStacks", {})],
        )
        # An administrator, another role and a former runner of the customer's: their own account lets them do everything.
        for kind in ("admin", "other", "former-runner"):
            self._principal(
                f"{install}/{kind}",
                kind,
                customer,
                {"former-runner": f"fh-{install}-runner-old"}.get(kind, kind),
                t,
                i,
                [EVERYTHING],
            )
        bucket = env.attribute("Bucket", "Arn")
        self._resource(
            f"{install}/audit",
            "audit",
            f"{bucket}/audit/1",
            customer,
            t,
            i,
            [("s3:PutObject", {}), ("s3:DeleteObject", {})],
        )
        self._resource(f"{install}/bucket", "bucket", bucket, customer, t, i, [("s3:PutBucketPolicy", {})])
        self._resource(
            f"{install}/audit-list",
            "audit-list",
            bucket,
            customer,
            t,
            i,
            [("s3:ListBucket", {"s3:prefix": "audit/x"}), ("s3:ListBucketVersions", {"s3:prefix": "audit/x"})],
        )
        self._resource(
            f"{install}/state-list",
            "state-list",
            bucket,
            customer,
            t,
            i,
            [("s3:ListBucket", {"s3:prefix": "terraform/x"}), ("s3:ListBucketVersions", {"s3:prefix": "terraform/x"})],
        )
        self._resource(
            f"{install}/other-list", "other-list", bucket, customer, t, i, [("s3:ListBucket", {"s3:prefix": "x"})]
        )
        self._resource(
            f"{install}/state",
            "state",
            f"{bucket}/terraform/x.tfstate",
            customer,
            t,
            i,
            [("s3:GetObject", {}), ("s3:PutObject", {}), ("s3:PutObjectTagging", {})],
        )
        self._resource(
            f"{install}/plans",
            "plans",
            f"{bucket}/plans/x",
            customer,
            t,
            i,
            [("s3:PutObject", {}), ("s3:DeleteObject", {})],
        )
        self._resource(
            f"{install}/repository",
            "repository",
            env.attribute("Repository", "Arn"),
            customer,
            t,
            i,
            [("ecr:PutImage", {}), ("ecr:BatchGetImage", {}), ("ecr:DeleteRepository", {})],
        )
        self._resource(
            f"{install}/key",
            "key",
            env.attribute("Key", "Arn"),
            customer,
            t,
            i,
            [("kms:Decrypt", {}), ("kms:PutKeyPolicy", {})],
            env.resolve(resources["Key"]["Properties"]["KeyPolicy"]),
        )
        self._resource(
            f"{install}/secret",
            "secret",
            env.attribute("Enrolment", "Id"),
            customer,
            t,
            i,
            [("secretsmanager:GetSecretValue", {}), ("secretsmanager:PutSecretValue", {})],
        )

    def _elsewhere(self, of, account, t, i):
        """What else there is in an account, which nothing of ours has to do with."""
        where, role = ("vendor-elsewhere", "vendor-role") if i is None else ("elsewhere", "their-role")
        things = [
            (
                "queue",
                f"arn:aws:sqs:{REGION}:{account}:theirs",
                ["sqs:SendMessage", "sqs:ReceiveMessage", "sqs:SetQueueAttributes"],
            ),
            ("fifo", f"arn:aws:sqs:{REGION}:{account}:theirs.fifo", ["sqs:SetQueueAttributes"]),
            ("stack", f"arn:aws:cloudformation:{REGION}:{account}:stack/theirs/1", ["cloudformation:DescribeStacks"]),
            ("machine-of-theirs", f"arn:aws:ec2:{REGION}:{account}:instance/i-2", ["ec2:TerminateInstances"]),
            (
                "group",
                f"arn:aws:autoscaling:{REGION}:{account}:autoScalingGroup:2:autoScalingGroupName/theirs",
                ["autoscaling:CompleteLifecycleAction"],
            ),
            ("object", "arn:aws:s3:::theirs-{}/x".format(account), ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"]),
            (
                "image",
                f"arn:aws:ecr:{REGION}:{account}:repository/theirs",
                ["ecr:PutImage", "ecr:BatchGetImage", "ecr:BatchDeleteImage"],
            ),
            (
                "secret",
                f"arn:aws:secretsmanager:{REGION}:{account}:secret:theirs-AbCdEf",
                ["secretsmanager:GetSecretValue"],
            ),
            ("table", f"arn:aws:dynamodb:{REGION}:{account}:table/theirs", ["dynamodb:GetItem", "dynamodb:PutItem"]),
            ("machine", f"arn:aws:states:{REGION}:{account}:stateMachine:theirs", ["states:StartExecution"]),
            ("bucket", "arn:aws:s3:::theirs-{}".format(account), ["s3:ListBucket"]),
            ("function", f"arn:aws:lambda:{REGION}:{account}:function:theirs", ["lambda:InvokeFunction"]),
            ("execution", f"arn:aws:states:{REGION}:{account}:execution:theirs:x", ["states:DescribeExecution"]),
            ("log", f"arn:aws:logs:{REGION}:{account}:log-group:theirs:log-stream:x", ["logs:PutLogEvents"]),
        ]
        for kind, arn, actions in things:
            self._resource(f"{of}/their-{kind}", where, arn, account, t, i, [(action, {}) for action in actions])
        own = {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": "Allow",
                    "Principal": {"AWS": f"arn:aws:iam::{account}:root"},
                    "Action": "*",
                    "Resource": "*",
                }
            ],
        }
        self._resource(
            f"{of}/their-key",
            where,
            f"arn:aws:kms:{REGION}:{account}:key/theirs",
            account,
            t,
            i,
            [("kms:Decrypt", {}), ("kms:Sign", {}), ("kms:GetPublicKey", {})],
            own,
        )
        self._resource(
            f"{of}/their-buckets-state",
            where,
            "arn:aws:s3:::theirs-{}".format(account),
            account,
            t,
            i,
            [("s3:ListBucket", {"s3:prefix": "terraform/x"}), ("s3:ListBucket", {"s3:prefix": "audit/x"})],
        )
        trust = {
            "Version": "2012-10-17",
            "Statement": [
                {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{account}:root"}, "Action": "sts:AssumeRole"}
            ],
        }
        arn = f"arn:aws:iam::{account}:role/theirs"
        self._resource(f"{of}/their-role", role, arn, account, t, i, [("sts:AssumeRole", {})], trust)
        self._resource(
            f"{of}/their-role-to-change",
            role,
            arn,
            account,
            t,
            i,
            [("iam:PassRole", {}), ("iam:PutRolePolicy", {}), ("iam:SimulatePrincipalPolicy", {})],
        )

    def _principal(self, name, kind, account, role, t, i, identity, boundary=(), context=None):
        self.principals[name] = {
            "kind": kind,
            "account": account,
            "role": role,
            "t": t,
            "i": i,
            "identity": identity,
            "boundary": list(boundary),
            "context": context or {},
        }

    def _resource(self, name, kind, arn, account, t, i, actions, policy=None):
        self.resources[name] = {
            "kind": kind,
            "arn": arn,
            "account": account,
            "t": t,
            "i": i,
            "actions": actions,
            "policy": policy,
        }


def _orders_policy(arn, install, account):
    """As `register-install` writes it (`crates/aws/src/queue.rs`); a change there has to be made here too."""
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Sid": "RunnerTakesOrders",
                "Effect": "Allow",
                "Principal": {"AWS": f"arn:aws:iam::{account}:root"},
                "Action": ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility"],
                "Resource": arn,
                "Condition": {"ArnEquals": {"aws:PrincipalArn": f"arn:aws:iam::{account}:role/fh-{install}-runner"}},
            }
        ],
    }


def _reports_policy(arn, accounts):
    return {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Sid": "RunnersSendReports",
                "Effect": "Allow",
                "Principal": "*",
                "Action": "sqs:SendMessage",
                "Resource": arn,
                "Condition": {
                    "StringEquals": {"aws:PrincipalAccount": accounts},
                    "ArnLike": {"aws:PrincipalArn": "arn:aws:iam::*:role/fh-*-runner"},
                },
            }
        ],
    }


# ---- what may be done; everything that is not listed is denied -------------------------------------------------------

READ, WRITE, SEND, RECEIVE = "dynamodb:GetItem", "dynamodb:PutItem", "sqs:SendMessage", "sqs:ReceiveMessage"
OBJECT, PULL, PUSH = "s3:GetObject", "ecr:BatchGetImage", "ecr:PutImage"
ROWS = {"rows": {READ, WRITE}, "app-rows": {WRITE}}
SIMULATE, SET = "iam:SimulatePrincipalPolicy", "sqs:SetQueueAttributes"
MODE = {
    "stack-role": {SIMULATE},
    "state-list": {"s3:ListBucket"},
    "state": {OBJECT, "s3:PutObject"},
    "plans": {"s3:PutObject"},
    "repository": {PULL},
    "key": {"kms:Decrypt"},
}
ELSEWHERE = {
    SET,
    "cloudformation:DescribeStacks",
    "ec2:TerminateInstances",
    "autoscaling:CompleteLifecycleAction",
    "sqs:SendMessage",
    "sqs:ReceiveMessage",
    OBJECT,
    "s3:PutObject",
    "s3:DeleteObject",
    PUSH,
    PULL,
    "ecr:BatchDeleteImage",
    "secretsmanager:GetSecretValue",
    READ,
    WRITE,
    "states:StartExecution",
    "s3:ListBucket",
    "lambda:InvokeFunction",
    "states:DescribeExecution",
    "logs:PutLogEvents",
    "kms:Decrypt",
    "kms:Sign",
    "kms:GetPublicKey",
}
# By kind of principal: kind of resource of the same tenant (and install, where both have one), and actions.
ALLOWED = {
    # It presigns uploads of sources, and looks whether one is there.
    "api": {**ROWS, "versions": {OBJECT}, "sources": {OBJECT}},
    "register-install": {**ROWS, "orders": {SET, "sqs:DeleteQueue"}, "reports": {SET}},
    "plan-workflow": {**ROWS, "dispatch-queue": {SEND}, "versions": {OBJECT}},
    "dispatch-job": {
        **ROWS,
        "dispatch-queue": {RECEIVE},
        "orders": {SEND},
        "build-queue": {SEND},
        "root-key": {"kms:Sign"},
        "versions": {OBJECT},
    },
    "accept-report": {
        **ROWS,
        "tokens": {READ},
        "tokens-given-back": {WRITE},
        "reports": {RECEIVE},
        "dispatch-queue": {SEND},
        "grants-queue": {SEND},
    },
    "grant-artifact": {
        "rows": {READ},
        "grant-rows": {WRITE},
        "grants-queue": {RECEIVE},
        "orders": {SEND},
        "build-queue": {SEND},
        "registry": {PULL},
        "root-key": {"kms:Sign"},
    },
    "finish-workflow": {**ROWS, "dispatch-queue": {SEND}},
    "sweep": {**ROWS, "tokens": {READ}, "tokens-given-back": {WRITE}, "dispatch-queue": {SEND}, "grants-queue": {SEND}},
    "prune-artifacts": {
        "rows": {READ},
        "app-rows": {WRITE},
        "registry": {"ecr:BatchDeleteImage"},
        "versions": {OBJECT},
    },
    "build-runner": {
        "build-queue": {RECEIVE},
        "reports": {SEND},
        "registry": {PUSH, PULL},
        "sources": {OBJECT},
        "source-role": {"sts:AssumeRole"},
    },
    "service-lambda": {"function-role": {"sts:AssumeRole"}},
    "service-ec2": {"build-role": {"sts:AssumeRole"}, "runner-role": {"sts:AssumeRole"}},
    "service-states": {"machine-role": {"sts:AssumeRole"}},
    "service-states-for-others": {},
    "builder-host": {
        "build-role": {"sts:AssumeRole"},
        "vendor-role": {"sts:AssumeRole"},
        "source-role": {"sts:AssumeRole", "sts:TagSession"},
        "other-source": {"sts:AssumeRole"},
    },
    "builder-host-of-others": {},
    "mighty-dispatch-job": {
        "root-key": {"kms:Sign", "kms:ScheduleKeyDeletion"},
        "vendor-elsewhere": {"kms:Decrypt", "kms:Sign", "kms:GetPublicKey"},
    },
    "vendor-stranger": {},
    # Four resources deny even those who may do everything: that is what their own policies are for.
    "vendor-admin": {
        **ROWS,
        "rows": {READ, WRITE, "dynamodb:DeleteTable"},
        "tokens": {READ},
        "grant-rows": {WRITE},
        **dict.fromkeys(
            ("reports", "dispatch-queue", "grants-queue", "orders"),
            {SEND, RECEIVE, "sqs:PurgeQueue", SET, "sqs:DeleteQueue"},
        ),
        "build-queue": {"sqs:PurgeQueue", SET, "sqs:DeleteQueue"},
        "tokens-given-back": {WRITE},
        **dict.fromkeys(("open-orders", "open-reports"), {SEND, RECEIVE, "sqs:PurgeQueue"}),
        "source-role": {"sts:AssumeRole", "sts:TagSession"},
        "other-source": {"sts:AssumeRole"},
        "registry": {PULL, "ecr:BatchDeleteImage", "ecr:DeleteRepository"},
        "root-key": {"kms:ScheduleKeyDeletion"},
        "versions": {OBJECT, "s3:DeleteObject"},
        "sources": {OBJECT, "s3:DeleteObject"},
        "machine": {"states:StartExecution", "states:DeleteStateMachine"},
        "execution": {"states:DescribeExecution", "states:StopExecution"},
        **{f"log-of-{name}": {"logs:PutLogEvents", "logs:DeleteLogStream"} for name in templates.FUNCTIONS},
        **{f"function-{name}": {"lambda:InvokeFunction", "lambda:UpdateFunctionCode"} for name in templates.FUNCTIONS},
        "build-enrolment": {"secretsmanager:GetSecretValue", "secretsmanager:PutSecretValue"},
        "vendor-bucket": {"s3:ListBucket", "s3:DeleteBucket"},
        "vendor-elsewhere": ELSEWHERE,
        "vendor-role": {"sts:AssumeRole", "iam:PassRole", "iam:PutRolePolicy", SIMULATE},
    },
    "runner": {
        "open-orders": {RECEIVE},
        "open-reports": {SEND},
        "open-mode-role": {"sts:AssumeRole"},
        "stack": {"cloudformation:DescribeStacks"},
        "runner-group": {"autoscaling:CompleteLifecycleAction"},
        "audit-list": {"s3:ListBucket"},
        "orders": {RECEIVE},
        "reports": {SEND},
        "mode-role": {"sts:AssumeRole"},
        "audit": {"s3:PutObject"},
        "plans": {"s3:PutObject"},
        "repository": {PUSH, PULL},
        "key": {"kms:Decrypt"},
        "secret": {"secretsmanager:GetSecretValue"},
    },
    "bare-mode": MODE,
    "base-alone": MODE,
    "off-mode": {},
    "old-session": {},
    "mighty-runner": {
        "open-mode-role": {"sts:AssumeRole", "sts:TagSession"},
        "mode-role": {"sts:AssumeRole"},
        "their-role": {"sts:AssumeRole"},
    },
    "host": {
        "open-mode-role": {"sts:AssumeRole", "sts:TagSession"},
        "runner-role-elsewhere": {"sts:AssumeRole"},
        "their-role": {"sts:AssumeRole"},
    },
    "host-of-nothing": {"open-mode-role": {"sts:AssumeRole", "sts:TagSession"}, "their-role": {"sts:AssumeRole"}},
    # A vendor's policies may say everything: what is left is what the boundary leaves.
    **dict.fromkeys(
        ("provision", "maintenance", "deprovision"),
        {
            **MODE,
            "plans": {"s3:PutObject", "s3:DeleteObject"},
            "state-list": {"s3:ListBucket", "s3:ListBucketVersions"},
            "audit-list": {"s3:ListBucket", "s3:ListBucketVersions"},
            "other-list": {"s3:ListBucket"},
            "elsewhere": ELSEWHERE,
            "their-role": {SIMULATE},
            **dict.fromkeys(("open-orders", "open-reports"), {SEND, RECEIVE, "sqs:PurgeQueue"}),
            "open-mode-role": {"sts:TagSession"},
            "own-role": {"iam:CreateRole", "iam:PassRole"},
            "stack": {"cloudformation:DescribeStacks"},
        },
    ),
    # The account is the customer's: what is in it is theirs. The runner's role and its modes are not taken by them.
    **dict.fromkeys(
        ("admin", "other", "former-runner"),
        {
            "audit-list": {"s3:ListBucket", "s3:ListBucketVersions"},
            "other-list": {"s3:ListBucket"},
            "state-list": {"s3:ListBucket", "s3:ListBucketVersions"},
            **dict.fromkeys(("open-orders", "open-reports"), {SEND, RECEIVE, "sqs:PurgeQueue"}),
            "open-mode-role": {"sts:AssumeRole", "sts:TagSession"},
            "audit": {"s3:PutObject", "s3:DeleteObject"},
            "state": {OBJECT, "s3:PutObject", "s3:PutObjectTagging"},
            "bucket": {"s3:PutBucketPolicy"},
            "plans": {"s3:PutObject", "s3:DeleteObject"},
            "repository": {PUSH, PULL, "ecr:DeleteRepository"},
            "key": {"kms:Decrypt", "kms:PutKeyPolicy"},
            "secret": {"secretsmanager:GetSecretValue", "secretsmanager:PutSecretValue"},
            "elsewhere": ELSEWHERE,
            "their-role": {"sts:AssumeRole", "iam:PassRole", "iam:PutRolePolicy", SIMULATE},
            "stack-role": {"iam:PassRole", "iam:PutRolePolicy", SIMULATE},
            "own-role": {"iam:CreateRole", "iam:PassRole"},
            "unbound-role": {"iam:CreateRole", "iam:DeleteRolePermissionsBoundary"},
            "runner-machine": {"ec2:TerminateInstances", "ec2:ModifyInstanceAttribute"},
            "runner-group": {"autoscaling:UpdateAutoScalingGroup", "autoscaling:CompleteLifecycleAction"},
            "stack": {"cloudformation:UpdateStack", "cloudformation:DescribeStacks"},
        },
    ),
    "anonymous": {},
}
for _name in templates.FUNCTIONS:
    ALLOWED[_name] = {**ALLOWED[_name], f"log-of-{_name}": {"logs:PutLogEvents"}}
for _name in ("api", "sweep"):
    ALLOWED[_name]["machine"] = {"states:StartExecution"}
for _name in ("dispatch-job", "grant-artifact"):
    ALLOWED[_name]["open-orders"] = {SEND}
ALLOWED["build-runner"]["open-reports"], ALLOWED["accept-report"]["open-reports"] = {SEND}, {RECEIVE}
ALLOWED["sweep"]["execution"] = {"states:DescribeExecution"}
ALLOWED["api"]["vendor-bucket"] = {"s3:ListBucket"}
ALLOWED["build-runner"]["build-enrolment"] = {"secretsmanager:GetSecretValue"}
for _name in templates.DEFINITIONS:
    ALLOWED[f"{_name}-machine"] = dict.fromkeys(
        ("function-plan-workflow", "function-finish-workflow"), {"lambda:InvokeFunction"}
    )
ALLOWED["provision-install-machine"]["function-register-install"] = {"lambda:InvokeFunction"}


def expected(principal, resource, action):
    same = (
        principal.get("anywhere")
        or principal.get("t") == resource["t"]
        and (principal.get("i") is None or resource["i"] is None or principal["i"] == resource["i"])
    )
    return same and action in ALLOWED[principal["kind"]].get(resource["kind"], set())


def questions(world):
    """Every principal about every action on what is its own and its neighbours': the next tenant's, the next install's of both;
    with what the answer has to be."""
    tenants = 1 + max(resource["t"] for resource in world.resources.values())
    installs = 1 + max(resource["i"] or 0 for resource in world.resources.values())
    for who, principal in world.principals.items():
        t, i = principal.get("t") or 0, principal.get("i") or 0
        for what, resource in world.resources.items():
            near = resource["t"] in (t, (t + 1) % tenants) and resource["i"] in (None, i, (i + 1) % installs)
            for action, context in resource["actions"] if near else []:
                yield who, what, action, context, expected(principal, resource, action)
