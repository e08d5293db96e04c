"""How a test in Python says that it does not run: on stderr, and in the list with which `make test` ends."""

import os
import sys


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
