"""A folder of public apps: `appconfigs` with a config each, and `sources` with the repositories that they name."""

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


def _with_sources(config, whole):
    has_all = whole and all((whole / file.relative_to(config)).exists() for file in config.rglob("*"))
    return whole if has_all else config


def figures(results):
    """Returns how many of the apps got through each step."""
    reached = {name: sum(_ended(result, step) for result in results) for name, step in STEPS.items()}
    return [
        {"name": name, "value": count, "attempted": len(results), "passed": count, "seed": 0}
        for name, count in reached.items()
    ]


def _ended(result, step):
    return any(one["step"] == step for one in result["steps"])


def _is_aws(file):
    return tomllib.loads(file.read_text()).get("type") == "aws-cloudformation"


def _size(directory):
    return len(list(directory.glob("components/*.toml"))), directory.name
