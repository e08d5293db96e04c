"""Reads the templates, state machines and policies that the checks look at."""

import json
import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
INFRA = ROOT / "infra"
MACHINES = ROOT / "statemachines"
REGION = "eu-west-1"
TENANT, TENANT_ACCOUNT = "acme", "111111111111"
INSTALL, ACCOUNT = "globex-prod", "222222222222"

FUNCTIONS = {
    "api": "Api",
    "register-install": "RegisterInstall",
    "plan-workflow": "PlanWorkflow",
    "dispatch-job": "DispatchJob",
    "accept-report": "AcceptReport",
    "grant-artifact": "GrantArtifact",
    "finish-workflow": "FinishWorkflow",
    "sweep": "Sweep",
    "prune-artifacts": "PruneArtifacts",
}
# The machines of the tenant stack, and the files that define them by the parameter that names each.
DEFINITIONS = {
    "provision-install": "ProvisionInstall",
    "deploy-components": "DeployComponents",
    "build-components": "BuildComponents",
    "run-action": "RunAction",
}
DEFINITION_FILES = {"ProvisionInstallDefinition": "provision-install", "RunWorkflowDefinition": "run-workflow"}
QUEUES = f"arn:aws:sqs:{REGION}:{TENANT_ACCOUNT}"
QUEUE_URLS = f"http://localhost:4566/{TENANT_ACCOUNT}"
# What the renderer fills in; the lists hold what an app config may bring.
SAMPLE = {
    "TENANT": TENANT,
    "INSTALL": INSTALL,
    "APP": "shop",
    "ACCOUNT": ACCOUNT,
    "TENANT_ACCOUNT": TENANT_ACCOUNT,
    "REGION": REGION,
    "CONTRACT": "sha256:" + 64 * "0",
    "VERSION": "0.1.0",
    "TENANT_KEY": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    "ORDERS_QUEUE_ARN": f"{QUEUES}:fh-{TENANT}-{INSTALL}.fifo",
    "ORDERS_QUEUE_URL": f"{QUEUE_URLS}/fh-{TENANT}-{INSTALL}.fifo",
    "REPORTS_QUEUE_ARN": f"{QUEUES}:fh-{TENANT}-reports",
    "REPORTS_QUEUE_URL": f"{QUEUE_URLS}/fh-{TENANT}-reports",
    "PROVISION_MANAGED": '\n        - "arn:aws:iam::aws:policy/AmazonS3FullAccess"',
    "MAINTENANCE_MANAGED": "",
    "DEPROVISION_MANAGED": "",
    "PROVISION_POLICIES": json.dumps(
        [
            {
                "PolicyName": "tables",
                "PolicyDocument": {
                    "Version": "2012-10-17",
                    "Statement": [
                        {
                            "Effect": "Allow",
                            "Action": ["dynamodb:CreateTable", "iam:CreateRole", "iam:GetRole"],
                            "Resource": "*",
                        }
                    ],
                },
            }
        ]
    ),
    "MAINTENANCE_POLICIES": "[]",
    "DEPROVISION_POLICIES": "[]",
    "PRIVATE_VALUES": '"true", "false"',
    "RUNNER_URL": "https://releases.example/freehold-runner",
    "RUNNER_DIGEST": "0" * 64,
    # An app that asks the customer nothing and names no roles; `rendered` is one that does both.
    **dict.fromkeys(
        (
            "NAMED_SWITCHES",
            "NAMED_LABELS",
            "NAMED_PARAMETERS",
            "NAMED_CONDITIONS",
            "NAMED_TAKEN",
            "NAMED_ROLES",
            "NAMED_ALL",
            "NAMED_LIMITS",
            "NAMED_BASE",
            "NAMED_OUTPUTS",
            "NAMED_RULES",
            "INPUT_GROUPS",
            "INPUT_LABELS",
            "INPUT_PARAMETERS",
            "INPUT_CONDITIONS",
            "INPUT_SECRETS_READ",
            "INPUT_SECRETS",
            "INPUT_OUTPUTS",
        ),
        "",
    ),
}


class _Loader(yaml.SafeLoader):
    """YAML with CloudFormation's short forms; a key given twice is an error."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = {key for key in keys if keys.count(key) > 1}
        if twice:
            raise ValueError(f"given twice near line {node.start_mark.line + 1}: {sorted(map(str, twice))}")
        return super().construct_mapping(node, deep=True)


def _short_form(loader, suffix, node):
    value = {
        yaml.ScalarNode: loader.construct_scalar,
        yaml.SequenceNode: lambda n: loader.construct_sequence(n, deep=True),
        yaml.MappingNode: lambda n: loader.construct_mapping(n, deep=True),
    }[type(node)](node)
    if suffix == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {suffix if suffix in ("Ref", "Condition") else f"Fn::{suffix}": value}


_Loader.add_multi_constructor("!", _short_form)
_Loader.add_constructor("tag:yaml.org,2002:map", lambda loader, node: loader.construct_mapping(node))


def parse(text):
    return yaml.load(text, _Loader)


def fill(text, values):
    """Replaces every `%{NAME}`, as the renderer does; an unknown name is an error."""
    return re.sub(r"%\{([A-Z_]+)\}", lambda match: values[match[1]], text)


def tenant():
    return parse((INFRA / "tenant.yaml").read_text())


def install_text(**changes):
    return fill((INFRA / "install.yaml").read_text(), {**SAMPLE, **changes})


def install():
    return parse(install_text())


def rendered():
    """Returns an install stack as the renderer makes it of inputs of every kind and of named roles, with hostile texts."""
    return (ROOT / "crates" / "app" / "golden" / "install-with-inputs.yaml").read_text()


def deploy_policy(tenant=TENANT, account=TENANT_ACCOUNT):
    return _policy("deploy-policy.json", tenant, account)


def tenant_boundary(tenant=TENANT, account=TENANT_ACCOUNT):
    return _policy("tenant-boundary.json", tenant, account)


def _policy(name, tenant, account):
    values = {"TENANT": tenant, "ACCOUNT": account, "REGION": REGION}
    return json.loads(fill((INFRA / name).read_text(), values))


def machines():
    """Returns the definition of each machine of the tenant stack."""
    template = tenant()
    files = {
        name: properties(template, f"{logical}Machine")["DefinitionS3Location"]["Key"]["Ref"]
        for name, logical in DEFINITIONS.items()
    }
    return {
        name: json.loads((MACHINES / f"{DEFINITION_FILES[parameter]}.asl.json").read_text())
        for name, parameter in files.items()
    }


def of_type(template, type_):
    return {name: resource for name, resource in template["Resources"].items() if resource["Type"] == type_}


def properties(template, name):
    return template["Resources"][name]["Properties"]


def as_list(value):
    return value if isinstance(value, list) else [value]


def statements(holder):
    """Returns the statements of a role's inline policies, or of a managed policy, with those that a condition adds."""
    return [
        next(side for side in statement["Fn::If"][1:] if "Ref" not in side) if "Fn::If" in statement else statement
        for policy in holder["Properties"].get("Policies", [holder["Properties"]])
        for statement in policy["PolicyDocument"]["Statement"]
    ]


def says(resource):
    """Returns a resource of a statement as text: `Table.Arn` for an attribute, the ARN's last part for a name."""
    if isinstance(resource, str):
        return resource
    if "Fn::GetAtt" in resource:
        return ".".join(resource["Fn::GetAtt"])
    if "Ref" in resource:
        return resource["Ref"]
    text = (
        re.sub(r"\$\{AWS::\w+\}", "", resource["Fn::Sub"]).replace("${TenantName}", "T").replace("${DeployBucket}", "B")
    )
    return re.sub(r"^arn::([a-z0-9]+):::?", r"\1:", text)
