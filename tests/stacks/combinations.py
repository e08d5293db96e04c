"""Renders the install stacks of real and of generated apps and checks each in every combination of its switches.

cfn-lint and Guard check each template as a whole. The nine rules of `verify-template` and `invariants.py` check each
combination. A sample of the combinations, drawn by the seed, goes through Guard and cfn-lint too, which take longer.
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
        missed, attempted = mutants.missed(templates.install_with_inputs())
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
    """Returns by figure how many were checked and how many passed, and what is wrong, as sentences."""
    draw = random.Random(args.seed)
    wrong = [f"{app}: {found}" for app, text in texts.items() for found in lint(text)]
    wrong += guard_findings(place / "guard-whole", {f"{app}.yaml": text for app, text in texts.items()}, True)
    checker = Checker()
    count, failed, sample, larger = 0, 0, {}, {}
    for app, text in texts.items():
        template = templates.parse(text)
        chosen, total = combinations(template, draw, args.each)
        if total > len(chosen):
            larger[app] = total
        picked = set(draw.sample(range(len(chosen)), min(args.guarded, len(chosen))))
        for at, parameters in enumerate(chosen):
            made, found = invariants.check(template, parameters)
            found += checker.findings(made)
            wrong += [f"{app} with {as_text(parameters)}: {each}" for each in found]
            count, failed = count + 1, failed + bool(found)
            if at in picked:
                sample[f"{app}-{at}.json"] = json.dumps(made)
    checker.end()
    if larger:
        sizes = ", ".join(f"{app} has {total:,}" for app, total in larger.items())
        print(f"stacks: {args.each} combinations are drawn by the seed where there are more: {sizes}", file=sys.stderr)
    broken = guard_findings(place / "guard", sample)
    for name in draw.sample(sorted(sample), min(args.linted, len(sample))):
        broken += [f"{name}: {found}" for found in lint_decided(sample[name])]
    failed_samples = {sentence.split(": ")[0] for sentence in broken}
    return {
        "stack.combinations": (count, count - failed),
        "stack.guarded": (len(sample), len(sample) - len(failed_samples)),
    }, wrong + broken


class Checker:
    """A process that checks the nine rules of `freehold customer verify-template`."""

    def __init__(self):
        self.process = subprocess.Popen(
            [str(PROGRAM), "check"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def findings(self, made):
        self.process.stdin.write(json.dumps(made) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit("the checker ended; the lines above say why")
        return [line.strip()] if line.strip() else []

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def combinations(template, draw, most):
    """Returns the parameters of every combination, or of `most` that are drawn, and how many combinations there are.

    Whether the customer fills in an optional input, and how the audit records are locked, is drawn for each.
    """
    # Endpoints are for customers in the vendor's own region, and the firewall for names is for apps without a network.
    networks = [network for network in mutants.NETWORKS if mutants.is_offered(template, network)]
    switches = [*invariants.switches(template), "EnableRunner", "EnableAppRoles"]
    boundaries = ["", f"arn:aws:iam::{templates.ACCOUNT}:policy/everybody"]
    total = math.prod([2] * len(switches) + [len(boundaries), len(networks)])
    numbers = set(range(total) if total <= most else draw.sample(range(total), most))
    every = itertools.product(*([("false", "true")] * len(switches)), boundaries, networks)
    chosen = [
        {
            **dict(zip(switches, on, strict=True)),
            "PermissionsBoundaryArn": boundary,
            **network,
            "AuditLock": draw.choice(invariants.AUDIT_LOCKS),
            "PermissionsBoundaryHasOurs": draw.choice(("false", "true")),
            **{name: draw.choice(("", "an answer")) for name in invariants.optional_inputs(template)},
        }
        for at, (*on, boundary, network) in enumerate(every)
        if at in numbers
    ]
    return chosen, total


def as_text(parameters):
    return ", ".join(f"{name}={value}" for name, value in parameters.items() if value)


def lint(text):
    """Returns what cfn-lint finds, except that a default of the golden app looks like a substitution: it is a text."""
    expected = " at Parameters/InputColour/Default"
    return [found for found in linting.lint(text) if not (found.startswith("E1029 ") and found.endswith(expected))]


def lint_decided(text):
    """Returns what cfn-lint finds in a template without conditions, where parameters that are switches have no use."""
    template = json.loads(text)
    template["Metadata"] = {"cfn-lint": {"config": {"ignore_checks": ["W1030", "W2001", "W2506", "W7001"]}}}
    return lint(json.dumps(template))


def guard_findings(place, texts, whole=False):
    """Returns what Guard finds in these templates, with one process for each core; `whole` as in `guard.py`."""
    cores = os.cpu_count() or 1

    def part_findings(part):
        folder = place / str(part)
        folder.mkdir(parents=True)
        names = sorted(texts)[part::cores]
        for name in names:
            (folder / name).write_text(texts[name])
        return guard.broken_rules_of_files(folder, whole) if names else {}

    with ThreadPoolExecutor(cores) as pool:
        found = {name: rules for part in pool.map(part_findings, range(cores)) for name, rules in part.items()}
    unread = [f"{name}: Guard did not read it" for name in sorted(set(texts) - set(found))]
    return unread + [f"{name}: Guard finds {rules}" for name, rules in sorted(found.items()) if rules]


def _arguments():
    parser = argparse.ArgumentParser(
        prog="stacks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--real", type=int, help="how many of the real apps (all)")
    parser.add_argument("--generated", type=int, default=3, help="how many generated apps (3)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--each", type=int, default=64, help="how many combinations of each app, at most (64)")
    parser.add_argument("--guarded", type=int, default=2, help="how many of them go through Guard, for each app (2)")
    parser.add_argument("--linted", type=int, default=1, help="how many of those go through cfn-lint, of all apps (1)")
    parser.add_argument(
        "--mutants", action="store_true", help="put faults into a template too, and show that each is noticed"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
