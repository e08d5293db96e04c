"""Runs the checks and prints how many passed, failed and were skipped."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "setup"))
from skips import skip_each  # noqa: E402


def main():
    names = sys.argv[1:]
    loader = unittest.defaultTestLoader
    suite = loader.loadTestsFromNames(names) if names else loader.discover(".")
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    skipped = len(result.skipped)
    skip_each(result)
    print(
        f"iam calls: {max(0, result.testsRun - failed - skipped)} passed, {failed} failed, {skipped} skipped",
        flush=True,
    )
    return 1 if failed or not result.testsRun else 0


if __name__ == "__main__":
    sys.exit(main())
