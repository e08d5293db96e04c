"""The programs that measure and are measured, and what they printed."""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
WORK = TARGET / "bench"
# Why a row has no value that no measure of this run has to give.
NOT_ASKED = "not asked for"
# The name that `infra/package` has for this machine's architecture.
ARCHITECTURE = "arm64" if platform.machine() in ("aarch64", "arm64") else "x86_64"


class Results:
    """Values of rows by name, and the reasons why others have none."""

    def __init__(self):
        self.values = {}
        self.skipped = {}
        self.dev_builds = {}
        self.asked = set()

    def ask(self, *names):
        """Notes that each row whose name begins with one of `names` and a dot has to get a value or a reason."""
        self.asked.update(names)

    def add(self, name, value):
        """Adds one value of a row; the table shows the median."""
        self.values.setdefault(name, []).append(value)

    def skip(self, name, reason):
        """Notes why a row has no value, or every row whose name begins with `name` and a dot."""
        self.skipped[name] = reason

    def reason(self, name):
        """Returns why a row has no value; nothing when it was asked for and nobody gave a reason."""
        parts = name.split(".")
        prefixes = [".".join(parts[:count]) for count in range(len(parts), 0, -1)]
        given = next((self.skipped[prefix] for prefix in prefixes if prefix in self.skipped), None)
        return given or (None if self.asked.intersection(prefixes) else NOT_ASKED)

    def is_dev_build(self, name, program):
        """Notes that the rows whose names begin with `name` and a dot measured a dev build of `program`."""
        self.dev_builds[name] = program

    def run_bin(self, name, *arguments):
        """Runs one of our measuring programs."""
        self.run(name, [str(tool(name)), *map(str, arguments)])

    def run(self, name, command):
        """Runs a program whose lines are values of rows, or reasons why a row has no value."""
        print(f"bench: {' '.join(command)[:160]}", file=sys.stderr, flush=True)
        done = subprocess.run(
            command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env={**os.environ, "NODE_NO_WARNINGS": "1"}
        )
        if done.returncode:
            sys.exit(f"`{name}` failed with exit code {done.returncode}; the lines above say why")
        for line in filter(None, done.stdout.splitlines()):
            row = json.loads(line)
            if "skipped" in row:
                self.skip(row["name"], row["skipped"])
            else:
                self.add(row["name"], row["value"])


def build(release):
    """Builds what is measured from this tree: dev builds for what is counted, and with `release` what ships too."""
    for command in commands(release):
        _run(*command)


def commands(release):
    """Returns the commands of a build; cargo decides what is fresh."""
    made = [("cargo", "build", "--workspace", "--bins", "--quiet")]
    if release:
        packages = ("-p", "freehold-runner", "-p", "freehold-builder")
        made += [
            ("cargo", "build", "--release", *packages, "--bins", "--quiet"),
            ("cargo", "build", "--release", "-p", "freehold-oci", "--example", "oci-copy", "--quiet"),
            (ROOT / "infra/package", ARCHITECTURE),
        ]
    return [*made, (ROOT / "infra/package", "--local")]


def cargo(*words):
    """Runs cargo without its progress."""
    _run("cargo", *words, "--quiet")


def program(name, release):
    """Returns the release build of a program, or its dev build: an old release that lies there is never measured."""
    return TARGET / ("release" if release else "debug") / name


def tool(name):
    """Returns a program of the tests."""
    return TARGET / "debug" / name


def _run(*command):
    if subprocess.run([str(word) for word in command], cwd=ROOT, stdout=sys.stderr).returncode:
        sys.exit(f"`{' '.join(map(str, command))}` failed")
