"""Runs the engine of AWS CloudFormation Guard: which rules of `infra/install.guard` a template breaks, and why.

The file has nine rules and, at its end, the comparison with the template that Freehold renders. The nine judge other
templates too, such as one whose conditions are decided, and take less time: most checks ask for them alone.
"""

import importlib.metadata
import json
import platform
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import templates

RULES = templates.INFRA / "install.guard"
# Where each part of the file begins, and the comparison. Variables for all of them come first.
PART = "# ---- "
COMPARISON = f"{PART}as-rendered: "
# This package is used only for the binaries of the engine that it ships.
PACKAGE = "cdklabs-cdk-validator-cfnguard"
BROKEN = 19


def engine():
    """Returns the path of the engine; unpacks it the first time."""
    place = Path(sys.prefix) / "bin" / "cfn-guard"
    if not place.exists():
        [archive] = [file for file in importlib.metadata.files(PACKAGE) if file.name.endswith(".jsii.tgz")]
        system = "macos" if sys.platform == "darwin" else "ubuntu"
        machine = {"arm64": "aarch64", "AMD64": "x86_64"}.get(platform.machine(), platform.machine())
        with tarfile.open(archive.locate()) as packed:
            binary = packed.extractfile(f"package/bin/{system}/{machine}/cfn-guard").read()
        taken = place.with_suffix(".new")
        taken.write_bytes(binary)
        taken.chmod(0o755)
        taken.rename(place)
    return place


def broken_rules(template, whole=False):
    """Returns the rules, of the nine or of the whole file, that a template breaks: each with its paths and messages."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(template)
        file.flush()
        [found] = broken_rules_of_files(file.name, whole).values()
    return found


def broken_rules_of_files(place, whole=False):
    """Returns the broken rules of one file, or of each file of a folder, by the name of the file."""
    text = RULES.read_text()
    return _broken_rules_of_text(place, text if whole else text.partition(COMPARISON)[0])


def differences_of_files(place):
    """Returns the same for the comparison with the template that Freehold renders, without the nine rules."""
    text = RULES.read_text()
    return _broken_rules_of_text(place, text.partition(PART)[0] + COMPARISON + text.partition(COMPARISON)[2])


def _broken_rules_of_text(place, text):
    with tempfile.NamedTemporaryFile("w", suffix=".guard") as rules:
        rules.write(text)
        rules.flush()
        return _broken_rules(place, rules.name)


def _broken_rules(place, rules):
    ran = subprocess.run(
        [
            engine(),
            "validate",
            "--rules",
            rules,
            "--data",
            place,
            "--structured",
            "--output-format",
            "json",
            "--show-summary",
            "none",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode not in (0, BROKEN):
        raise RuntimeError(f"the engine failed: {ran.stderr.splitlines()[:2]}")
    found = {Path(report["name"]).name: _broken(report) for report in json.loads(ran.stdout)}
    assert (ran.returncode == BROKEN) == any(found.values()), ran.stdout
    return found


def _broken(report):
    return {rule["Rule"]["name"]: sorted(set(_reasons(rule["Rule"]["checks"]))) for rule in report["not_compliant"]}


def _reasons(checks):
    """Yields the place and the message of every failed clause in a report."""
    if isinstance(checks, list):
        for check in checks:
            yield from _reasons(check)
    elif isinstance(checks, dict):
        message = (checks.get("messages") or {}).get("custom_message")
        if message:
            yield _place(checks.get("check")), message
        for value in checks.values():
            yield from _reasons(value)


def _place(check):
    if isinstance(check, dict):
        for key in ("from", "value", "traversed_to"):
            if isinstance(check.get(key), dict) and "path" in check[key]:
                return check[key]["path"]
        return next((place for place in map(_place, check.values()) if place), "")
    return ""
