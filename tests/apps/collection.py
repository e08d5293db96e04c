"""A folder of public apps: `appconfigs` with a config each, and `sources` with the repositories that they name."""

import collections
import os
from pathlib import Path

import tomllib

from programs import ROOT

FOLDER = Path(os.environ.get("FREEHOLD_SHARED") or ROOT / "../shared")
STEPS = {"apps.provisioned": "provision", "apps.changed": "change an input", "apps.torn_down": "tear down"}


def of_aws(folder, sources):
    """Returns the directories of the apps whose stack is one of CloudFormation, smallest first.

    A config comes with the folder of its repository, where that has all files of the config.
    """
    configs = [file.parent for file in sorted((folder / "appconfigs").glob("*/stack.toml")) if _is_aws(file)]
    whole = {file.parent.name: file.parent for file in sorted(sources.glob("*/*/*/stack.toml"))}
    return sorted((_with_sources(config, whole.get(config.name)).resolve() for config in configs), key=_size)


def clouds(folder):
    """Returns how many configs of the folder there are for each type of stack."""
    files = (folder / "appconfigs").glob("*/stack.toml")
    return collections.Counter(tomllib.loads(file.read_text()).get("type", "none") for file in files)


def _with_sources(config, whole):
    has_all = whole and all((whole / file.relative_to(config)).exists() for file in config.rglob("*"))
    return whole if has_all else config


def figures(results):
    """Returns how many of the apps got through each step, and how many of their components and actions were real."""
    reached = {name: (sum(_ended(result, step) for result in results), len(results)) for name, step in STEPS.items()}
    for name, count in (("apps.components", components), ("apps.actions", actions)):
        real, whole = zip(*map(count, results), strict=True) if results else ((), ())
        reached[name] = sum(real), sum(whole)
    return [
        {"name": name, "value": count, "attempted": of, "passed": count, "seed": 0}
        for name, (count, of) in reached.items()
    ]


def components(result):
    """Returns how many components were deployed as they are, of how many that the app has."""
    out = {name for kind, name, *_ in result["left_out"] if kind == "component"}
    replaced = {name for name in [*result["stand_ins"], *result["changed"]] if name != "sandbox"} - out
    return result["whole"]["component"] - len(out) - len(replaced), result["whole"]["component"]


def actions(result):
    """Returns how many actions succeeded, of how many that the app has."""
    return len(result["ran_actions"]), result["whole"]["action"]


def _ended(result, step):
    return any(one["step"] == step for one in result["steps"])


def _is_aws(file):
    return tomllib.loads(file.read_text()).get("type") == "aws-cloudformation"


def _size(directory):
    return len(list(directory.glob("components/*.toml"))), directory.name
