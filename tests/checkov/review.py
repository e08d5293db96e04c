"""Compares checkov's findings in the tenant stack and in a rendered install stack with `infra/checkov.yaml`.

Each finding is mended, or its reason stands there with the template, the check and the resource. That file says why the
reasons are not comments in the templates. A finding without a reason fails, and so does a reason without a finding.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
REASONS = ROOT / "infra/checkov.yaml"
TEMPLATES = {"tenant": ROOT / "infra/tenant.yaml", "install": ROOT / "crates/app/golden/install.yaml"}


def main():
    argparse.ArgumentParser(prog="tests/checkov/run", description=__doc__).parse_args()
    reasons = yaml.safe_load(REASONS.read_text())
    mistakes = [f"`{name}` is not a template" for name in reasons if name not in TEMPLATES]
    for name, found in findings().items():
        mistakes += compared(name, found, reasons.get(name, []))
    for mistake in mistakes:
        print(f"checkov: {mistake}", file=sys.stderr)
    return 1 if mistakes else 0


def compared(name, found, reasons):
    """Returns what is wrong: findings without a reason, reasons without a finding, and empty reasons."""
    expected = {(each["check"], resource) for each in reasons for resource in each["resources"]}
    empty = [f"{name}: {each['check']} has no reason" for each in reasons if not each.get("reason", "").strip()]
    new = [
        f"{name}: {resource}: {check}: {found[check, resource]}; mend it, or give the reason in {REASONS.name}"
        for check, resource in sorted(found.keys() - expected)
    ]
    stale = [
        f"{name}: {resource}: {check} is not found any more; take it out of {REASONS.name}"
        for check, resource in sorted(expected - found.keys())
    ]
    print(f"checkov: {name}: {len(found)} findings, {len(found) - len(new)} with a reason")
    return empty + new + stale


def findings():
    """Returns the failed checks of each template: what each wants, by its id and the resource's name."""
    checkov = Path(sys.executable).parent / "checkov"
    names = {path.relative_to(ROOT).as_posix(): name for name, path in TEMPLATES.items()}
    # Without `--skip-download` it asks its maker's server for texts that are not shown here, and without the variable
    # it asks PyPI for a newer version. One run for all templates, because it takes seconds to load its checks.
    options = ("--framework", "cloudformation", "--compact", "--quiet", "--skip-download", "--output", "json")
    command = [sys.executable, checkov, "--file", *names, *options]
    environment = {**os.environ, "CKV_SKIP_PACKAGE_UPDATE_CHECK": "true"}
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        results = json.loads(done.stdout)["results"]
    except (ValueError, KeyError, TypeError):
        sys.exit(
            f"checkov: could not look at {', '.join(names)}; it ended with {done.returncode}: {done.stdout[-2000:]}"
        )
    if results.get("parsing_errors"):
        sys.exit(f"checkov: could not parse {', '.join(results['parsing_errors'])}")
    found = {name: {} for name in TEMPLATES}
    for each in results["failed_checks"]:
        name = names[each["file_path"].removeprefix("/")]
        found[name][each["check_id"], each["resource"].rpartition(".")[2]] = each["check_name"]
    return found


if __name__ == "__main__":
    sys.exit(main())
