"""Widens one statement of a template after another, to show that some decision notices each."""

import copy

import templates
from customer import MODES
from vendor import ROLES

KINDS = ("dropped", "action", "resource", "condition", "principal", "switch")
MODE_PRINCIPALS = {*MODES, "bare-mode", "base-alone", "off-mode", "old-session"}
# The kinds of principals whose decisions a statement can change, by the role or policy that has it.
PRINCIPALS = {
    **{f"{logical}Role": {kind} for kind, logical in ROLES.items()},
    "RunnerRole": {"runner", "killed-runner"},
    "LogDelivery": {f"{name}-machine" for name in templates.DEFINITIONS},
    **dict.fromkeys(("Base", "Boundary"), MODE_PRINCIPALS),
    "Limits": {*MODE_PRINCIPALS, "runner", "killed-runner"},
}
# The kind of resource whose decisions a statement can change, by the resource whose policy it is.
RESOURCES = {
    "BuildQueuePolicy": "build-queue",
    "Repository": "registry",
    "SigningKey": "root-key",
    "Key": "key",
}
TRUSTED_ROLES = (
    "runner-role",
    "runner-role-elsewhere",
    "mode-role",
    "off-mode-role",
    "function-role",
    "machine-role",
    "build-role",
)


class Mutant:
    """One statement of a template and one way to widen it."""

    def __init__(self, template_name, holder, key, at, side, kind, sid):
        self.template_name, self.holder, self.key = template_name, holder, key
        self.at, self.side, self.kind, self.sid = at, side, kind, sid

    def __str__(self):
        place = f"({self.at}, {self.side})"
        return f"{self.template_name} {self.holder} {self.key} {place} {self.sid}: {self.kind}"

    def apply(self, name, template):
        """Widens the statement if the template is the mutant's; for the argument `change` of a world."""
        if name == self.template_name:
            [statements] = [
                found for holder, key, found in _lists(template) if (holder, key) == (self.holder, self.key)
            ]
            statement, replacement = _sides(statements[self.at])[self.side]
            statements[self.at : self.at + 1] = replacement(_widened(statement, self.kind))
        return template

    def concerns(self, world, who, what):
        """Returns whether the statement can change a decision; of two tenants that are alike, one is asked about."""
        principal, resource = world.principals[who], world.resources[what]
        if self.key == "trust":
            return resource["kind"] in TRUSTED_ROLES
        if principal.get("t", 0) != 0:
            return False
        if self.holder in RESOURCES:
            return resource["kind"] == RESOURCES[self.holder]
        return principal["kind"] in PRINCIPALS.get(self.holder, {principal["kind"]})

    def lets_everybody_in(self, template):
        """Returns whether the mutant widens a principal so that some statement's principal is everybody.

        Only a condition holds such a statement, so no principal of another kind could show the difference. The checks
        of the templates find it (`tests/infra`, `freehold install verify-template`).
        """
        if self.kind != "principal":
            return False
        changed = self.apply(self.template_name, copy.deepcopy(template))
        for _, _, statements in _lists(changed):
            for statement in statements:
                for side, _ in _sides(statement):
                    if side["Effect"] != "Deny" and _is_everybody(side.get("Principal")):
                        return True
        return False


def mutants(name, template):
    """Yields every way to widen a statement of the template."""
    for holder, key, statements in _lists(template):
        for at, statement in enumerate(statements):
            for side, (bare, _) in enumerate(_sides(statement)):
                for kind in KINDS:
                    if _widened(bare, kind) is not None:
                        yield Mutant(name, holder, key, at, side, kind, bare.get("Sid", ""))


def _lists(template):
    """Yields every list of statements: the resource that has it, where, and the list."""
    for name, resource in template["Resources"].items():
        properties = resource["Properties"]
        if resource["Type"] == "AWS::IAM::Role":
            yield name, "trust", properties["AssumeRolePolicyDocument"]["Statement"]
            for policy in properties.get("Policies", []):
                yield name, "identity", policy["PolicyDocument"]["Statement"]
            continue
        for key in ("PolicyDocument", "KeyPolicy", "RepositoryPolicyText"):
            if key in properties:
                yield name, key, properties[key]["Statement"]


def _sides(statement):
    """Returns each side of a statement that an `Fn::If` may choose, with a function that replaces that side."""
    if "Fn::If" not in statement:
        return [(statement, lambda changed: changed)]
    condition, *sides = statement["Fn::If"]

    def replace(at):
        return lambda changed: [
            {"Fn::If": [condition, *sides[:at], *(changed or [{"Ref": "AWS::NoValue"}]), *sides[at + 1 :]]}
        ]

    return [(side, replace(at)) for at, side in enumerate(sides) if "Ref" not in side]


def _widened(statement, kind):
    """Returns the statements that replace this one: none when it is dropped; `None` when it cannot be widened so."""
    if statement["Effect"] == "Deny":
        return [] if kind == "dropped" else None
    service = templates.as_list(statement["Action"])[0].split(":")[0]
    without_condition = {key: value for key, value in statement.items() if key != "Condition"}
    changed = {
        "action": statement["Action"] not in ("*", f"{service}:*") and {**statement, "Action": f"{service}:*"},
        "resource": statement.get("Resource", "*") != "*" and {**statement, "Resource": "*"},
        "condition": "Condition" in statement and without_condition,
        "principal": statement.get("Principal", "*") != "*" and {**statement, "Principal": {"AWS": "*"}},
        # A role that is off trusts nobody; this one ignores its switch.
        "switch": isinstance(statement["Effect"], dict) and {**statement, "Effect": "Allow"},
    }.get(kind)
    return [changed] if changed else None


def _is_everybody(principal):
    if isinstance(principal, dict):
        return "*" in templates.as_list(principal.get("AWS", []))
    return principal == "*"
