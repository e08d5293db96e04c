"""Reads the templates, state machines and policies for the checks."""

import json
import re
from functools import cache
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[3]
INFRA = ROOT / "infra"
MACHINES = ROOT / "statemachines"
GOLDEN = ROOT / "crates" / "app" / "golden"
QUEUE_POLICIES = ROOT / "crates" / "aws" / "golden" / "queue-policies.json"
REGION = "eu-west-1"
# The names and accounts in the golden install stack (crates/app/tests/use_cases/stack/plain_stack.rs).
APP = "shop"
TENANT, TENANT_ACCOUNT = "acme", "111111111111"
INSTALL, ACCOUNT = "globex-prod", "222222222222"

# Each function's program, with its logical name in the tenant stack.
FUNCTIONS = {
    program.stem: program.stem.title().replace("-", "") for program in sorted((ROOT / "functions/src/bin").glob("*.rs"))
}
# The machines of the tenant stack, and the files that define them by the parameter that names each.
DEFINITIONS = {
    "provision-install": "ProvisionInstall",
    "deploy-components": "DeployComponents",
    "build-components": "BuildComponents",
    "run-action": "RunAction",
    "teardown-install": "TeardownInstall",
    "upgrade-runner": "UpgradeRunner",
    "detect-drift": "DetectDrift",
    "check-health": "CheckHealth",
}
DEFINITION_FILES = {"ProvisionInstallDefinition": "provision-install", "RunWorkflowDefinition": "run-workflow"}
QUEUES = f"arn:aws:sqs:{REGION}:{TENANT_ACCOUNT}"
ORDERS_QUEUE, REPORTS_QUEUE = f"{QUEUES}:fh-{TENANT}--{INSTALL}.fifo", f"{QUEUES}:fh-{TENANT}--reports"


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


@cache
def _as_json(path):
    return json.dumps(parse(path.read_text()))


def tenant():
    return json.loads(_as_json(INFRA / "tenant.yaml"))


def install_text(tenant=TENANT, tenant_account=TENANT_ACCOUNT, install=INSTALL, account=ACCOUNT):
    """Returns the rendered stack of an app without inputs of the customer or named roles.

    The file has one install's names; for another, these names are replaced, which is the only difference between two
    installs (a test in `plain_stack.rs` compares the two).
    """
    return _rename((GOLDEN / "install.yaml").read_text(), tenant, tenant_account, install, account)


def install_with_roles(tenant=TENANT, tenant_account=TENANT_ACCOUNT, install=INSTALL, account=ACCOUNT):
    """Returns the rendered stack of an app with named roles, and with inputs of every kind, under these names."""
    # This file names its install `globex`, and not as `INSTALL` says.
    names = {TENANT: tenant, TENANT_ACCOUNT: tenant_account, "globex": install, ACCOUNT: account}
    return json.loads(replace_each(_as_json(GOLDEN / "install-with-inputs.yaml"), names))


def queue_policies(tenant=TENANT, tenant_account=TENANT_ACCOUNT, install=INSTALL, account=ACCOUNT):
    """Returns the policies that `register-install` gives the queues (`crates/aws/src/queue.rs`)."""
    return json.loads(_rename(QUEUE_POLICIES.read_text(), tenant, tenant_account, install, account))


def install(tenant=TENANT, tenant_account=TENANT_ACCOUNT, install=INSTALL, account=ACCOUNT):
    return json.loads(_rename(_as_json(GOLDEN / "install.yaml"), tenant, tenant_account, install, account))


def _rename(text, *names):
    return replace_each(text, dict(zip((TENANT, TENANT_ACCOUNT, INSTALL, ACCOUNT), names, strict=True)))


def install_with_inputs_text():
    """Returns the rendered stack of an app with inputs of every kind, named roles, and hostile texts."""
    return (GOLDEN / "install-with-inputs.yaml").read_text()


def install_with_inputs():
    return json.loads(_as_json(GOLDEN / "install-with-inputs.yaml"))


def install_with_network_text():
    """Returns the rendered stack of an app with a sandbox, which gets a network."""
    return (GOLDEN / "install-with-network.yaml").read_text()


def install_with_network():
    return json.loads(_as_json(GOLDEN / "install-with-network.yaml"))


def replace_each(text, replacements):
    """Replaces each key by its value in one pass, so that nothing is replaced twice; longer keys first."""
    keys = sorted(replacements, key=len, reverse=True)
    return re.sub("|".join(map(re.escape, keys)), lambda found: replacements[found[0]], text)


# What the role that deploys a tenant has: an inline policy, and a managed one, because IAM limits the length of each.
DEPLOY_POLICIES = ("deploy-policy.json", "deploy-people-policy.json")


def deploy_policy(tenant=TENANT, account=TENANT_ACCOUNT):
    """Returns all that the role that deploys a tenant may do."""
    parts = [policy(name, tenant, account, REGION) for name in DEPLOY_POLICIES]
    return {**parts[0], "Statement": [statement for part in parts for statement in part["Statement"]]}


def tenant_boundary(tenant=TENANT, account=TENANT_ACCOUNT):
    return policy("tenant-boundary.json", tenant, account, REGION)


def policy(name, tenant, account, region):
    """Returns a policy that the vendor's administrator makes, with its names filled in as docs/tenant-role.md does."""
    names = {"%{TENANT}": tenant, "%{ACCOUNT}": account, "%{REGION}": region}
    text = replace_each((INFRA / name).read_text(), names)
    assert "%{" not in text, f"{name} has another name to fill in"
    return json.loads(text)


def trust_policy(**principal):
    """Returns the text of a policy that lets this principal assume a role: `AWS=arn` or `Service=name`."""
    statement = {"Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole"}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


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


def endpoint_service(endpoint):
    """Returns the service of a VPC endpoint as its name ends: `ecr.api`."""
    name = endpoint["Properties"]["ServiceName"]
    return (
        (name["Fn::Sub"] if isinstance(name, dict) else name)
        .removeprefix("com.amazonaws.")
        .removeprefix("${AWS::Region}.")
    )


def properties(template, name):
    return template["Resources"][name]["Properties"]


def as_list(value):
    return value if isinstance(value, list) else [value]


def resource_text(resource):
    """Returns a resource of a statement as text: `Table.Arn` for an attribute, the ARN's last part for a name."""
    if isinstance(resource, str):
        return resource
    if "Fn::GetAtt" in resource:
        return ".".join(resource["Fn::GetAtt"])
    if "Ref" in resource:
        return resource["Ref"]
    if "Fn::If" in resource:
        _, then, otherwise = resource["Fn::If"]
        return f"{resource_text(then)} or {resource_text(otherwise)}"
    text = (
        re.sub(r"\$\{AWS::\w+\}", "", resource["Fn::Sub"]).replace("${TenantName}", "T").replace("${DeployBucket}", "B")
    )
    return re.sub(r"^arn::([a-z0-9]+):::?", r"\1:", text)
