"""Puts one fault after another into a template's switches and shows that a combination notices it."""

import copy
import itertools

import invariants
from templates import ACCOUNT


def missed(template, networks):
    """Returns the faults that no combination notices, and how many there were."""
    chosen = _chosen(template, networks)
    all_ = list(faults(template))
    return [name for name, mutant in all_ if not any(_notices(mutant, parameters) for parameters in chosen)], len(all_)


def _notices(mutant, parameters):
    try:
        return bool(invariants.broken(mutant, parameters)[1])
    except (KeyError, TypeError, ValueError):
        # It is so broken that it cannot be made.
        return True


def _chosen(template, networks):
    """Returns few combinations in which every condition holds and does not hold, each role's switch by itself too."""
    roles = list(invariants.switches(template))
    asked = [name.removeprefix("Has") for name in template["Conditions"] if name.startswith("HasInput")]
    own = f"arn:aws:iam::{ACCOUNT}:policy/everybody"
    chosen = []
    for at, (runner, boundary, network) in enumerate(itertools.product(("true", "false"), ("", own), networks)):
        on = {
            role: "true" if (at + place) % len(roles) < len(roles) // 2 else "false" for place, role in enumerate(roles)
        }
        answers = dict.fromkeys(asked, "" if at % 2 else "an answer")
        chosen.append({**on, **answers, "EnableRunner": runner, "PermissionsBoundaryArn": boundary, **network})
    return chosen


def faults(template):
    """Yields each fault by name, with the template that has it."""
    for name, resource in template["Resources"].items():
        if "Condition" in resource:
            yield (
                f"{name} is there whatever is chosen",
                _changed(template, ("Resources", name), lambda one: one.pop("Condition")),
            )
            yield f"{name} is never there", _gone(template, name)
    for name, condition in template["Conditions"].items():
        yield f"{name} is turned", _put(template, ("Conditions", name), {"Fn::Not": [condition]})
    for path, (condition, holds, otherwise) in _choices(template, ()):
        at = "/".join(map(str, path))
        yield f"{at} is always the first", _put(template, path, holds)
        yield f"{at} is always the second", _put(template, path, otherwise)
        yield f"{at} is turned", _put(template, path, {"Fn::If": [condition, otherwise, holds]})
    limits = template["Resources"]["Limits"]["Properties"]["PolicyDocument"]["Statement"]
    for at in range(len(limits)):
        yield (
            f"Limits does not say its statement {at}",
            _changed(
                template,
                ("Resources", "Limits", "Properties", "PolicyDocument", "Statement"),
                lambda list_, at=at: list_.pop(at),
            ),
        )
    yield "an output of what may not be there", _put(template, ("Outputs", "More"), {"Value": {"Ref": "Vpc"}})
    yield (
        "a name in a text that nothing has",
        _put(template, ("Outputs", "More"), {"Value": {"Fn::Sub": "${Nothing.Arn}"}}),
    )
    yield (
        "the kill switch does more",
        _put(template, ("Resources", "RunnerGroup", "Properties", "MaxSize"), {"Fn::If": ["RunnerEnabled", "1", "0"]}),
    )
    yield (
        "a machine without a condition",
        _put(template, ("Resources", "More"), {"Type": "AWS::EC2::Instance", "Properties": {}}),
    )
    yield "a mode without a switch", _put(template, ("Resources", "MoreRole"), template["Resources"]["ProvisionRole"])
    for role in invariants.switches(template).values():
        trust = ("Resources", role, "Properties", "AssumeRolePolicyDocument", "Statement", 0)
        yield (
            f"others than the runner may take {role}",
            _changed(template, trust, lambda one: one["Condition"].pop("ArnEquals")),
        )


def _choices(node, path):
    if isinstance(node, dict):
        if list(node) == ["Fn::If"]:
            yield path, node["Fn::If"]
        for key, value in node.items():
            yield from _choices(value, (*path, key))
    elif isinstance(node, list):
        for at, value in enumerate(node):
            yield from _choices(value, (*path, at))


def _changed(template, path, change):
    mutant = copy.deepcopy(template)
    node = mutant
    for key in path:
        node = node[key]
    change(node)
    return mutant


def _put(template, path, value):
    return _changed(template, path[:-1], lambda parent: parent.__setitem__(path[-1], copy.deepcopy(value)))


def _gone(template, name):
    return _changed(template, ("Resources",), lambda resources: resources.pop(name))
