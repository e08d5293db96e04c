"""What is true of an install stack whatever its switches say; `broken` lists what is not."""

from intrinsics import decide_conditions, references
from templates import ACCOUNT, as_list, of_type, properties

MACHINES = ("AWS::EC2::", "AWS::AutoScaling::")
RUNNER_ROLE = {"Fn::GetAtt": ["RunnerRole", "Arn"]}
# What the kill switch changes, on EC2 and elsewhere.
CAPACITY = ["/Resources/RunnerGroup/Properties/DesiredCapacity"]
EFFECT = ["/Resources/RunnerRole/Properties/AssumeRolePolicyDocument/Statement/0/Effect"]


WHERE = ("VpcId", "SubnetIds", "RouteTableIds", "PermissionsBoundaryArn", "RunnerPrincipal")


def switches(template):
    """Returns the roles that have a switch, by its parameter."""
    return {
        name: f"{name.removeprefix('Enable')}Role"
        for name in template["Parameters"]
        if name.startswith("Enable") and name != "EnableRunner"
    }


def broken(template, parameters):
    """Returns the flat template, and what is wrong with it."""
    made = decide_conditions(template, "freehold-globex", ACCOUNT, parameters)
    wrong = [
        *_dangling(made),
        *_empty(template, made, parameters),
        *_modes(template, made, parameters),
        *_boundary(template, made, parameters),
        *_network(made, parameters),
        *_kill_switch(template, made, parameters),
    ]
    return made, wrong


def _dangling(made):
    there = {*made["Parameters"], *made["Resources"]}
    for name in {name for name in references(made) if not name.startswith("AWS::")} - there:
        yield f"`{name}` is referred to and is not there"


def _empty(template, made, parameters):
    """What is left empty stands for something else, and is nothing itself."""
    asked = [name.removeprefix("Has") for name in template["Conditions"] if name.startswith("HasInput")]
    used = set(references(made["Resources"]))
    for name in (*WHERE, *asked):
        if name in used and not parameters.get(name):
            yield f"`{name}` is referred to and is empty"
        if name in asked and name not in used and parameters.get(name):
            yield f"the answer `{name}` goes nowhere"


def _modes(template, made, parameters):
    roles = switches(template)
    if set(of_type(made, "AWS::IAM::Role")) != {"RunnerRole", *roles.values()}:
        yield "a role has no switch, or a switch no role"
        return
    limits, base = properties(made, "Limits"), properties(made, "Base")
    if limits["Roles"] != [{"Ref": role} for role in roles.values()]:
        yield "Limits does not hold every mode"
    given = [role["Ref"] for role in base["Roles"]]
    for switch, role in roles.items():
        on = parameters.get(switch, template["Parameters"][switch]["Default"]) == "true"
        [trust] = properties(made, role)["AssumeRolePolicyDocument"]["Statement"]
        if trust["Effect"] != ("Allow" if on else "Deny"):
            yield f"{role}: {switch} is {on} and its trust says {trust['Effect']}"
        if trust["Condition"]["ArnEquals"] != {"aws:PrincipalArn": RUNNER_ROLE}:
            yield f"{role}: others than the runner may take it"
        if on == _denied(limits, role):
            yield f"{role}: {switch} is {on} and so is that Limits denies it everything"
        if on != (role in given):
            yield f"{role}: {switch} is {on} and so is not that Base is attached"
        if "DateLessThan" in trust["Condition"] and not _ends(limits, role):
            yield f"{role}: its sessions do not end with break-glass"
    if not any(
        _is_everything(one) and list(one["Condition"]) == ["DateLessThan"]
        for one in limits["PolicyDocument"]["Statement"]
    ):
        yield "sessions of before cannot be revoked"


def _denied(limits, role):
    """Returns whether a role may do nothing at all."""
    return any(
        _is_everything(one) and one["Condition"] == {"ArnEquals": {"aws:PrincipalArn": {"Fn::GetAtt": [role, "Arn"]}}}
        for one in limits["PolicyDocument"]["Statement"]
    )


def _ends(limits, role):
    return any(
        _is_everything(one)
        and one["Condition"].get("DateGreaterThanEquals") == {"aws:CurrentTime": {"Ref": "BreakGlassUntil"}}
        and {"Fn::GetAtt": [role, "Arn"]} in as_list(one["Condition"]["ArnEquals"]["aws:PrincipalArn"])
        for one in limits["PolicyDocument"]["Statement"]
    )


def _is_everything(statement):
    return (statement["Effect"], statement["Action"], statement["Resource"]) == ("Deny", "*", "*")


def _boundary(template, made, parameters):
    own = bool(parameters.get("PermissionsBoundaryArn"))
    ours = {"Ref": "Boundary"}
    bound = {"Ref": "PermissionsBoundaryArn"} if own else ours
    for role in switches(template).values():
        says = properties(made, role)
        if says.get("PermissionsBoundary") != bound:
            yield f"{role}: its boundary is not {bound['Ref']}"
        if own != (ours in says["ManagedPolicyArns"]):
            yield f"{role}: the policy Boundary is attached, or is not, in the wrong case"
    says = {one["Sid"]: one for one in properties(made, "Boundary")["PolicyDocument"]["Statement"]}
    allowed = [name for name, one in says.items() if one["Effect"] == "Allow"]
    if allowed != ([] if own else ["WhatTheModesPoliciesSay"]):
        yield f"Boundary allows {allowed}"
    carried = says["RolesCarryThisBoundary"]["Condition"]["StringNotEquals"]["iam:PermissionsBoundary"]
    if (carried == bound) != own or made["Outputs"]["BoundaryArn"]["Value"] != bound:
        yield "what the app makes has to carry another boundary"
    if properties(made, "RunnerRole").get("PermissionsBoundary") != (bound if own else None):
        yield "the runner's role has another boundary"


def _network(made, parameters):
    kinds = [resource["Type"] for resource in made["Resources"].values()]
    machines = [kind for kind in kinds if kind.startswith(MACHINES)]
    if parameters.get("RunnerPrincipal"):
        if machines:
            yield f"the runner is elsewhere, and there are {sorted(set(machines))}"
        return
    new, private = not parameters.get("VpcId"), parameters.get("PrivateEndpoints") == "true"
    count = {
        kind: kinds.count(f"AWS::EC2::{kind}")
        for kind in (
            "VPC",
            "Subnet",
            "RouteTable",
            "InternetGateway",
            "Route",
            "SubnetRouteTableAssociation",
            "VPCEndpoint",
            "SecurityGroup",
        )
    }
    through = 1 if private and (new or parameters.get("RouteTableIds")) else 0
    wanted = {
        **dict.fromkeys(("VPC", "Subnet", "RouteTable", "SubnetRouteTableAssociation"), int(new)),
        **dict.fromkeys(("InternetGateway", "Route"), int(new and not private)),
        "VPCEndpoint": 9 * private + through,
        "SecurityGroup": 1 + private,
    }
    public = properties(made, "Machine")["LaunchTemplateData"]["NetworkInterfaces"][0].get("AssociatePublicIpAddress")
    if public != (not private if new else None):
        yield f"whether the machine has a public address is {public}"
    if count != wanted:
        yield f"the network is {count}, not {wanted}"
    if kinds.count("AWS::AutoScaling::AutoScalingGroup") != 1 or kinds.count("AWS::EC2::LaunchTemplate") != 1:
        yield "there is not one machine"


def _kill_switch(template, made, parameters):
    off = parameters.get("EnableRunner", "true") == "false"
    other = decide_conditions(
        template, "freehold-globex", ACCOUNT, {**parameters, "EnableRunner": "true" if off else "false"}
    )
    changed = list(differences(made, other))
    if changed != (EFFECT if parameters.get("RunnerPrincipal") else CAPACITY):
        yield f"the kill switch changes {changed}"
    if not parameters.get("RunnerPrincipal") and properties(made, "RunnerGroup")["DesiredCapacity"] != (
        "0" if off else "1"
    ):
        yield "the kill switch is the wrong way round"
    if parameters.get("RunnerPrincipal"):
        [trust] = properties(made, "RunnerRole")["AssumeRolePolicyDocument"]["Statement"]
        if (trust["Effect"], trust["Principal"]) != ("Deny" if off else "Allow", {"AWS": {"Ref": "RunnerPrincipal"}}):
            yield "the runner's role is taken by others than RunnerPrincipal, or while the runner is off"


def differences(one, other, path=""):
    """Yields where two trees are not the same."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in {**one, **other}:
            yield from differences(one.get(key), other.get(key), f"{path}/{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for at, (left, right) in enumerate(zip(one, other)):
            yield from differences(left, right, f"{path}/{at}")
    elif one != other:
        yield path
