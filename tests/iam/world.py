"""Tenants, installs and attackers as the templates make them, and who may do what: written down apart from any policy."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "infra"))
import templates  # noqa: E402

REGION = templates.REGION
# Functions and the build runner, by the logical name of their role.
ROLES = {**templates.FUNCTIONS, "build-runner": "BuildRunner"}
EVERYTHING = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}


class Env:
    """What `Ref` and `Fn::GetAtt` of a template stand for."""

    def __init__(self, template, account, parameters):
        self.template, self.account = template, account
        self.values = {"AWS::Partition": "aws", "AWS::Region": REGION, "AWS::AccountId": account, **parameters}
        for name, parameter in template.get("Parameters", {}).items():
            self.values.setdefault(name, parameter.get("Default", ""))
        self.values["AWS::StackId"] = f"arn:aws:cloudformation:{REGION}:{account}:stack/{self.values['AWS::StackName']}/id"

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
        return {key: self.resolve(value) for key, value in node.items()}

    def sub(self, value):
        text, extra = (value, {}) if isinstance(value, str) else value
        for name in set(_names(text)):
            found = self.resolve(extra[name]) if name in extra else (
                self.attribute(*name.split(".", 1)) if "." in name else self.reference(name))
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
        for key in ("RoleName", "RepositoryName", "BucketName", "TableName", "QueueName", "LogGroupName"):
            if key in own:
                return self.resolve(own[key])
        return f"{name}-{self.values['AWS::StackName']}"

    def attribute(self, name, attribute):
        resource = self.template["Resources"][name]
        kind, own, account = resource["Type"], self.reference(name), self.account
        arns = {
            "AWS::IAM::Role": f"arn:aws:iam::{account}:role/{own}", "AWS::ECR::Repository": f"arn:aws:ecr:{REGION}:{account}:repository/{own}",
            "AWS::S3::Bucket": f"arn:aws:s3:::{own}", "AWS::DynamoDB::Table": f"arn:aws:dynamodb:{REGION}:{account}:table/{own}",
            "AWS::SQS::Queue": f"arn:aws:sqs:{REGION}:{account}:{own}", "AWS::KMS::Key": f"arn:aws:kms:{REGION}:{account}:key/{own}",
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
        env = Env(self.tenant_template, account, {
            "AWS::StackName": f"freehold-{name}", "TenantName": name, "DeployBucket": f"fh-{name}-{account}-{REGION}",
            "TableKeyArn": "", "SourceRoles": ""})
        resources = self.tenant_template["Resources"]
        for kind, logical in ROLES.items():
            properties = env.resolve(resources[f"{logical}Role"]["Properties"])
            self._principal(f"{name}/{kind}", kind, account, properties["RoleName"], t, None,
                            [policy["PolicyDocument"] for policy in properties["Policies"]])
        self._principal(f"{name}/stranger", "vendor-stranger", account, "stranger", t, None, [])
        queue = env.attribute
        ours = [(f"globex{t}x{i}", customer) for i, customer in installs]
        table, bucket = queue("Table", "Arn"), f"arn:aws:s3:::fh-{name}-{account}-{REGION}"
        build = env.resolve(resources["BuildQueuePolicy"]["Properties"]["PolicyDocument"])
        registry = env.resolve(resources["Repository"]["Properties"]["RepositoryPolicyText"])
        for statement in registry["Statement"]:
            statement["Resource"] = "*"
        self._resource(f"{name}/rows", "rows", table, account, t, None, [
            ("dynamodb:GetItem", {"dynamodb:LeadingKeys": ["job#1"]}), ("dynamodb:PutItem", {"dynamodb:LeadingKeys": ["job#1"]})])
        self._resource(f"{name}/tokens", "tokens", table, account, t, None, [("dynamodb:GetItem", {"dynamodb:LeadingKeys": ["token#1"]})])
        self._resource(f"{name}/grants", "grant-rows", table, account, t, None, [("dynamodb:PutItem", {"dynamodb:LeadingKeys": ["grant#1"]})])
        both = [("sqs:SendMessage", {}), ("sqs:ReceiveMessage", {})]
        self._resource(f"{name}/reports", "reports", queue("ReportsQueue", "Arn"), account, t, None, both,
                       _reports_policy(queue("ReportsQueue", "Arn"), sorted(customer for _, customer in ours)))
        self._resource(f"{name}/build-queue", "build-queue", queue("BuildQueue", "Arn"), account, t, None, both, build)
        self._resource(f"{name}/dispatch-queue", "dispatch-queue", queue("DispatchQueue", "Arn"), account, t, None, both)
        self._resource(f"{name}/grants-queue", "grants-queue", queue("GrantsQueue", "Arn"), account, t, None, both)
        self._resource(f"{name}/registry", "registry", queue("Repository", "Arn"), account, t, None,
                       [("ecr:PutImage", {}), ("ecr:BatchGetImage", {}), ("ecr:BatchDeleteImage", {})], registry)
        self._resource(f"{name}/root-key", "root-key", queue("SigningKey", "Arn"), account, t, None, [("kms:Sign", {})],
                       env.resolve(resources["SigningKey"]["Properties"]["KeyPolicy"]))
        self._resource(f"{name}/versions", "versions", f"{bucket}/versions/x.json", account, t, None, [("s3:GetObject", {})])
        self._resource(f"{name}/sources", "sources", f"{bucket}/sources/x.tar.gz", account, t, None, [("s3:GetObject", {})])
        for i, (install, customer) in enumerate(ours):
            arn = f"arn:aws:sqs:{REGION}:{account}:fh-{name}-{install}.fifo"
            self._resource(f"{install}/orders", "orders", arn, account, t, i, both, _orders_policy(arn, install, customer))
            self._install(t, i, name, account, install, customer, arn, queue("ReportsQueue", "Arn"))

    def _install(self, t, i, tenant, tenant_account, install, customer, orders, reports):
        words = {"TENANT": tenant, "TENANT_ACCOUNT": tenant_account, "INSTALL": install, "ACCOUNT": customer,
                 "ORDERS_QUEUE_ARN": orders, "REPORTS_QUEUE_ARN": reports, "PROVISION_MANAGED": "[]",
                 # As mighty as a vendor could write them: what holds them is the boundary.
                 **{f"{mode}_POLICIES": json.dumps([{"PolicyName": "all", "PolicyDocument": EVERYTHING}])
                    for mode in ("PROVISION", "MAINTENANCE", "DEPROVISION")}}
        template = self.change("install", templates.parse(templates.install_text(**words)))
        env = Env(template, customer, {"AWS::StackName": f"freehold-{install}", "EnableDeprovision": "true"})
        resources = template["Resources"]
        boundary = env.resolve(resources["Boundary"]["Properties"]["PolicyDocument"])
        base = env.resolve(resources["Base"]["Properties"]["PolicyDocument"])
        for kind, logical in (("runner", "RunnerRole"), ("provision", "ProvisionRole"), ("maintenance", "MaintenanceRole"),
                              ("deprovision", "DeprovisionRole")):
            properties = env.resolve(resources[logical]["Properties"])
            identity = [policy["PolicyDocument"] for policy in properties["Policies"]]
            limits = [boundary] if "PermissionsBoundary" in properties else []
            self._principal(f"{install}/{kind}", kind, customer, properties["RoleName"], t, i,
                            identity + ([] if kind == "runner" else [base]), limits)
            self._resource(f"{install}/{kind}-role", "runner-role" if kind == "runner" else "mode-role",
                           env.attribute(logical, "Arn"), customer, t, i, [("sts:AssumeRole", {})], properties["AssumeRolePolicyDocument"])
        # An administrator, another role and a former runner of the customer's: their own account lets them do everything.
        for kind in ("admin", "other", "former-runner"):
            self._principal(f"{install}/{kind}", kind, customer, {"former-runner": f"fh-{install}-runner-old"}.get(kind, kind), t, i, [EVERYTHING])
        bucket = env.attribute("Bucket", "Arn")
        self._resource(f"{install}/audit", "audit", f"{bucket}/audit/1", customer, t, i, [("s3:PutObject", {}), ("s3:DeleteObject", {})])
        self._resource(f"{install}/state", "state", f"{bucket}/terraform/x.tfstate", customer, t, i, [("s3:GetObject", {}), ("s3:PutObject", {})])
        self._resource(f"{install}/repository", "repository", env.attribute("Repository", "Arn"), customer, t, i,
                       [("ecr:PutImage", {}), ("ecr:BatchGetImage", {})])
        self._resource(f"{install}/key", "key", env.attribute("Key", "Arn"), customer, t, i, [("kms:Decrypt", {}), ("kms:PutKeyPolicy", {})],
                       env.resolve(resources["Key"]["Properties"]["KeyPolicy"]))
        self._resource(f"{install}/secret", "secret", env.attribute("Enrolment", "Id"), customer, t, i, [("secretsmanager:GetSecretValue", {})])

    def _principal(self, name, kind, account, role, t, i, identity, boundary=()):
        self.principals[name] = {"kind": kind, "account": account, "role": role, "t": t, "i": i, "identity": identity,
                                 "boundary": list(boundary)}

    def _resource(self, name, kind, arn, account, t, i, actions, policy=None):
        self.resources[name] = {"kind": kind, "arn": arn, "account": account, "t": t, "i": i, "actions": actions, "policy": policy}


def _orders_policy(arn, install, account):
    """As `register-install` writes it (`crates/aws/src/queue.rs`; its test holds the same text)."""
    return {"Version": "2012-10-17", "Statement": [{
        "Sid": "RunnerTakesOrders", "Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{account}:root"},
        "Action": ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility"], "Resource": arn,
        "Condition": {"ArnEquals": {"aws:PrincipalArn": f"arn:aws:iam::{account}:role/fh-{install}-runner"}}}]}


def _reports_policy(arn, accounts):
    return {"Version": "2012-10-17", "Statement": [{
        "Sid": "RunnersSendReports", "Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage", "Resource": arn,
        "Condition": {"StringEquals": {"aws:PrincipalAccount": accounts},
                      "ArnLike": {"aws:PrincipalArn": "arn:aws:iam::*:role/fh-*-runner"}}}]}


# ---- what may be done; everything that is not listed is denied -------------------------------------------------------

READ, WRITE, SEND, RECEIVE = "dynamodb:GetItem", "dynamodb:PutItem", "sqs:SendMessage", "sqs:ReceiveMessage"
# By kind of principal: kind of resource of the same tenant (and install, where both have one), and actions.
ALLOWED = {
    # It presigns uploads of sources, and looks whether one is there.
    "api": {"rows": {READ, WRITE}, "versions": {"s3:GetObject"}, "sources": {"s3:GetObject"}},
    "register-install": {"rows": {READ, WRITE}},
    "plan-workflow": {"rows": {READ, WRITE}, "dispatch-queue": {SEND}, "versions": {"s3:GetObject"}},
    "dispatch-job": {"rows": {READ, WRITE}, "dispatch-queue": {RECEIVE}, "orders": {SEND}, "build-queue": {SEND},
                     "root-key": {"kms:Sign"}, "versions": {"s3:GetObject"}},
    "accept-report": {"rows": {READ, WRITE}, "tokens": {READ}, "reports": {RECEIVE}, "dispatch-queue": {SEND}, "grants-queue": {SEND}},
    "grant-artifact": {"rows": {READ}, "grant-rows": {WRITE}, "grants-queue": {RECEIVE}, "orders": {SEND}, "build-queue": {SEND},
                       "registry": {"ecr:BatchGetImage"}, "root-key": {"kms:Sign"}},
    "finish-workflow": {"rows": {READ, WRITE}, "dispatch-queue": {SEND}},
    "sweep": {"rows": {READ, WRITE}, "tokens": {READ}, "dispatch-queue": {SEND}, "grants-queue": {SEND}},
    "tend-registry": {"rows": {READ}, "registry": {"ecr:BatchDeleteImage"}, "versions": {"s3:GetObject"}},
    "build-runner": {"build-queue": {RECEIVE}, "reports": {SEND}, "registry": {"ecr:PutImage", "ecr:BatchGetImage"}, "sources": {"s3:GetObject"}},
    "vendor-stranger": {},
    "runner": {"orders": {RECEIVE}, "reports": {SEND}, "mode-role": {"sts:AssumeRole"}, "audit": {"s3:PutObject"},
               "repository": {"ecr:PutImage", "ecr:BatchGetImage"}, "key": {"kms:Decrypt"}, "secret": {"secretsmanager:GetSecretValue"}},
    **dict.fromkeys(("provision", "maintenance", "deprovision"), {
        "state": {"s3:GetObject", "s3:PutObject"}, "repository": {"ecr:BatchGetImage"}, "key": {"kms:Decrypt"}}),
    # The account is the customer's: what is in it is theirs. The runner's role and its modes are not taken by them.
    **dict.fromkeys(("admin", "other", "former-runner"), {
        "audit": {"s3:PutObject", "s3:DeleteObject"}, "state": {"s3:GetObject", "s3:PutObject"},
        "repository": {"ecr:PutImage", "ecr:BatchGetImage"}, "key": {"kms:Decrypt", "kms:PutKeyPolicy"},
        "secret": {"secretsmanager:GetSecretValue"}}),
    "anonymous": {},
}


def expected(principal, resource, action):
    same = principal.get("t") == resource["t"] and (principal.get("i") is None or resource["i"] is None or principal["i"] == resource["i"])
    return same and action in ALLOWED[principal["kind"]].get(resource["kind"], set())


def questions(world):
    """Every principal about every action on every resource, with what the answer has to be."""
    for who, principal in world.principals.items():
        for what, resource in world.resources.items():
            for action, context in resource["actions"]:
                yield who, what, action, context, expected(principal, resource, action)
