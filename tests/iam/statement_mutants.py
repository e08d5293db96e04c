"""Changes one statement of a template after another so that it permits more, to show that some decision notices each.

An allow is widened; a deny is dropped and narrowed.
"""

import copy
import re

import templates
from endpoints import STRANGER
from vendor import FOREIGN

# What a deny exempts that is narrowed by one more value, by the key of its condition.
EXEMPT = {
    "aws:PrincipalArn": {"Fn::Sub": "arn:${AWS::Partition}:iam::${AWS::AccountId}:role/admin"},
    "iam:PermissionsBoundary": "arn:aws:iam::aws:policy/AdministratorAccess",
    "kms:ViaService": "secretsmanager.*",
    "s3:prefix": "terraform/*",
}
# What one value more is in the condition of an allow, by its key. The world has each of these accounts, topics and
# functions. A list of the customers' accounts grows with each install, and is left out.
ONE_MORE = {
    "aws:ResourceAccount": STRANGER,
    "aws:SourceAccount": FOREIGN,
    "aws:SourceArn": {"Fn::Sub": "arn:${AWS::Partition}:sns:${AWS::Region}:${AWS::AccountId}:fh-${TenantName}--alarms"},
    "dynamodb:LeadingKeys": "*",
    "lambda:FunctionArn": {"Fn::GetAtt": ["DispatchJob", "Arn"]},
    "s3:prefix": "*",
}
# A service that the world has beside the one that a trust or a queue's policy names.
ANOTHER_SERVICE = {"ec2": "lambda", "lambda": "ec2", "sns": "events", "states": "lambda"}
OF_A_SUBSCRIPTION = {"sns:GetSubscriptionAttributes", "sns:Unsubscribe"}
THIS_ACCOUNT = {"Ref": "AWS::AccountId"}


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
            statements[self.at : self.at + 1] = replacement(list(_changes(statement))[self.change][1])
        return template

    def lets_everybody_in(self, template):
        """Returns whether the mutant widens a principal so that some statement's principal is everybody.

        Only its condition limits such a statement, so a decision shows the difference only if the world has another
        principal that meets the condition. The checks of the templates find it (`tests/infra`, `freehold customer
        verify-template`).
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
    """Yields every way in which a statement of the template permits more, without those that only look like one."""
    return (mutant for mutant, is_equal in _all(name, template) if not is_equal)


def left_out(name, template):
    """Yields the changes that are not mutants: see `permits_no_more`."""
    return (mutant for mutant, is_equal in _all(name, template) if is_equal)


def _all(name, template):
    for holder, key, statements in _lists(template):
        kind_of_holder = template["Resources"][holder]["Type"]
        for at, statement in enumerate(statements):
            for side, (bare, _) in enumerate(_sides(statement)):
                for change, (kind, _) in enumerate(_changes(bare)):
                    mutant = Mutant(name, holder, key, at, side, change, kind, bare.get("Sid", ""))
                    yield mutant, permits_no_more(kind_of_holder, bare, kind, statements)


def permits_no_more(holder, statement, kind, statements):
    """Returns whether a change of a statement in the policy of a resource of the type `holder` changes no decision.

    - A role of this account has no other account, so a condition that says so once more adds nothing.
    - A queue's policy decides about that queue alone, whatever resource a statement names.
    - Without its condition, or with one principal more in it, an allow lets in those that a deny of the same policy
      refuses by the opposite condition.
    - Everybody whose ARN is that of a role of another account is that role, as before; its own policies have to permit
      the action in either case. Within one account they would not have to, so there this permits more.
    - AWS lists no resource for the actions of a subscription, so an allow of these decides the same whatever it names.
    """
    if statement["Effect"] == "Deny":
        return False
    if kind == "resource" and set(templates.as_list(statement["Action"])) <= OF_A_SUBSCRIPTION:
        return True
    account = {"StringEquals": {"aws:PrincipalAccount": THIS_ACCOUNT}}
    if kind in ("condition", "one more aws:PrincipalAccount") and statement["Condition"] == account:
        return _is_of_this_account(statement["Principal"])
    if holder != "AWS::SQS::QueuePolicy":
        return False
    if kind in ("condition", "one more aws:PrincipalArn"):
        opposite = {operator.replace("Equals", "NotEquals"): test for operator, test in statement["Condition"].items()}
        return any(
            other["Effect"] == "Deny"
            and _is_everybody(other["Principal"])
            and set(templates.as_list(statement["Action"])) <= set(templates.as_list(other["Action"]))
            and (other["Resource"], other["Condition"]) == (statement["Resource"], opposite)
            for other in statements
        )
    if kind == "principal":
        arn = statement.get("Condition", {}).get("ArnEquals", {}).get("aws:PrincipalArn", "")
        return isinstance(arn, str) and _account(arn) not in ("", _account(statement["Resource"]))
    return kind == "resource"


def _is_of_this_account(principal):
    """Returns whether the ARN of a principal of a template names the account of the stack."""
    pattern = principal.get("AWS", {}).get("Fn::Sub", "") if isinstance(principal, dict) else ""
    return templates.as_list(pattern)[0].startswith("arn:${AWS::Partition}:iam::${AWS::AccountId}:")


def _account(arn):
    """Returns the account in an ARN; of an ARN that CloudFormation makes, which is a function in a template, none."""
    if not isinstance(arn, str):
        return ""
    return arn.split(":")[4] if arn.count(":") > 4 else ""


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
    actions = templates.as_list(statement["Action"])
    services = sorted({action.split(":")[0] for action in actions})
    for service in services if "*" not in actions else []:
        if f"{service}:*" not in actions:
            yield "action" if len(services) == 1 else f"action of {service}", {"Action": [*actions, f"{service}:*"]}
    if statement.get("Resource", "*") != "*":
        yield "resource", {"Resource": "*"}
        yield from _widened_names(templates.as_list(statement["Resource"]))
    yield from _widened_principal(statement.get("Principal", "*"))
    # A role that is off trusts nobody; this one ignores its switch.
    if isinstance(statement["Effect"], dict):
        yield "switch", {"Effect": "Allow"}
    if "Condition" in statement:
        yield "condition", {"Condition": None}
        for kind, changed in _widened_condition(statement["Condition"]):
            yield kind, {"Condition": changed}


def _widened_names(resources):
    """Yields resources of which one also names those whose names begin alike, or all objects of the same bucket."""
    for at, value in enumerate(resources):
        pattern = value.get("Fn::Sub") if isinstance(value, dict) else value
        if not isinstance(pattern, str):
            continue  # the ARN of one resource
        for wider in dict.fromkeys((re.sub(r"--\*", "*", pattern), re.sub(r"/[a-z]+/\*$", "/*", pattern))):
            text = {"Fn::Sub": wider} if isinstance(value, dict) else wider
            if wider != pattern:
                yield f"name {templates.resource_text(text)}", {"Resource": [*_without(resources, at), text]}


def _widened_principal(principal):
    if principal != "*":
        yield "principal", {"Principal": {"AWS": "*"}}
    if isinstance(principal, dict) and "Service" in principal:
        service = principal["Service"].split(".")[0]
        more = f"{ANOTHER_SERVICE[service]}.amazonaws.com"
        yield f"principal {more}", {"Principal": {"Service": [principal["Service"], more]}}


def _widened_condition(condition):
    """Yields conditions that let in more: one test less, one value more, or any of several values instead of all."""
    tests = [(operator, key, value) for operator, of in condition.items() for key, value in of.items()]
    for operator, key, value in tests:
        others = {name: test for name, test in condition[operator].items() if name != key}
        rest = {name: of for name, of in condition.items() if name != operator} | ({operator: others} if others else {})
        if len(tests) > 1:
            yield f"without {key}", rest
        values = templates.as_list(value)
        more = _one_more(key, values)
        if more is not None:
            yield f"one more {key}", {**rest, operator: {**others, key: [*values, more]}}
        if operator.startswith("ForAllValues:"):
            any_value = operator.replace("ForAllValues:", "ForAnyValue:")
            yield f"any of {key}", {**rest, any_value: {key: value}}


def _one_more(key, values):
    if key == "aws:PrincipalArn":
        # Another mode where the condition is in a policy of the modes; else the administrator of the roles' account.
        arn = values[0]
        if arn == {"Fn::GetAtt": ["DeprovisionRole", "Arn"]}:
            return {"Fn::GetAtt": ["ProvisionRole", "Arn"]}
        return re.sub("role/.*", "role/admin", arn) if isinstance(arn, str) else EXEMPT[key]
    if key == "aws:PrincipalAccount":
        return STRANGER if values == [THIS_ACCOUNT] else None
    return ONE_MORE.get(key)


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
        if isinstance(value, dict) and "Fn::Sub" not in value:
            continue  # the ARN of one resource, which has no wider pattern
        pattern = value["Fn::Sub"] if isinstance(value, dict) else value
        for wider in _wider(pattern):
            text = {"Fn::Sub": wider} if isinstance(value, dict) else wider
            yield f"exempt {templates.resource_text(text)}", {"NotResource": [*_without(exempt, at), text]}
    for operator, tests in statement.get("Condition", {}).items():
        for key, value in tests.items():
            for kind, changed in _narrowed_test(operator, key, templates.as_list(value)):
                yield kind, {"Condition": {**statement["Condition"], operator: {**tests, key: changed}}}
    yield from _narrowed_condition(statement.get("Condition", {}))


def _narrowed_condition(condition):
    """Yields the conditions of a deny that lets pass a request without the key, or one with another value beside."""
    absent = condition.get("Null", {})
    for operator, tests in condition.items():
        for key in tests:
            if "Not" in operator and key not in absent and key != "aws:PrincipalArn":
                yield f"only with {key}", {"Condition": {**condition, "Null": {**absent, key: "false"}}}
        if operator.startswith("ForAnyValue:"):
            rest = {name: of for name, of in condition.items() if name != operator}
            all_values = operator.replace("ForAnyValue:", "ForAllValues:")
            yield f"all of {', '.join(tests)}", {"Condition": {**rest, all_values: tests}}


def _wider(arn):
    """Yields wider patterns than one that ends in `*`: its folder, its parent, its service, and neighbours."""
    if ":ssm:" in arn:
        service = re.sub(r"[^:]+$", "*", arn)
        yield from [service] if service != arn else []
        return
    if ":oidc-provider/" in arn:
        # The issuer of any host whose name begins like that of a cluster.
        yield re.sub(r"oidc\.eks\..*$", "oidc.eks.*", arn)
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


def _without(values, at):
    return values[:at] + values[at + 1 :]


def _is_everybody(principal):
    if isinstance(principal, dict):
        return "*" in templates.as_list(principal.get("AWS", []))
    return principal == "*"
