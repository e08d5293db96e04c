"""The page docs/apps.md: what of each app was real when it was run, and how long its steps took."""

import argparse
import json
import re
from pathlib import Path

from collection import actions, components

HEAD = """# Public apps

Written by `tests/apps/run --page` from what it found, on {date}, commit {commit}. Each app is a public config. It was
run on a local cloud of its own: synced, built, launched in the customer's account, provisioned, changed, used and torn
down. {components} components were deployed as they are, and {actions} actions ran.

The product is real everywhere: control plane, runners, Terraform, Helm, the API server of the cluster. A stand-in is in
the place of a module whose providers cannot be had on the machine (its variables and outputs are the module's, and
nothing is made), of programs of Pulumi and Pulumi itself, and of public images. The cluster has no nodes: a small
program makes its pods ready. What was left out, and why, is below the table.

| app | verdict | components as they are | modules that were stand-ins | cluster | actions run | {steps} |
|---|---|---|---|---|---|{rule}|
"""
STEPS = ("build", "launch the stack", "provision", "change an input", "actions", "tear down")


def text(results, date, commit):
    """Returns the page of the last result of each app."""
    last = {result["app"]: result for result in results}
    head = HEAD.format(
        date=date,
        commit=commit,
        components=_all(components, last.values()),
        actions=_all(actions, last.values()),
        steps=" | ".join(f"{step} (s)" for step in STEPS),
        rule="|".join(["---:"] * len(STEPS)),
    )
    rows = "".join(f"| {' | '.join(_row(last[name]))} |\n" for name in sorted(last))
    return f"{head}{rows}\n{''.join(_notes(last[name]) for name in sorted(last))}".rstrip("\n") + "\n"


def _all(count, results):
    """Returns the sum of what `count` says of each result, such as `3 of 7`."""
    real, whole = zip(*map(count, results), strict=True)
    return f"{sum(real)} of {sum(whole)}"


def _row(result):
    took = {one["step"]: f"{one['seconds']:,}" for one in result["steps"]}
    return [
        result["app"],
        "ok" if result["reason"] is None else "failed",
        "{} of {}".format(*components(result)),
        ", ".join(result["stand_ins"]) or "none",
        "real" if result["cluster"] else "none",
        "{} of {}".format(*actions(result)),
        *(took.get(step, "") for step in STEPS),
    ]


def _notes(result):
    if not result["left_out"] and result["reason"] is None:
        return ""
    failed = [f"- it failed: {_line(result['reason'])}"] if result["reason"] is not None else []
    out = [f"- {kind} `{name}`: {_line(why)}" for kind, name, why in result["left_out"]]
    return "\n".join([f"## {result['app']}", "", *failed, *out, "", ""])


def _line(reason):
    # The product writes "component `x` is a `pulumi`", where the word is the type of the component.
    text = re.sub(r"\bis an? (`\w+`)", r"is of type \1", " ".join(reason.split()))
    return text.replace("<", "&lt;")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, help="what `--results` wrote")
    parser.add_argument("--date", required=True)
    parser.add_argument("--commit", required=True)
    arguments = parser.parse_args()
    results = [json.loads(line) for line in arguments.results.read_text().splitlines()]
    print(text(results, arguments.date, arguments.commit), end="")


if __name__ == "__main__":
    main()
