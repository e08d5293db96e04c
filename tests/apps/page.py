"""The page docs/apps.md: what of each app was real when it was run, and how long its steps took."""

import argparse
import json
import re
from pathlib import Path

from collection import FOLDER, actions, clouds, components

HEAD = """# Public apps

Written by `tests/apps/run --page` from what it found, on {date}, commit {commit}. Each app is a public config. It was
run on a local cloud of its own: synced, built, launched in the customer's account, provisioned, changed, used and torn
down. {components} components were deployed as they are, and {actions} actions succeeded.
{clouds}
The product is real everywhere: control plane, runners, Terraform, Helm, the API server of the cluster. Jobs run their
programs in a [tool image](guides/vendor.md#the-programs-that-jobs-run) that `freehold tools build` made. A stand-in is
in the place of a module whose providers cannot be had on the machine (its variables and outputs are the module's, and
nothing is made), of a chart, a manifest or a directory that cannot be had, of programs of Pulumi and Pulumi itself, and
of public images. A kind that the API server of the cluster (Kubernetes 1.20) lacks is defined without a schema, so its
objects are made, and no operator reads them. The cluster has no nodes: a small program makes its pods ready, and
nothing runs in them. An action that asks for what only a real part would make fails, and the reason is below the table,
with whatever was left out.

| app | verdict | components as they are | stand-ins | cluster | actions that succeeded | that failed | {steps} |
|---|---|---|---|---|---|---|{rule}|
"""
CLOUDS = """
The directory of public configs has {count}. {own} have a stack of CloudFormation, and these are in the table. The
others are for clouds that Freehold does not install into: {others}.
"""
OWN = "aws-cloudformation"
# What needs no line below the table: what each stand-in of a module is, the head says.
OF_MODULES = ("its module's ", "its program's ")
STEPS = ("build", "launch the stack", "provision", "change an input", "actions", "tear down")


def text(results, date, commit, clouds=None):
    """Returns the page of the last result of each app; `clouds` counts the configs of a folder by type of stack."""
    last = {result["app"]: result for result in results}
    head = HEAD.format(
        date=date,
        commit=commit,
        components=_all(components, last.values()),
        actions=_all(actions, last.values()),
        clouds=_clouds(clouds) if clouds and clouds[OWN] == len(last) else "",
        steps=" | ".join(f"{step} (s)" for step in STEPS),
        rule="|".join(["---:"] * len(STEPS)),
    )
    rows = "".join(f"| {' | '.join(_row(last[name]))} |\n" for name in sorted(last))
    return f"{head}{rows}\n{''.join(_notes(last[name]) for name in sorted(last))}".rstrip("\n") + "\n"


def _clouds(clouds):
    others = ", ".join(f"{count} of `{name}`" for name, count in sorted(clouds.items()) if name != OWN)
    return CLOUDS.format(count=sum(clouds.values()), own=clouds[OWN], others=others)


def _all(count, results):
    """Returns the sum of what `count` says of each result, such as `3 of 7`."""
    real, whole = zip(*map(count, results), strict=True)
    return f"{sum(real)} of {sum(whole)}"


def _row(result):
    took = {one["step"]: f"{one['seconds']:,}" for one in result["steps"]}
    kinds = [f"kind {kind}" for kind, _ in result["kinds"]]
    return [
        result["app"],
        "ok" if result["reason"] is None else "failed",
        "{} of {}".format(*components(result)),
        ", ".join([*result["stand_ins"], *kinds]) or "none",
        "real" if result["cluster"] else "none",
        "{} of {}".format(*actions(result)),
        str(len(result["failed_actions"])),
        *(took.get(step, "") for step in STEPS),
    ]


def _notes(result):
    lines = [f"it failed: {_line(result['reason'])}"] if result["reason"] is not None else []
    lines += [
        f"`{name}`: a stand-in: {_line(what)}"
        for name, what in sorted(result["replaced"].items())
        if not what.startswith(OF_MODULES)
    ]
    lines += [f"kind `{kind}` of `{version}`: a stand-in; the API server lacks it" for kind, version in result["kinds"]]
    lines += [
        f"component `{name}`: deployed {', '.join(changes)}, because the API server here is too old for it"
        for name, changes in sorted(result["changed"].items())
    ]
    for kind, name, why, of_type in result["left_out"]:
        ran = kind == "action" and name in result["failed_actions"]
        what = f"{kind} `{name}`" + (f" ({of_type})" if of_type else "")
        lines.append(f"{what}: {'it ran and failed' if ran else 'left out'}: {_line(why)}")
    lines += [f"action `{name}`: no event of the run starts it" for name in result["idle_actions"]]
    return "\n".join([f"## {result['app']}", "", *(f"- {line}" for line in lines), "", ""]) if lines else ""


def _line(reason):
    # The product writes "component `x` is a `pulumi`", where the word is the type of the component.
    text = re.sub(r"\bis an? (`\w+`)", r"is of type \1", " ".join(reason.split()))
    return text.replace("<", "&lt;")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, help="what `--results` wrote")
    parser.add_argument("--date", required=True)
    parser.add_argument("--commit", required=True)
    parser.add_argument("--all", type=Path, default=FOLDER, metavar="FOLDER", help="the folder of public apps")
    arguments = parser.parse_args()
    results = [json.loads(line) for line in arguments.results.read_text().splitlines()]
    print(text(results, arguments.date, arguments.commit, clouds(arguments.all)), end="")


if __name__ == "__main__":
    main()
