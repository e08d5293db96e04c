"""Policies of an app's roles in forms that no install stack has, and in forms that it may have."""

import copy
import json

from templates import properties

ROLES = ("ProvisionRole", "BreakGlassRole")
# Its default completes what begins in a policy.
INPUT, DEFAULT = "InputZones", "{"
SECRET = "{{resolve:secretsmanager:prod/db}}"
STRANGER = {"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": "arn:aws:iam::999999999999:role/x"}
EVERYTHING = {"Effect": "Allow", "Action": "*", "Resource": "*"}
TEXT = json.dumps({"Version": "2012-10-17", "Statement": [EVERYTHING, STRANGER]})
# Values that CloudFormation turns into others, or that nobody can read.
VALUES = {
    "a reference": f"arn:aws:s3:::{SECRET}",
    "a bracket before an answer": {"Fn::Sub": f"{{${{{INPUT}}}resolve:ssm:x}}}}"},
    "a bracket after an answer": {"Fn::Sub": f"${{{INPUT}}}{{resolve:ssm:x}}}}"},
    "two answers": {"Fn::Sub": f"${{{INPUT}}}${{{INPUT}}}resolve:ssm:x}}}}"},
    "a text with variables of its own": {"Fn::Sub": ["${A}resolve:ssm:x}}", {"A": "{{"}]},
    "pieces": {"Fn::Join": ["", ["{", "{resolve:ssm:x}}"]]},
    "an export": {"Fn::ImportValue": "x"},
    "an attribute": {"Fn::GetAtt": ["Key", "Arn"]},
    "an attribute in a text": {"Fn::Sub": "${Key.Arn}"},
    "a secret in a text": {"Fn::Sub": "x-${AppSecretApiKey}"},
    "a parameter of the stack in a text": {"Fn::Sub": "x-${RunnerPrincipal}"},
    "a part of the account in a text": {"Fn::Sub": "arn:${AWS::Partition}:s3:::x"},
    "an answer": {"Ref": INPUT},
}
# Each keeps every rule.
HARMLESS = (
    EVERYTHING,
    [
        {
            "Effect": "Allow",
            "Action": ["s3:*"],
            "Resource": ["*", {"Fn::Sub": f"arn:aws:s3:::${{{INPUT}}}/x-${{InputColour}}/${{!aws:username}}"}],
            "Condition": {
                "StringLike": {"s3:prefix": ["${aws:username}", {"Fn::Sub": f"${{{INPUT}}}/*"}], "aws:Referer": "x"}
            },
        },
        {
            "Effect": "Deny",
            "NotAction": "s3:*",
            "NotResource": "arn:aws:s3:::x",
            "Condition": {"Bool": {"aws:SecureTransport": False}},
        },
    ],
)


def hostile(golden):
    """Returns a template for each form of a policy that both checks have to find, by a name for it."""
    found = {f"{name} in {role}": _with(golden, role, [policy]) for role in ROLES for name, policy in _policies()}
    default = copy.deepcopy(golden)
    default["Parameters"][INPUT]["Default"] = SECRET
    described = copy.deepcopy(golden)
    properties(described, "SecretInputApiToken")["Description"] = f"Answer to {SECRET}"
    return {**found, "a default that is a reference": default, "a description that is a reference": described}


def hostile_together(golden, role):
    """Returns a template with all these policies in one role, and the place of each with its name: Guard is slow."""
    names, policies = zip(*_policies(), strict=True)
    first = len(properties(golden, role)["Policies"])
    places = {f"/Resources/{role}/Properties/Policies/{at}": name for at, name in enumerate(names, first)}
    return _with(golden, role, policies), places


def without_finding(places, findings):
    """Returns the names of the places in which nothing was found; a finding has its path first."""
    paths = [f"{path}/" for path, _ in findings]
    return [name for place, name in places.items() if not any(path.startswith(f"{place}/") for path in paths)]


def harmless(golden):
    """Returns a template with policies as an app may write them."""
    policies = [
        {"PolicyName": f"more-{at}", "PolicyDocument": {"Version": "2012-10-17", "Statement": statements}}
        for at, statements in enumerate(HARMLESS)
    ]
    for role in ROLES:
        golden = _with(golden, role, policies)
    return golden


def _policies():
    yield "a text", TEXT
    yield "a document that is a text", {"PolicyName": "more", "PolicyDocument": TEXT}
    yield "a document without statements", {"PolicyName": "more", "PolicyDocument": {}}
    for name, statements in (("statements that are a text", TEXT), ("a statement that is a text", [TEXT])):
        yield name, {"PolicyName": "more", "PolicyDocument": {"Statement": statements}}
    for name, value in VALUES.items():
        yield f"{name} as the name", {"PolicyName": value, "PolicyDocument": {"Statement": [EVERYTHING]}}
        for resource in (value, ["*", value]):
            yield f"{name} as {type(resource).__name__}", _policy(Resource=resource)
        for values in (value, [value]):
            condition = {"StringLike": {"s3:prefix": values}}
            yield f"{name} as {type(values).__name__} of a condition", _policy(Condition=condition)
    for name, nested in (("a list in a list", [["*"]]), ("a reference in a list in a list", ["*", [SECRET]])):
        for key in ("Resource", "Action"):
            yield f"{name} as {key}", _policy(**{key: nested})
        yield f"{name} in a condition", _policy(Condition={"StringLike": {"s3:prefix": nested}})
        yield f"{name} as the version", _policy({"Version": nested})
    yield "an empty list in a list", _policy(Resource=["*", []])
    yield "a statement in a list in a list", {"PolicyName": "more", "PolicyDocument": {"Statement": [[EVERYTHING]]}}
    yield "a condition that is a text", _policy(Condition=SECRET)
    yield "a reference as the id of a statement", _policy(Sid=SECRET)
    yield "a reference as an action", _policy(Action=[SECRET])
    yield "a reference as the version", _policy({"Version": SECRET})
    yield (
        "a reference in the only statement",
        {
            "PolicyName": "more",
            "PolicyDocument": {"Statement": {**EVERYTHING, "Resource": SECRET}},
        },
    )


def _policy(document=None, **changes):
    return {"PolicyName": "more", "PolicyDocument": {"Statement": [{**EVERYTHING, **changes}], **(document or {})}}


def _with(golden, role, policies):
    """Returns the golden stack with more policies of a role, and with the default of the input."""
    template = copy.deepcopy(golden)
    properties(template, role)["Policies"] += policies
    template["Parameters"][INPUT]["Default"] = DEFAULT
    return template
