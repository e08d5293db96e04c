"""Changes one statement of a template after another so that it permits more, to show that some decision notices each.

An allow is widened; a deny is dropped and narrowed.
"""

import copy
import re
from fnmatch import fnmatchcase

import templates
from customer import MODE_ROLES
from endpoints import ENDPOINTS
from vendor import ROLES

MODE_PRINCIPALS = {*MODE_ROLES, "bare-mode", "base-alone", "beside-company", "off-mode", "old-session", "app-session"}
# The kinds of principals whose decisions a statement can change, by the role or policy that has it.
PRINCIPALS = {
    **{f"{logical}Role": {kind} for kind, logical in ROLES.items()},
    "RunnerRole": {"runner", "killed-runner"},
    "LogDelivery": {f"{name}-machine" for name in templates.DEFINITIONS},
    **dict.fromkeys(("Base", "Boundary"), MODE_PRINCIPALS),
    "Limits": {*MODE_PRINCIPALS, "runner", "killed-runner", "killed-wide-runner"},
}
# The kind of resource whose decisions a statement can change, by the resource whose policy it is.
RESOURCES = {
    "BuildQueuePolicy": "build-queue",
    "Repository": "registry",
    "SigningKey": "root-key",
    "Key": "key",
    "OrdersPolicy": "orders",
    "ReportsPolicy": "reports",
}
# What a deny exempts that is narrowed by one more value, by the key of its condition.
EXEMPT = {
    "aws:PrincipalArn": {"Fn::Sub": "arn:${AWS::Partition}:iam::${AWS::AccountId}:role/admin"},
    "iam:PermissionsBoundary": "arn:aws:iam::aws:policy/AdministratorAccess",
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
    """One statement of a template, and one way in which it permits more."""

    def __init__(self, template_name, holder, key, at, side, change, kind, sid):
        self.template_name, self.holder, self.key = template_name, holder, key
        # The change by its number: its kind may name an install, and each install has other names.
        self.at, self.side, self.change, self.kind, self.sid = at, side, change, kind, sid

    def __str__(self):
        place = f"({self.at}, {self.side})"
        return f"{self.template_name} {self.holder} {self.key} {place} {self.sid}: {self.kind}"

    def apply(self, name, template):
        """Changes the statement if the template is the mutant's; for the argument `change` of a world."""
        if name == self.template_name:
            [statements] = [
                found for holder, key, found in _lists(template) if (holder, key) == (self.holder, self.key)
            ]
            statement, replacement = _sides(statements[self.at])[self.side]
            statements[self.at : self.at + 1] = replacement(self.changed(statement))
        return template

    def changed(self, statement):
        """Returns the statements that replace a statement."""
        return list(_changes(statement))[self.change][1]

    def actions(self, template):
        """Returns a function that says of an action whether the statement is about it, before or after the change."""
        found = _lists(template)
        [statements] = [listed for holder, key, listed in found if (holder, key) == (self.holder, self.key)]
        before = _sides(statements[self.at])[self.side][0]
        after = self.changed(before)
        return lambda action: any(_is_about(statement, action) for statement in (before, *after))

    def concerns_principal(self, principal):
        """Returns whether the statement can change what is decided of a principal; of two tenants, one counts."""
        if self.key == "trust":
            return True
        if principal.get("t", 0) != 0 or (principal.get("by") == "endpoint") != (self.holder in ENDPOINTS):
            return False
        return self.holder in RESOURCES or principal["kind"] in PRINCIPALS.get(self.holder, {principal["kind"]})

    def concerns_resource(self, resource):
        """Returns whether the statement can change what is decided about a resource."""
        if self.key == "trust":
            return resource["kind"] in TRUSTED_ROLES
        if self.holder in ENDPOINTS:
            return resource.get("through") == self.holder
        return self.holder not in RESOURCES or resource["kind"] == RESOURCES[self.holder]

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
    """Yields every way in which a statement of the template permits more."""
    for holder, key, statements in _lists(template):
        for at, statement in enumerate(statements):
            for side, (bare, _) in enumerate(_sides(statement)):
                for change, (kind, _) in enumerate(_changes(bare)):
                    yield Mutant(name, holder, key, at, side, change, kind, bare.get("Sid", ""))


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


def _changes(statement):
    """Yields the ways in which a statement permits more: the name of each, and the statements that replace it."""
    if statement["Effect"] == "Deny":
        yield "dropped", []
        changes = _narrowed(statement)
    else:
        changes = _widened(statement)
    for kind, changed in changes:
        whole = {**statement, **changed}
        yield kind, [{key: value for key, value in whole.items() if value is not None}]


def _widened(statement):
    """Yields what changes when an allow is widened."""
    service = templates.as_list(statement["Action"])[0].split(":")[0]
    if statement["Action"] not in ("*", f"{service}:*"):
        yield "action", {"Action": f"{service}:*"}
    if statement.get("Resource", "*") != "*":
        yield "resource", {"Resource": "*"}
    if "Condition" in statement:
        yield "condition", {"Condition": None}
    if statement.get("Principal", "*") != "*":
        yield "principal", {"Principal": {"AWS": "*"}}
    # A role that is off trusts nobody; this one ignores its switch.
    if isinstance(statement["Effect"], dict):
        yield "switch", {"Effect": "Allow"}


def _narrowed(statement):
    """Yields what changes when a deny is narrowed: what it denies is left out, or what it exempts is more."""
    for key in ("Action", "Resource"):
        values = templates.as_list(statement.get(key, []))
        for at, value in enumerate(values if len(values) > 1 else []):
            yield f"without {templates.resource_text(value)}", {key: _without(values, at)}
    if "NotAction" in statement:
        exempt = templates.as_list(statement["NotAction"])
        for service in sorted({action.split(":")[0] for action in exempt}):
            yield f"exempt {service}", {"NotAction": [*exempt, f"{service}:*"]}
    exempt = templates.as_list(statement.get("NotResource", []))
    for at, value in enumerate(exempt):
        pattern = value["Fn::Sub"] if isinstance(value, dict) else value
        for wider in _wider(pattern):
            text = {"Fn::Sub": wider} if isinstance(value, dict) else wider
            yield f"exempt {templates.resource_text(text)}", {"NotResource": [*_without(exempt, at), text]}
    for operator, tests in statement.get("Condition", {}).items():
        for key, value in tests.items():
            for kind, changed in _narrowed_test(operator, key, templates.as_list(value)):
                yield kind, {"Condition": {**statement["Condition"], operator: {**tests, key: changed}}}


def _wider(arn):
    """Yields wider patterns than one that ends in `*`: its folder, its parent, its service, and neighbours."""
    if ":ssm:" in arn:
        service = re.sub(r"[^:]*$", "*", arn)
        yield from [service] if service != arn else []
        return
    everything = re.sub(r"/[^/]*\*$", "/*", arn)
    parent = re.sub(r"/[^/]*/\*$", "/*", arn) if "/freehold/" in arn else arn
    neighbours = re.sub(r"(--|(?<=[a-z0-9])/)\*$", "*", arn) if "--" in arn else arn
    for wider in dict.fromkeys((everything, parent, neighbours)):
        if wider != arn:
            yield wider


def _narrowed_test(operator, key, values):
    if "Not" in operator and key.startswith("aws:ResourceTag/freehold:"):
        yield "exempt a neighbour's tag", [*values, f"{values[0]}-eu"]
    elif operator == "ArnNotLike":
        yield f"exempt {key}", [*values, "arn:aws:iam::*:role/freehold/*"]
    elif "Not" in operator:
        yield f"exempt {key}", [*values, EXEMPT[key]]
    else:
        for at, value in enumerate(values if len(values) > 1 else []):
            yield f"without {templates.resource_text(value)}", _without(values, at)


def _is_about(statement, action):
    """Returns whether a statement's actions match an action."""

    def matches(pattern):
        return fnmatchcase(action.lower(), pattern.lower().replace("[", "[[]"))

    if "NotAction" in statement:
        return not any(map(matches, templates.as_list(statement["NotAction"])))
    return any(map(matches, templates.as_list(statement["Action"])))


def _without(values, at):
    return values[:at] + values[at + 1 :]


def _is_everybody(principal):
    if isinstance(principal, dict):
        return "*" in templates.as_list(principal.get("AWS", []))
    return principal == "*"
