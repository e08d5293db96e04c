"""Fuzzes the tenant API by its own OpenAPI document, `docs/openapi.json`, with schemathesis.

A local cloud of its own runs the real functions. A tenant, an app with a build, a release and a log, and installs are
made there first, so that requests find things. Operations that need a certain state, such as a deploy that failed, get
an install in this state. Then every operation gets requests that the document permits and requests that it forbids,
operations that change and remove things among them. Each answer must have a
status, a content type and a body that the document lists; none may be a server error; and what the document forbids
must be refused.

Operations that remove an install, or what is deployed there, come last, since the others find nothing afterwards. An
operation that never succeeded was not fuzzed beyond its refusals: that fails too, unless it is known, and so does one
that is known and succeeds.

The same seed sends the same requests to the same operations; ids and times of the world differ. A failing case is
printed with its request. Ends with one JSON line per figure.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from skips import skip

from programs import REGION, ROOT, VENDOR, Failed, Programs
from world import install_for, make

HERE = Path(__file__).resolve().parent
WORK = ROOT / "target" / "api"
EXAMPLES, SHORT_EXAMPLES = 50, 10
# These take away what the others need. They come last, each with an install of its own. Most of their cases are refused
# at once, so they have as many in the short form.
REMOVALS = ("TeardownInstall", "DeleteInstall", "ForgetInstall")
# Operations that succeed in no case, each with the reason.
NEVER_SUCCEEDS = {
    "AcceptInvitation": "only a person who is signed in accepts an invitation, and an IAM principal signs the requests",
}
# Those that succeed in no case on a machine without Terraform.
NEED_TERRAFORM = ("DetectDrift", "AcknowledgeDrift")
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
)


def main():
    args = _arguments()
    shutil.rmtree(WORK, ignore_errors=True)
    (WORK / "files").mkdir(parents=True)
    programs = Programs(WORK / "files")
    try:
        known = make(programs)
        rounds = [name for name in ("others", *REMOVALS) if _has_operations(name, args.only)]
        codes = [fuzz(programs, known, args, name) for name in rounds]
    except Failed as failure:
        print(f"api: {failure}", file=sys.stderr)
        return 1
    finally:
        programs.end()
    counts = added(json.loads((WORK / f"counts-{name}.json").read_text()) for name in rounds)
    report(counts, args.seed)
    wrong = unexpected(counts, operation_ids(), args.only, never_succeed(programs))
    print("".join(f"api: {line}\n" for line in wrong), file=sys.stderr, end="")
    return 1 if any(codes) or wrong or not counts["cases"] else 0


def _has_operations(name, only):
    return only is None or name == (only if only in REMOVALS else "others")


def operation_ids():
    """Returns the id of each operation by the name that schemathesis gives it, such as `GET /v1/apps`."""
    paths = json.loads((ROOT / "docs" / "openapi.json").read_text())["paths"]
    methods = [(path, method, operation) for path, of in paths.items() for method, operation in of.items()]
    return {f"{method.upper()} {path}": one["operationId"] for path, method, one in methods if "operationId" in one}


def never_succeed(programs):
    """Returns the operations that succeed in no case on this machine, each with the reason."""
    if programs.terraform:
        return NEVER_SUCCEEDS
    reason = "neither `terraform` nor `tofu` is on PATH, so no component has drift"
    skip("api drift", reason)
    return {**NEVER_SUCCEEDS, **dict.fromkeys(NEED_TERRAFORM, reason)}


def unexpected(counts, ids, only, known):
    """Returns a line for each operation that never succeeded and is not known, and for each that is and did."""
    succeeds = {ids[label] for label, count in counts["succeeded"].items() if count}
    refusals = {ids[label]: text for label, text in counts["refusals"].items()}
    tried = {only} if only else set(ids.values())
    lines = [
        f"{name} never succeeded, so that nothing behind its refusals was fuzzed; make what it needs in `world.py`, or "
        f"give a reason in NEVER_SUCCEEDS; the last valid request got {refusals.get(name, 'no answer')}"
        for name in sorted(tried - succeeds - known.keys())
    ]
    needless = [f"{name} is in NEVER_SUCCEEDS and succeeds; take it out" for name in sorted(succeeds & known.keys())]
    return lines + needless


def added(counts):
    """Returns the sums of the counts of all rounds."""
    total = {"cases": 0, "failed": 0, "server_errors": 0, "statuses": {}, "operations": {}, "succeeded": {}}
    total["refusals"] = {}
    for one in counts:
        for name, value in one.items():
            if name == "refusals":
                total[name].update(value)
            elif isinstance(value, dict):
                total[name] = {key: total[name].get(key, 0) + value.get(key, 0) for key in total[name] | value}
            else:
                total[name] += value
    return total


def _arguments():
    parser = argparse.ArgumentParser(
        prog="tests/api/run", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--examples", type=int, metavar="N", help="most cases of an operation in each phase (50)")
    parser.add_argument("--short", action="store_true", help="a minute of drawn requests; leaves out the listed ones")
    parser.add_argument("--seed", type=int, metavar="N", default=1, help="chooses the requests (1)")
    parser.add_argument("--only", metavar="OPERATION", help="an operation's id, such as ListWorkflows")
    return parser.parse_args()


def fuzz(programs, known, args, name):
    """Runs schemathesis on one operation that takes something away, or on all others; returns its exit code."""
    if name in REMOVALS:
        known.values["installs"] = [install_for(programs, name)]
        chosen = ["--include-operation-id", name]
    elif args.only:
        chosen = ["--include-operation-id", args.only]
    else:
        chosen = [word for one in REMOVALS for word in ("--exclude-operation-id", one)]
    programs.step(f"requests: {args.only or name}")
    config = WORK / "schemathesis.toml"
    config.write_text(settings(known))
    command = [
        Path(sys.executable).parent / "schemathesis",
        *("--config-file", config, "run", ROOT / "docs" / "openapi.json"),
        *("--url", programs.endpoint, "--checks", ",".join(CHECKS), "--seed", args.seed),
        # A function that starts on a busy machine is slow, and not wrong.
        *("--request-timeout", "120"),
        *("--max-examples", args.examples or (SHORT_EXAMPLES if args.short and name not in REMOVALS else EXAMPLES)),
        *("--phases", "fuzzing" if args.short else "coverage,fuzzing,stateful", "--continue-on-failure", "--no-color"),
        *chosen,
    ]
    env = {
        **os.environ,
        "SCHEMATHESIS_HOOKS": "hooks",
        "PYTHONPATH": f"{HERE}:{os.environ.get('PYTHONPATH', '')}",
        "FREEHOLD_API_HOST": known.host,
        "FREEHOLD_API_DOCUMENT": str(known.document),
        "FREEHOLD_API_WEBHOOK_KEY": str(known.webhook_key),
        "FREEHOLD_API_COUNTS": str(WORK / f"counts-{name}.json"),
        "AWS_REGION": REGION,
        "AWS_ACCESS_KEY_ID": VENDOR,
        "AWS_SECRET_ACCESS_KEY": "local",
        "NO_PROXY": "127.0.0.1",
    }
    return subprocess.run([str(word) for word in command], env=env, cwd=WORK, stdout=sys.stderr).returncode


def settings(known):
    """Returns the settings of schemathesis: which values it takes from the world instead of making them up."""
    # `hooks.py` signs each request, so no signature is made up.
    lines = ["warnings = false", "[generation]", 'database = "none"', "with-security-parameters = false"]
    lines += ["[phases.examples]", "enabled = false"]
    for name, values in known.values.items():
        lines += [f'[dictionaries."{name}"]', f"values = {json.dumps(values)}"]
    lines += ["[parameters]", *_bindings(known.parameters, 0.7)]
    for operation, parameters in known.of_operation.items():
        lines += ["[[operations]]", f'include-operation-id = "{operation}"', "[operations.parameters]"]
        # All of them have to be there in one request, and only a few requests reach the operation in the short form.
        lines += _bindings(parameters, 0.9)
    return "\n".join(lines) + "\n"


def _bindings(parameters, probability):
    return [
        f'"{parameter}" = {{ dictionary = "{name}", probability = {probability} }}'
        for parameter, name in parameters.items()
    ]


def report(counts, seed):
    cases, errors = counts["cases"], counts["server_errors"]
    rows = (
        {"name": "api.cases", "value": cases, "attempted": cases, "passed": cases - counts["failed"]},
        {"name": "api.server_errors", "value": errors, "attempted": cases, "passed": cases - errors},
    )
    statuses = ", ".join(f"{status}: {count:,}" for status, count in sorted(counts["statuses"].items()))
    print(f"api: {cases:,} cases at {len(counts['operations'])} operations; answers {statuses}", file=sys.stderr)
    for row in rows:
        print(json.dumps({**row, "seed": seed}))


if __name__ == "__main__":
    sys.exit(main())
