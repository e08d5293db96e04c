"""Renders the install stacks of real and of generated apps and checks each in every combination of its switches.

Every template as a whole goes through cfn-lint and Guard. Every combination goes through the nine rules of `verify-template`
and what `invariants.py` lists; a sample of them, drawn by the seed, through Guard and cfn-lint too, which take longer.
"""

import argparse
import itertools
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import guard
import invariants
import linting
import mutants
import templates

PROGRAM = Path(os.environ.get("CARGO_TARGET_DIR") or templates.ROOT / "target") / "debug" / "rendered-stacks"
ROOT = f"arn:aws:iam::{templates.ACCOUNT}:root"
# Where the runner works; `private` needs a vendor in the same region.
EXISTING = {"VpcId": "vpc-0123456789abcdef0", "SubnetIds": "subnet-0123456789abcdef0,subnet-0123456789abcdef1"}
PRIVATE = {"PrivateEndpoints": "true"}
NETWORKS = [
    {"RunnerPrincipal": ROOT},
    {"RunnerPrincipal": ROOT, **EXISTING, **PRIVATE},
    {},
    PRIVATE,
    EXISTING,
    {**EXISTING, **PRIVATE},
    {**EXISTING, **PRIVATE, "RouteTableIds": "rtb-0123456789abcdef0"},
]


def main():
    args = _arguments()
    subprocess.run(
        ["cargo", "build", "--quiet", "--workspace", "--bin", "rendered-stacks"], cwd=templates.ROOT, check=True
    )
    place = Path(tempfile.mkdtemp(prefix="freehold-stacks-"))
    try:
        texts = rendered(place / "whole", args)
        tally, wrong = check(texts, args, place)
    finally:
        shutil.rmtree(place)
    if args.mutants:
        missed, attempted = mutants.missed(templates.install_with_inputs(), NETWORKS)
        tally["stack.mutants_killed"] = (attempted, attempted - len(missed))
        wrong += [f"nothing notices: {name}" for name in missed]
    for line in wrong[:20]:
        print(line, file=sys.stderr)
    for name, (attempted, passed) in tally.items():
        print(
            json.dumps({"name": name, "value": passed, "attempted": attempted, "passed": passed, "seed": args.seed}),
            flush=True,
        )
    print(
        f"stacks: {len(texts)} templates, {tally['stack.combinations'][0]} combinations, {len(wrong)} wrong",
        file=sys.stderr,
    )
    return 1 if wrong else 0


def rendered(place, args):
    """Returns the templates' texts by the name of their app."""
    command = [PROGRAM, "render", "--out", place, "--generated", args.generated, "--seed", args.seed]
    command += [] if args.real is None else ["--real", args.real]
    subprocess.run([str(word) for word in command], cwd=templates.ROOT, check=True)
    return {
        "golden": templates.install_with_inputs_text(),
        **{file.stem: file.read_text() for file in sorted(place.iterdir())},
    }


def check(texts, args, place):
    """Returns what was attempted and passed by figure, and what is wrong."""
    draw = random.Random(args.seed)
    wrong = [f"{app}: {said}" for app, text in texts.items() for said in linting.lint(text) if not _is_hostile(said)]
    wrong += guarded(place / "guard-whole", {f"{app}.yaml": text for app, text in texts.items()})
    checker = Checker()
    count, failed, sample, drawn = 0, 0, {}, {}
    for app, text in texts.items():
        template = templates.parse(text)
        chosen, all_ = combinations(template, draw, args.each)
        if all_ > len(chosen):
            drawn[app] = all_
        picked = set(draw.sample(range(len(chosen)), min(args.guarded, len(chosen))))
        for at, parameters in enumerate(chosen):
            made, found = invariants.broken(template, parameters)
            found += checker.findings(made)
            wrong += [f"{app} with {shown(parameters)}: {said}" for said in found]
            count, failed = count + 1, failed + bool(found)
            if at in picked:
                sample[f"{app}-{at}.json"] = json.dumps(made)
    checker.end()
    if drawn:
        print(
            f"stacks: {args.each} combinations each are drawn by the seed where there are more: "
            + ", ".join(f"{app} has {all_:,}" for app, all_ in drawn.items()),
            file=sys.stderr,
        )
    broken = guarded(place / "guard", sample)
    broken += [
        f"{name}: {said}"
        for name in draw.sample(sorted(sample), min(args.linted, len(sample)))
        for said in lint_flat(sample[name])
    ]
    bad = {said.split(": ")[0] for said in broken}
    return {
        "stack.combinations": (count, count - failed),
        "stack.guarded": (len(sample), len(sample) - len(bad)),
    }, wrong + broken


class Checker:
    """One process that checks as `verify-template` does."""

    def __init__(self):
        self.process = subprocess.Popen(
            [str(PROGRAM), "check"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def findings(self, made):
        self.process.stdin.write(json.dumps(made) + "\n")
        self.process.stdin.flush()
        said = self.process.stdout.readline()
        if not said:
            sys.exit("the checker ended; the lines above say why")
        return [said.strip()] if said.strip() else []

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def combinations(template, draw, most):
    """Returns the parameters of every combination, or of `most` that are drawn, and how many there are. Whether the customer
    answers what may be left open is drawn for each."""
    values = template["Parameters"]["PrivateEndpoints"]["AllowedValues"]
    networks = [network for network in NETWORKS if network.get("PrivateEndpoints", "false") in values]
    roles = [*invariants.switches(template), "EnableRunner"]
    boundaries = ["", f"arn:aws:iam::{templates.ACCOUNT}:policy/everybody"]
    sizes = [2] * len(roles) + [len(boundaries), len(networks)]
    all_ = math.prod(sizes)
    numbers = range(all_) if all_ <= most else sorted(draw.sample(range(all_), most))
    every = itertools.product(*([("false", "true")] * len(roles)), boundaries, networks)
    taken = set(numbers)
    open_ = [name.removeprefix("Has") for name in template["Conditions"] if name.startswith("HasInput")]
    chosen = [
        {
            **dict(zip(roles, on)),
            "PermissionsBoundaryArn": boundary,
            **network,
            **{name: draw.choice(("", "an answer")) for name in open_},
        }
        for at, (*on, boundary, network) in enumerate(every)
        if at in taken
    ]
    return chosen, all_


def _is_hostile(said):
    """The golden app's own text looks like a substitution, in a default: nothing substitutes there."""
    return said.startswith("E1029 ") and said.endswith(" at Parameters/InputColour/Default")


def shown(parameters):
    return ", ".join(f"{name}={value}" for name, value in parameters.items() if value)


def lint_flat(text):
    """Returns what cfn-lint finds in a flat template: parameters that only switches use are not used any more."""
    template = json.loads(text)
    template["Metadata"] = {"cfn-lint": {"config": {"ignore_checks": ["W1030", "W2001", "W2506", "W7001"]}}}
    return [said for said in linting.lint(json.dumps(template)) if not _is_hostile(said)]


def guarded(place, texts):
    """Returns what Guard finds in these templates; one process for each core."""

    def one(part):
        folder = place / str(part)
        folder.mkdir(parents=True)
        names = sorted(texts)[part::cores]
        for name in names:
            (folder / name).write_text(texts[name])
        return guard.broken_in(folder) if names else {}

    cores = os.cpu_count() or 1
    with ThreadPoolExecutor(cores) as pool:
        found = {name: rules for part in pool.map(one, range(cores)) for name, rules in part.items()}
    missing = set(texts) - set(found)
    return [f"{name}: Guard did not look at it" for name in sorted(missing)] + [
        f"{name}: Guard finds {rules}" for name, rules in sorted(found.items()) if rules
    ]


def _arguments():
    parser = argparse.ArgumentParser(
        prog="stacks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--real", type=int, help="how many of the real apps (all)")
    parser.add_argument("--generated", type=int, default=3, help="how many apps are made up (3)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--each", type=int, default=64, help="how many combinations of each app, at most (64)")
    parser.add_argument("--guarded", type=int, default=2, help="how many of them go through Guard, for each app (2)")
    parser.add_argument("--linted", type=int, default=1, help="how many of those go through cfn-lint, of all apps (1)")
    parser.add_argument(
        "--mutants", action="store_true", help="puts faults into a template too, and shows that each is noticed"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
