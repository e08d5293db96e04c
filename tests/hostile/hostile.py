"""Offers templates that hand an account over to both checks of install stacks; each has to refuse every one of them.

Every type of CloudFormation's specification in any region, and a few that no specification has, is added to the golden
stack under a name that it could have, and takes the place of the type of one of its resources. Then leaves, keys and
items of the golden stack are changed at random. An app writes the policies of its roles, so there only forms that no
app can write are offered (`policy_forms.py`).
`verify-template` judges each template alone. Guard, which takes longer, judges templates with many such resources and
has to name each one, the policies, and a sample of the changes.
"""

import argparse
import copy
import json
import os
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cfnlint.helpers import REGIONS
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

import guard
import policy_forms
import templates

# Types that no specification has: one that AWS adds later, and those of macros, modules and registries of others.
UNKNOWN = ("AWS::Tomorrow::Service", "Custom::Anything", "Example::Shop::Site", "Example::Shop::Site::MODULE")
PROGRAM = Path(os.environ.get("CARGO_TARGET_DIR") or templates.ROOT / "target") / "debug" / "rendered-stacks"
# Names that look like those of the stack's own resources.
NAMES = ("{}", "{}Role", "Secret{}", "Runner{}", "{}Endpoint", "Custom{}", "SecretInput{}", "BreakGlass{}")
# How many resources one template for Guard holds.
BATCH = 60


def main():
    args = _arguments()
    command = ["cargo", "build", "--quiet", "--workspace", "--bin", "rendered-stacks"]
    subprocess.run(command, cwd=templates.ROOT, check=True)
    draw = random.Random(args.seed)
    types = sorted(
        {*UNKNOWN, *(type_ for region in REGIONS for type_ in PROVIDER_SCHEMA_MANAGER.get_resource_types(region))}
    )
    types = types if args.types is None else sorted(draw.sample(types, args.types))
    golden = templates.install_with_inputs()
    changes = [changed(golden, draw) for _ in range(args.changes)]
    policies = policy_forms.hostile(golden)
    offered = {**additions(golden, types, draw), **replacements(golden, types, draw), **dict(changes), **policies}
    missed = unnoticed(offered)
    guarded, passed = guard_misses(golden, types, dict(changes[: args.guarded]))
    for name in [*missed, *(f"Guard: {name}" for name in passed)][:20]:
        print(f"nothing finds: {name}", file=sys.stderr)
    report("templates.hostile_refused", len(offered), len(missed), args.seed)
    report("templates.refused_by_guard", guarded, len(passed), args.seed)
    return 1 if missed or passed else 0


def report(name, attempted, missed, seed):
    passed = attempted - missed
    figure = {"name": name, "value": passed, "attempted": attempted, "passed": passed, "seed": seed}
    print(json.dumps(figure), flush=True)


def additions(golden, types, draw):
    """Returns a template for each type: with one more resource, without properties, so that only its type counts."""
    offered = {}
    for at, type_ in enumerate(types):
        template = dict(golden)
        name = draw.choice(NAMES).format(type_.split("::")[-1])
        name = name if name not in golden["Resources"] else f"{name}{at}"
        template["Resources"] = {**golden["Resources"], name: {"Type": type_}}
        offered[f"{name} of type {type_}"] = template
    return offered


def replacements(golden, types, draw):
    """Returns a template for each type: one resource has it in place of its own."""
    offered = {}
    for type_ in types:
        others = [name for name, resource in golden["Resources"].items() if resource["Type"] != type_]
        name = draw.choice(others)
        template = dict(golden)
        template["Resources"] = {**golden["Resources"], name: {**golden["Resources"][name], "Type": type_}}
        offered[f"{name} is a {type_}"] = template
    return offered


def changed(golden, draw):
    """Returns a template with one change at random, and where it is."""
    place = draw.choice([place for place in places(golden) if not is_of_app(place)])
    template = copy.deepcopy(golden)
    parent = template
    for key in place[:-1]:
        parent = parent[key]
    value = parent[place[-1]]
    kind = draw.choice(("remove", "more"))
    if kind == "remove":
        del parent[place[-1]]
    elif isinstance(value, dict):
        value[f"More{draw.randrange(1000)}"] = draw.choice(("x", {"Ref": "AWS::AccountId"}))
    elif isinstance(value, list):
        value.append(copy.deepcopy(draw.choice([*value, "x"])))
    elif isinstance(value, str):
        parent[place[-1]] = draw.choice((value + "x", value[:-1] + "?", value * 2 + "y", "x", ["x"], {"Ref": "VpcId"}))
    else:
        parent[place[-1]] = draw.choice((not value, str(value), 7, [value]))
    return f"{kind} at {'/'.join(map(str, place))} ({draw.randrange(10**6)})", template


def places(node, place=()):
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield (*place, key)
        yield from places(value, (*place, key))


def is_of_app(place):
    """Returns whether an app fills in what stands here: its words, its defaults, its policies, and the vendor's key."""
    words = [str(key) for key in place]
    named = any(word.startswith(("Input", "EnableBreakGlass", "EnableCustom")) for word in words)
    in_groups = "ParameterGroups" in words
    of_secret = any(word.startswith("AppSecret") for word in words) and words[0] in ("Metadata", "Parameters")
    words_of_secret = of_secret and words[-1] in ("default", "Description")
    secret = any(word.startswith(("SecretInput", "SecretAppSecret")) for word in words) and words[-1] == "Description"
    policies = "Policies" in words and "RunnerRole" not in words
    managed = "ManagedPolicyArns" in words
    key = "TenantKey" in words
    named = (named and words[0] in ("Metadata", "Parameters")) or words_of_secret
    return named or in_groups or secret or policies or managed or key


def unnoticed(offered):
    """Returns the names of the templates in which `verify-template` finds nothing."""
    cores = os.cpu_count() or 1

    def judge(names):
        text = "".join(json.dumps(offered[name]) + "\n" for name in names)
        done = subprocess.run([PROGRAM, "verify"], input=text, capture_output=True, text=True, check=True)
        lines = done.stdout.splitlines()
        assert len(lines) == len(names), f"{len(lines)} answers for {len(names)} templates: {done.stderr}"
        return [name for name, line in zip(names, lines, strict=True) if not line.strip()]

    names = list(offered)
    with ThreadPoolExecutor(cores) as pool:
        return [name for part in pool.map(judge, [names[at::cores] for at in range(cores)]) for name in part]


def guard_misses(golden, types, changes):
    """Returns how many resources and changes Guard was offered, and the names of those that it did not find."""
    offered, expected = {}, {}
    resources = golden["Resources"]
    for at in range(0, len(types), BATCH):
        more = {f"More{number}Role": {"Type": type_} for number, type_ in enumerate(types[at : at + BATCH])}
        offered[f"more-{at}.json"] = {**golden, "Resources": {**resources, **more}}
        expected[f"more-{at}.json"] = dict(zip(more, types[at : at + BATCH], strict=True))
    for at in range(0, len(types), len(resources)):
        chosen = dict(zip(resources, types[at : at + len(resources)], strict=False))
        chosen = {name: type_ for name, type_ in chosen.items() if resources[name]["Type"] != type_}
        other = {name: {**resources[name], "Type": type_} for name, type_ in chosen.items()}
        offered[f"other-{at}.json"] = {**golden, "Resources": {**resources, **other}}
        expected[f"other-{at}.json"] = chosen
    for at, (name, template) in enumerate(changes.items()):
        offered[f"change-{at}.json"] = template
        expected[f"change-{at}.json"] = name
    policies = {role: policy_forms.hostile_together(golden, role) for role in policy_forms.ROLES}
    offered |= {f"policies-of-{role}.json": template for role, (template, _) in policies.items()}
    found = guarded(offered)
    missed, count = [], 0
    for role, (_, places) in policies.items():
        findings = found[f"policies-of-{role}.json"].get("as_rendered", ())
        missed += [f"{name} in {role}" for name in policy_forms.without_finding(places, findings)]
        count += len(places)
    for file, names in expected.items():
        paths = [path for path, _ in found[file].get("as_rendered", ())]
        if isinstance(names, str):
            missed += [] if found[file] else [names]
        else:
            named = {path.split("/")[2] for path in paths if path.startswith("/Resources/")}
            missed += [f"{name} of type {type_}" for name, type_ in names.items() if name not in named]
    return count + sum(1 if isinstance(names, str) else len(names) for names in expected.values()), missed


def guarded(offered):
    """Returns the rules that Guard says each template breaks; one process for each core."""
    cores = os.cpu_count() or 1
    names = list(offered)
    with tempfile.TemporaryDirectory(prefix="freehold-hostile-") as place, ThreadPoolExecutor(cores) as pool:

        def judge(at):
            folder = Path(place) / str(at)
            folder.mkdir()
            for name in names[at::cores]:
                (folder / name).write_text(json.dumps(offered[name]))
            return guard.broken_rules_of_files(folder, whole=True) if names[at::cores] else {}

        return {name: rules for part in pool.map(judge, range(cores)) for name, rules in part.items()}


def _arguments():
    parser = argparse.ArgumentParser(
        prog="tests/hostile/run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--types", type=int, metavar="N", help="how many of CloudFormation's types, drawn (all)")
    parser.add_argument("--changes", type=int, metavar="N", default=1000, help="how many changes at random (1000)")
    parser.add_argument("--guarded", type=int, metavar="N", default=100, help="how many of them Guard judges (100)")
    parser.add_argument("--seed", type=int, metavar="N", default=1)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
