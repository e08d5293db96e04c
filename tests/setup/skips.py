"""How a test in Python says that it does not run: on stderr, and in the list with which `make test` ends."""

import os
import shutil
import subprocess
import sys

# How a program of the tests ends that skipped all that it has.
ALL_SKIPPED = 77


def skip(test, reason):
    """Prints that `test` does not run, and why; appends it to the file that `FREEHOLD_SKIPS` names."""
    line = f"SKIPPED {test}: {' '.join(reason.split())}"
    print(line, file=sys.stderr, flush=True)
    if path := os.environ.get("FREEHOLD_SKIPS"):
        with open(path, "a") as file:
            file.write(f"{line}\n")


def skip_each(result):
    """Says so of every test that a result of unittest counts as skipped."""
    for test, reason in result.skipped:
        skip(test.id(), reason)


def lacking(programs):
    """Returns why a test that needs `programs` cannot run here, or nothing; `terraform|tofu` needs one of the two."""
    absent = next((each for each in programs if not any(map(shutil.which, each.split("|")))), None)
    if absent:
        return f"there is no `{absent}` on PATH"
    return no_box() if "bwrap" in programs else None


def no_box(before=()):
    """Returns why `bwrap` cannot make a box, or nothing. `before` are the words before it in the command line."""
    try:
        command = [*before, "bwrap", "--ro-bind", "/", "/", "--unshare-user", "true"]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    except OSError as error:
        return f"`{error.filename}` cannot be run: {error.strerror}"
    if done.returncode == 0:
        return None
    return f"`bwrap` cannot make a box on this machine: {done.stderr.strip()}"
