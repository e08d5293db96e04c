"""A template as CloudFormation makes it of given parameters: every condition decided, references left as they are."""

import re
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / folder) for folder in ("iam", "infra")]
import templates  # noqa: E402
from world import Env  # noqa: E402

NOTHING = {"Ref": "AWS::NoValue"}


def flat(template, parameters):
    """Returns the resources, outputs and parameters that are left, without `Conditions` and `Fn::If`."""
    env = Env(template, templates.ACCOUNT, {"AWS::StackName": "freehold-globex", **parameters})
    taken = {name: env.holds(name) for name in template["Conditions"]}
    kept = {
        section: _without(content, taken)
        for section, content in template.items()
        if section not in ("Conditions", "Metadata")
    }
    for section in ("Resources", "Outputs"):
        there = ((name, thing) for name, thing in template[section].items() if taken.get(thing.get("Condition"), True))
        kept[section] = {
            name: {key: kept[section][name][key] for key in thing if key != "Condition"} for name, thing in there
        }
    return kept


def _without(node, taken):
    """Takes one side of every `Fn::If`, and leaves out what is no value."""
    if isinstance(node, list):
        return [side for item in node if (side := _without(item, taken)) != NOTHING]
    if not isinstance(node, dict):
        return node
    if list(node) == ["Fn::If"]:
        condition, holds, otherwise = node["Fn::If"]
        return _without(holds if taken[condition] else otherwise, taken)
    return {key: side for key, value in node.items() if (side := _without(value, taken)) != NOTHING}


def references(node):
    """Yields every name that `Ref`, `Fn::GetAtt`, `Fn::Sub` or `DependsOn` refers to."""
    if isinstance(node, list):
        for item in node:
            yield from references(item)
    elif isinstance(node, dict):
        for key, value in node.items():
            if key == "Ref":
                yield value
            elif key == "Fn::GetAtt":
                yield value[0]
            elif key == "Fn::Sub":
                text, given = (value, {}) if isinstance(value, str) else value
                yield from {name.split(".")[0] for name in re.findall(r"\$\{([^!}][^}]*)\}", text)} - set(given)
                yield from references(given)
            elif key == "DependsOn":
                yield from templates.as_list(value)
            else:
                yield from references(value)


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
