"""Puts one fault after another into a template's conditions and policies, to show that some combination notices it."""

import copy
import itertools

import invariants
from templates import ACCOUNT

# Where the runner works: on a machine of its own, in a new network or the customer's, with or without endpoints.
ROOT = f"arn:aws:iam::{ACCOUNT}:root"
EXISTING = {"VpcId": "vpc-0123456789abcdef0", "SubnetIds": "subnet-0123456789abcdef0,subnet-0123456789abcdef1"}
OWN_SUBNET = {"VpcId": "vpc-0123456789abcdef0", "SubnetCidr": "10.0.9.0/28"}
PRIVATE = {"PrivateEndpoints": "true"}
RUNNER_URL = "https://downloads.s3.eu-west-1.amazonaws.com/freehold-runner"
NETWORKS = [
    {"RunnerPrincipal": ROOT},
    {"RunnerPrincipal": ROOT, **EXISTING, **PRIVATE},
    {},
    PRIVATE,
    {**PRIVATE, "DnsFirewall": "true"},
    EXISTING,
    {**EXISTING, **PRIVATE},
    {**EXISTING, **PRIVATE, "RouteTableIds": "rtb-0123456789abcdef0"},
    OWN_SUBNET,
    {**OWN_SUBNET, **PRIVATE, "InstallPackages": "false", "RunnerUrl": RUNNER_URL},
    {**OWN_SUBNET, **PRIVATE, "RouteTableIds": "rtb-0123456789abcdef0"},
]


def is_offered(template, network):
    """Returns whether the template's parameters take the values of a network."""
    offered = {
        name: template["Parameters"][name].get("AllowedValues") for name in network if name in template["Parameters"]
    }
    return all(values is None or network[name] in values for name, values in offered.items())


def missed(template):
    """Returns the faults that no combination notices, and how many were tried."""
    combinations = covering_combinations(template)
    tried = list(faults(template))
    return [name for name, mutant in tried if not any(_is_noticed(mutant, each) for each in combinations)], len(tried)


def _is_noticed(mutant, parameters):
    try:
        return bool(invariants.check(mutant, parameters)[1])
    except (KeyError, TypeError, ValueError):
        # CloudFormation could not make it either.
        return True


def covering_combinations(template):
    """Returns few combinations that decide every condition both ways, each role's switch on its own too."""
    roles = list(invariants.switches(template))
    own = f"arn:aws:iam::{ACCOUNT}:policy/everybody"
    combinations = []
    networks = [network for network in NETWORKS if is_offered(template, network)]
    for at, (runner, boundary, network) in enumerate(itertools.product(("true", "false"), ("", own), networks)):
        on = {
            role: "true" if (at + place) % len(roles) < len(roles) // 2 else "false" for place, role in enumerate(roles)
        }
        inputs = dict.fromkeys(invariants.optional_inputs(template), "" if at % 2 else "an answer")
        inputs["EnableAppRoles"] = "false" if at % 3 else "true"
        inputs["PermissionsBoundaryHasOurs"] = "false" if at % 2 else "true"
        inputs["AuditLock"] = invariants.AUDIT_LOCKS[at % len(invariants.AUDIT_LOCKS)]
        combinations.append({**on, **inputs, "EnableRunner": runner, "PermissionsBoundaryArn": boundary, **network})
    return combinations


def faults(template):
    """Yields each fault by its name, with the template that has it."""
    yield from _faults_of_conditions(template)
    yield from _faults_of_roles(template)
    yield from _faults_of_limits(template)
    yield "an output of a resource that may not exist", _put(template, ("Outputs", "More"), {"Value": {"Ref": "Vpc"}})
    unknown = {"Value": {"Fn::Sub": "${Nothing.Arn}"}}
    yield "an unknown name in a text", _put(template, ("Outputs", "More"), unknown)
    size = ("Resources", "RunnerGroup", "Properties", "MaxSize")
    yield "the kill switch does more", _put(template, size, {"Fn::If": ["RunnerEnabled", "1", "0"]})
    machine = {"Type": "AWS::EC2::Instance", "Properties": {}}
    yield "a machine without a condition", _put(template, ("Resources", "More"), machine)


def _faults_of_conditions(template):
    for name, resource in template["Resources"].items():
        if "Condition" in resource:
            yield f"{name} always exists", _change(template, ("Resources", name), lambda one: one.pop("Condition"))
            yield f"{name} never exists", _remove(template, name)
    for name, condition in template["Conditions"].items():
        yield f"{name} is inverted", _put(template, ("Conditions", name), {"Fn::Not": [condition]})
    for path, (condition, then, otherwise) in _choices(template, ()):
        place = "/".join(map(str, path))
        yield f"{place} is always the first side", _put(template, path, then)
        yield f"{place} is always the second side", _put(template, path, otherwise)
        yield f"{place} is inverted", _put(template, path, {"Fn::If": [condition, otherwise, then]})


def _faults_of_roles(template):
    stranger = {"Service": "ec2.amazonaws.com"}
    later = {"DateLessThan": {"aws:CurrentTime": {"Ref": "RevokeSessionsBefore"}}}
    yield "a mode without a switch", _put(template, ("Resources", "MoreRole"), template["Resources"]["ProvisionRole"])
    taken = _path_to_taken_roles(template)
    for change, name in (
        (lambda arns: arns.append({"Fn::Sub": "arn:${AWS::Partition}:iam::${AWS::AccountId}:role/other"}), "one more"),
        (lambda arns: arns.pop(), "one less"),
    ):
        yield f"the runner takes {name} role", _change(template, taken, change)
    yield (
        "Limits is not attached to the runner",
        _change(
            template, ("Resources", "Limits", "Properties", "Roles"), lambda roles: roles.remove({"Ref": "RunnerRole"})
        ),
    )
    for role in invariants.switches(template).values():
        trust = ("Resources", role, "Properties", "AssumeRolePolicyDocument", "Statement", 0)
        yield (
            f"others than the runner may take {role}",
            _change(template, trust, lambda one: one["Condition"].pop("ArnEquals")),
        )
        yield f"{role} trusts a service", _put(template, (*trust, "Principal"), stranger)
        yield f"{role} ends at another moment", _change(template, trust, lambda one: one["Condition"].update(later))
        yield f"{role} is not always there", _put(template, ("Resources", role, "Condition"), "RunnerEnabled")
        yield (
            f"Limits is not attached to {role}",
            _change(
                template,
                ("Resources", "Limits", "Properties", "Roles"),
                lambda roles, role=role: roles.remove({"Ref": role}),
            ),
        )


def _faults_of_limits(template):
    path = ("Resources", "Limits", "Properties", "PolicyDocument", "Statement")
    for at, statement in enumerate(template["Resources"]["Limits"]["Properties"]["PolicyDocument"]["Statement"]):
        yield f"Limits lacks its statement {at}", _change(template, path, lambda statements, at=at: statements.pop(at))
        place = (*path, at, "Fn::If", 2) if "Fn::If" in statement else (*path, at)
        yield f"statement {at} of Limits denies one action", _put(template, (*place, "Action"), "s3:*")
        kept = ["sts:AssumeRole", "sqs:SendMessage"]
        yield f"statement {at} of Limits leaves the runner its roles", _put(template, (*place, "NotAction"), kept)
        yield (
            f"statement {at} of Limits has one more condition",
            _change(
                template, (*place, "Condition"), lambda one: one.update({"Bool": {"aws:SecureTransport": "false"}})
            ),
        )
    wider = {"Effect": "Deny", "Action": "*", "Resource": "*", "Condition": {"ArnLike": {"aws:PrincipalArn": "*"}}}
    yield "Limits denies more", _change(template, path, lambda statements: statements.append(wider))
    boundary = ("Resources", "Boundary", "Properties", "PolicyDocument", "Statement")
    for at, statement in enumerate(template["Resources"]["Boundary"]["Properties"]["PolicyDocument"]["Statement"]):
        if statement.get("Effect") == "Deny":
            yield f"statement {at} of Boundary allows", _put(template, (*boundary, at, "Effect"), "Allow")


def _path_to_taken_roles(template):
    statements = template["Resources"]["RunnerRole"]["Properties"]["Policies"][0]["PolicyDocument"]["Statement"]
    [at] = [at for at, statement in enumerate(statements) if statement.get("Sid") == "TakeModeRoles"]
    path = ("Resources", "RunnerRole", "Properties", "Policies", 0, "PolicyDocument", "Statement", at, "Resource")
    return path


def _choices(node, path):
    """Yields every `Fn::If` with the path to it."""
    if isinstance(node, dict):
        if list(node) == ["Fn::If"]:
            yield path, node["Fn::If"]
        for key, value in node.items():
            yield from _choices(value, (*path, key))
    elif isinstance(node, list):
        for at, value in enumerate(node):
            yield from _choices(value, (*path, at))


def _change(template, path, change):
    mutant = copy.deepcopy(template)
    node = mutant
    for key in path:
        node = node[key]
    change(node)
    return mutant


def _put(template, path, value):
    return _change(template, path[:-1], lambda parent: parent.__setitem__(path[-1], copy.deepcopy(value)))


def _remove(template, name):
    return _change(template, ("Resources",), lambda resources: resources.pop(name))
