"""Runs the unit tests of the working directory; prints how many passed, failed and were skipped.

The first argument is what they are called; the others are names as unittest takes them.
"""

import sys
import unittest
from pathlib import Path

sys.path[:0] = [str(Path.cwd()), str(Path(__file__).resolve().parent)]
from skips import skip_each  # noqa: E402


def main():
    called, *names = sys.argv[1:]
    loader = unittest.defaultTestLoader
    suite = loader.loadTestsFromNames(names) if names else loader.discover(".")
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    skipped = len(result.skipped)
    skip_each(result)
    print(
        f"{called}: {max(0, result.testsRun - failed - skipped)} passed, {failed} failed, {skipped} skipped", flush=True
    )
    return 1 if failed or not result.testsRun else 0


if __name__ == "__main__":
    sys.exit(main())
