"""What is true of an install stack in every combination of its switches; `check` lists what is not."""

import re

from intrinsics import decide_conditions, references
from templates import ACCOUNT, as_list, of_type, properties

STACK = "freehold-acme--globex"
# What the network of an app adds to the runner's.
OF_APPS_NETWORK = {"PublicRoutes", "PublicWayOut", "PrivateRoutes", "PrivateWayOut", "NatAddress", "Nat"}
SUBNETS_OF_APPS = ("PublicSubnet", "PrivateSubnet")
MACHINE_TYPES = ("AWS::EC2::", "AWS::AutoScaling::")
OWN_ACCOUNT = {"AWS": {"Fn::Sub": "arn:${AWS::Partition}:iam::${AWS::AccountId}:root"}}
RUNNER_ONLY = {"aws:PrincipalArn": {"Fn::GetAtt": ["RunnerRole", "Arn"]}}
BEFORE_THE_END = {"aws:CurrentTime": {"Ref": "BreakGlassUntil"}}
# What the kill switch changes where the runner is on EC2, and where it is on another machine.
DENIED = "/Resources/Limits/Properties/PolicyDocument/Statement"
CAPACITY = "/Resources/RunnerGroup/Properties/DesiredCapacity"
EFFECT = "/Resources/{}/Properties/AssumeRolePolicyDocument/Statement/0/Effect"
BASE = "/Resources/Base/Properties/Roles"
# What the roles of the app are not, by the condition of a statement that is about them alone.
NOT_OF_THE_STACK = "role/fh-"
# What is left to the runner while EnableRunner is false: to say how its work ended and why, and to let its machine go.
LAST_WORDS = (
    "sqs:SendMessage",
    "s3:GetObject",
    "s3:ListBucket",
    "s3:PutObject",
    "s3:PutObjectRetention",
    "kms:Decrypt",
    "kms:GenerateDataKey",
    "cloudformation:DescribeStacks",
    "autoscaling:CompleteLifecycleAction",
)
# Of what is left, the actions that read are left for the audit records alone.
READS_OF_AUDIT_ALONE = (
    {
        "Sid": "RunnerIsOffReads",
        "Effect": "Deny",
        "Action": ["s3:GetObject", "s3:ListBucket", "kms:Decrypt"],
        "NotResource": [
            {"Fn::Sub": "${Bucket.Arn}/audit/*"},
            {"Fn::GetAtt": ["Bucket", "Arn"]},
            {"Fn::GetAtt": ["Key", "Arn"]},
        ],
        "Condition": {"ArnEquals": RUNNER_ONLY},
    },
    {
        "Sid": "RunnerIsOffLists",
        "Effect": "Deny",
        "Action": "s3:ListBucket",
        "Resource": "*",
        "Condition": {"ArnEquals": RUNNER_ONLY, "StringNotLike": {"s3:prefix": "audit/*"}},
    },
    {
        "Sid": "RunnerIsOffDecrypts",
        "Effect": "Deny",
        "Action": "kms:Decrypt",
        "Resource": "*",
        "Condition": {"ArnEquals": RUNNER_ONLY, "StringNotLike": {"kms:ViaService": "s3.*"}},
    },
)
PACKAGES = ":::al2023-repos-"
AUDIT_LOCKS = ("none", "GOVERNANCE", "COMPLIANCE")
# Parameters that the customer may leave empty.
OPTIONAL = ("VpcId", "SubnetIds", "RouteTableIds", "PermissionsBoundaryArn", "RunnerPrincipal")


def switches(template):
    """Returns the roles that have a switch, by the parameter that is the switch."""
    return {
        name: f"{name.removeprefix('Enable')}Role"
        for name in template["Parameters"]
        if name.startswith("Enable") and name not in ("EnableRunner", "EnableAppRoles")
    }


def optional_inputs(template):
    """Returns the inputs and secrets that the customer may leave empty: each has a condition of its own."""
    return [
        name.removeprefix("Has") for name in template["Conditions"] if name.startswith(("HasInput", "HasAppSecret"))
    ]


def decide(template, parameters):
    return decide_conditions(template, STACK, ACCOUNT, parameters)


def check(template, parameters):
    """Returns the template with its conditions decided, and the invariants that it breaks, as sentences."""
    made = decide(template, parameters)
    if set(of_type(made, "AWS::IAM::Role")) != {"RunnerRole", *switches(template).values()}:
        return made, ["a role has no switch, or a switch has no role"]
    wrong = [
        *_missing_references(made),
        *_empty_references(template, made, parameters),
        *_role_switches(template, made, parameters),
        *_limits(template, made, parameters),
        *_roles_of_the_runner(template, made),
        *_locks(made, parameters.get("AuditLock", "none")),
        *_boundary(template, made, parameters),
        *_network(made, parameters),
        *_downloads(made, parameters.get("RunnerUrl", template["Parameters"]["RunnerUrl"]["Default"])),
        *_kill_switch(template, made, parameters),
    ]
    return made, wrong


def _missing_references(made):
    existing = {*made["Parameters"], *made["Resources"]}
    for name in {name for name in references(made) if not name.startswith("AWS::")} - existing:
        yield f"`{name}` is referred to and does not exist"


def _empty_references(template, made, parameters):
    inputs = optional_inputs(template)
    used = set(references(made["Resources"]))
    for name in (*OPTIONAL, *inputs):
        if name in used and not parameters.get(name):
            yield f"`{name}` is referred to and is empty"
        if name in inputs and name not in used and parameters.get(name):
            yield f"no resource uses the input `{name}`"


def _is_on(template, parameters, switch):
    """Returns whether a mode is on: its own switch is, and the kill switch is."""
    own = parameters.get(switch, template["Parameters"][switch]["Default"]) == "true"
    return own and parameters.get("EnableRunner", "true") == "true"


def _trust(made, role):
    [trust] = properties(made, role)["AssumeRolePolicyDocument"]["Statement"]
    return trust


def _role_switches(template, made, parameters):
    """A role is trusted, and has what every mode needs, while its switch is on; only the runner takes it."""
    with_base = [role["Ref"] for role in properties(made, "Base")["Roles"]]
    for switch, role in switches(template).items():
        on, trust = _is_on(template, parameters, switch), _trust(made, role)
        if trust["Effect"] != ("Allow" if on else "Deny"):
            yield f"{role}: {switch} is {on}, and the effect of its trust is {trust['Effect']}"
        if trust["Principal"] != OWN_ACCOUNT or trust["Condition"].get("ArnEquals") != RUNNER_ONLY:
            yield f"{role}: its trust names another principal than the runner"
        if trust["Condition"] not in (
            {"ArnEquals": RUNNER_ONLY},
            {"ArnEquals": RUNNER_ONLY, "DateLessThan": BEFORE_THE_END},
        ):
            yield f"{role}: its trust has another condition"
        if on != (role in with_base):
            yield f"{role}: {switch} is {on}, and the policy Base says otherwise"


def _limits(template, made, parameters):
    """The policy Limits is on the runner and on every mode, and denies everything in the right cases alone."""
    roles = switches(template)
    limits = properties(made, "Limits")
    if limits["Roles"] != [{"Ref": role} for role in ("RunnerRole", *roles.values())]:
        yield "Limits is not attached to the runner and to every mode"

    def arns(names):
        return [{"Fn::GetAtt": [name, "Arn"]} for name in names]

    off = [role for switch, role in roles.items() if not _is_on(template, parameters, switch)]
    break_glass = [role for role in roles.values() if "DateLessThan" in _trust(made, role)["Condition"]]
    expected = [
        {"DateLessThan": {"aws:TokenIssueTime": {"Ref": "RevokeSessionsBefore"}}},
        *({"ArnEquals": {"aws:PrincipalArn": arn}} for arn in arns(off)),
    ]
    if parameters.get("EnableRunner", "true") == "false":
        expected.append({"ArnEquals": RUNNER_ONLY})
    if break_glass:
        over = {"aws:PrincipalArn": arns(break_glass)}
        expected.append({"ArnEquals": over, "DateGreaterThanEquals": BEFORE_THE_END})
    narrowed = READS_OF_AUDIT_ALONE if parameters.get("EnableRunner", "true") == "false" else ()
    for statement in narrowed:
        if statement not in limits["PolicyDocument"]["Statement"]:
            yield f"Limits lacks {statement['Sid']}"
    statements = [each for each in limits["PolicyDocument"]["Statement"] if each not in narrowed]
    if any((each["Effect"], each.get("Resource"), *_denied(each)) != ("Deny", "*", "*", []) for each in statements):
        yield "Limits has a statement that does not deny everything"
    found = [each["Condition"] for each in statements]
    for condition in expected:
        if condition not in found:
            yield f"Limits does not deny everything when {condition}"
    if len(found) != len(expected):
        yield f"Limits has {len(found)} statements, not {len(expected)}"


def _denied(statement):
    """Returns what a statement of Limits denies, and what it leaves beyond the runner's last words."""
    if statement["Condition"] != {"ArnEquals": RUNNER_ONLY} or "Action" in statement:
        return statement.get("Action"), statement.get("NotAction", [])
    return "*", [action for action in statement.get("NotAction", []) if action not in LAST_WORDS]


def _locks(made, lock):
    """The runner may lock its records exactly when the customer wants them locked."""
    statements = properties(made, "RunnerRole")["Policies"][0]["PolicyDocument"]["Statement"]
    found = [each["Effect"] for each in statements if each["Action"] == "s3:PutObjectRetention"]
    if found != ["Deny" if lock == "none" else "Allow"]:
        yield f"AuditLock is {lock}, and locking a record is {found}"


def _roles_of_the_runner(template, made):
    """The runner may take the roles of the modes, and no others."""
    prefix = "arn:${AWS::Partition}:iam::${AWS::AccountId}:role/"
    names = [properties(made, role)["RoleName"] for role in switches(template).values()]
    statements = [
        statement
        for policy in properties(made, "RunnerRole")["Policies"]
        for statement in policy["PolicyDocument"]["Statement"]
        if any(action.startswith("sts:") for action in as_list(statement["Action"]))
    ]
    taken = [(each["Action"], each["Resource"]) for each in statements]
    if taken != [("sts:AssumeRole", [{"Fn::Sub": f"{prefix}{name}"} for name in names])]:
        yield "the runner takes other roles than those of the modes"


def _boundary(template, made, parameters):
    """The customer's boundary, if there is one, takes the place of Boundary, which then only denies and is attached."""
    own = bool(parameters.get("PermissionsBoundaryArn"))
    ours = {"Ref": "Boundary"}
    expected = {"Ref": "PermissionsBoundaryArn"} if own else ours
    for role in switches(template).values():
        have = properties(made, role)
        if have.get("PermissionsBoundary") != expected:
            yield f"{role}: its boundary is not {expected['Ref']}"
        if own != (ours in have["ManagedPolicyArns"]):
            yield f"{role}: the policy Boundary is attached without the customer's boundary, or missing beside it"
    statements = {each["Sid"]: each for each in properties(made, "Boundary")["PolicyDocument"]["Statement"]}
    not_denied = [sid for sid, each in statements.items() if each["Effect"] != "Deny"]
    if not_denied != ([] if own else ["WhatPoliciesSay"]):
        yield f"Boundary allows {not_denied}"
    revoked = statements["SessionsOfBefore"]["Condition"]
    if revoked != {"DateLessThan": {"aws:TokenIssueTime": {"Ref": "RevokeSessionsBefore"}}}:
        yield "the app's roles are not revoked"
    off = parameters.get("EnableAppRoles", "true") == "false"
    if off != ("AppRolesAreOff" in statements):
        yield "the app's roles ignore EnableAppRoles"
    if off == ("StateIsTheModes" in statements):
        yield "the app's roles reach states, or are denied these only"
    for sid in ("AppRolesAreOff", "StateIsTheModes"):
        if sid in statements and not _is_about_the_app(statements[sid], sid == "AppRolesAreOff"):
            yield f"{sid} is about other roles than the app's"
    required = statements["RolesCarryThis"]["Condition"]["StringNotEquals"]["iam:PermissionsBoundary"]
    is_read = parameters.get("PermissionsBoundaryHasOurs") == "true"
    if own and required != (expected if is_read else "none"):
        yield "the app makes roles under the customer's boundary before somebody has read it, or never"
    if (not own and "--boundary" not in str(required)) or made["Outputs"]["BoundaryArn"]["Value"] != expected:
        yield "the roles that the app makes need another boundary"
    if properties(made, "RunnerRole").get("PermissionsBoundary") != (expected if own else None):
        yield "the runner's role has another boundary"


def _is_about_the_app(statement, is_everything):
    """Returns whether a statement denies (everything) to every principal that has a role outside of the stack."""
    [(operator, test)] = statement["Condition"].items()
    arn = str(test.get("aws:PrincipalArn", ""))
    denied = (statement["Effect"], statement["Action"], statement["Resource"])
    is_right = operator == "ArnNotLike" and NOT_OF_THE_STACK in arn and arn.endswith("--*")
    return is_right and (denied == ("Deny", "*", "*") or not is_everything)


def _network(made, parameters):
    types = [resource["Type"] for resource in made["Resources"].values()]
    apps = [name for name in made["Resources"] if name in OF_APPS_NETWORK or name.startswith(SUBNETS_OF_APPS)]
    has_network = "PublicSubnets" in made["Outputs"]
    if parameters.get("RunnerPrincipal"):
        if has_network and not parameters.get("VpcId"):
            types = [type_ for type_ in types if not type_.startswith("AWS::EC2::")]
        if machines := {type_ for type_ in types if type_.startswith(MACHINE_TYPES)}:
            yield f"the runner is on another machine, and the stack makes {sorted(machines)}"
        return
    new, private = not parameters.get("VpcId"), parameters.get("PrivateEndpoints") == "true"
    own_subnet, routes = new or bool(parameters.get("SubnetCidr")), bool(parameters.get("RouteTableIds"))
    own_routes = new or (own_subnet and not routes)
    s3_endpoint = private and (own_routes or routes)
    expected = {
        "VPC": int(new),
        **dict.fromkeys(("Subnet", "SubnetRouteTableAssociation"), int(own_subnet)),
        "RouteTable": int(own_routes),
        **dict.fromkeys(("InternetGateway", "Route"), int(new and not private)),
        "VPCEndpoint": 10 * private + s3_endpoint,
        "SecurityGroup": 1 + private,
    }
    if has_network and new:
        zones = sum(re.fullmatch(r"PublicSubnet\d", name) is not None for name in apps)
        more = {"Subnet": 2 * zones, "SubnetRouteTableAssociation": 2 * zones, "RouteTable": 2}
        more |= dict.fromkeys(("NatGateway", "EIP"), int(not private)) | {"Route": 0 if private else 2}
        expected |= {kind: expected.get(kind, 0) + number for kind, number in more.items()}
    elif apps:
        yield f"an app that gets no network has {apps}"
    answered = parameters.get("DnsFirewall") == "true" and private and new
    if names := [type_ for type_ in types if type_.startswith("AWS::Route53Resolver::")]:
        yield from _names(made, answered)
    if bool(names) != answered:
        yield f"the resolver of the network has {names}"
    if s3_endpoint:
        yield from _packages(made, parameters.get("InstallPackages", "true") == "true")
    count = {kind: types.count(f"AWS::EC2::{kind}") for kind in expected}
    public = properties(made, "Machine")["LaunchTemplateData"]["NetworkInterfaces"][0].get("AssociatePublicIpAddress")
    if public != (not private if new else None):
        yield f"AssociatePublicIpAddress of the machine is {public}"
    if own_subnet:
        yield from _own_subnet(made, new, own_routes)
    if count != expected:
        yield f"the network is {count}, not {expected}"
    if types.count("AWS::AutoScaling::AutoScalingGroup") != 1 or types.count("AWS::EC2::LaunchTemplate") != 1:
        yield "there is not exactly one machine"


def _names(made, wanted):
    """The resolver of the stack's own network answers for names of AWS, and for no other."""
    rules = properties(made, "NameRules")["FirewallRules"]
    lists = [properties(made, rule["FirewallDomainListId"]["Ref"])["Domains"] for rule in rules]
    found = [(rule["Action"], names) for rule, names in zip(rules, lists, strict=True)]
    if found != [("ALLOW", [{"Fn::Sub": "*.${AWS::URLSuffix}"}]), ("BLOCK", ["*"])]:
        yield f"the resolver answers by {found}"
    if not wanted or properties(made, "NameRulesOfVpc")["VpcId"] != {"Ref": "Vpc"}:
        yield "the rules for names are for another network"


def _packages(made, wanted):
    """The S3 endpoint leads to the packages of Amazon Linux only where the machine may install them."""
    *_, reads = properties(made, "S3Endpoint")["PolicyDocument"]["Statement"]
    if any(PACKAGES in str(resource) for resource in reads["Resource"]) != wanted:
        yield f"InstallPackages is {wanted}, and the S3 endpoint's policy says otherwise"


def _downloads(made, url):
    """The S3 endpoint leads to an object of the vendor's only where the machine downloads the runner."""
    if "S3Endpoint" not in made["Resources"]:
        return
    *_, reads = properties(made, "S3Endpoint")["PolicyDocument"]["Statement"]
    if any("RunnerUrl" in str(resource) for resource in reads["Resource"]) != bool(url):
        yield f"the URL of the runner is `{url}`, and the S3 endpoint's policy says otherwise"


def _own_subnet(made, new, own_routes):
    """The runner's own subnet is where its machine is, of the right network, and has the right routes."""
    subnet, routes = properties(made, "Subnet"), properties(made, "SubnetRoutes")["RouteTableId"]
    if properties(made, "RunnerGroup")["VPCZoneIdentifier"] != [{"Ref": "Subnet"}]:
        yield "the machine is not in the subnet that the stack makes for it"
    whole = {"Ref": "VpcCidr"}
    if "PublicSubnets" in made["Outputs"]:
        whole = {"Fn::Select": [6, {"Fn::Cidr": [whole, 7, 13]}]}
    expected = ({"Ref": "Vpc"}, whole) if new else ({"Ref": "VpcId"}, {"Ref": "SubnetCidr"})
    if (subnet["VpcId"], subnet["CidrBlock"]) != expected:
        yield f"the subnet is {subnet['CidrBlock']} of {subnet['VpcId']}"
    if (routes == {"Ref": "RouteTable"}) != own_routes:
        yield f"the routes of the subnet are {routes}"


def _kill_switch(template, made, parameters):
    """EnableRunner changes what `Limits` denies, and the group's capacity or the trust of a runner elsewhere."""
    off = parameters.get("EnableRunner", "true") == "false"
    other = decide(template, {**parameters, "EnableRunner": "true" if off else "false"})
    elsewhere = bool(parameters.get("RunnerPrincipal"))
    changed = set(_differences(made, other))
    on = {**parameters, "EnableRunner": "true"}
    modes = {role for switch, role in switches(template).items() if _is_on(template, on, switch)}
    expected = {DENIED, EFFECT.format("RunnerRole") if elsewhere else CAPACITY}
    expected |= {EFFECT.format(role) for role in modes} | ({BASE} if modes else set())
    if {path for path in changed if not path.startswith(BASE)} | ({BASE} if modes else set()) != expected:
        yield f"the kill switch changes {sorted(changed)}"
    if elsewhere:
        trust = _trust(made, "RunnerRole")
        if (trust["Effect"], trust["Principal"]) != ("Deny" if off else "Allow", {"AWS": {"Ref": "RunnerPrincipal"}}):
            yield "the trust of the runner's role names another principal, or ignores the kill switch"
    elif properties(made, "RunnerGroup")["DesiredCapacity"] != ("0" if off else "1"):
        yield "the group's capacity ignores the kill switch"


def _differences(one, other, path=""):
    """Yields the paths where two trees are not the same."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in {**one, **other}:
            yield from _differences(one.get(key), other.get(key), f"{path}/{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for at, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from _differences(left, right, f"{path}/{at}")
    elif one != other:
        yield path
