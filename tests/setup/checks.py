"""Runs the unit tests of the working directory and of its folders; prints how many passed, failed and were skipped.

The first argument is what they are called; the others are names as unittest takes them.
"""

import sys
import unittest
from pathlib import Path

# A folder without a program of Python, such as one of caches, is none of theirs.
FOLDERS = [Path.cwd(), *sorted(folder for folder in Path.cwd().iterdir() if any(folder.glob("*.py")))]
sys.path[:0] = [*map(str, FOLDERS), str(Path(__file__).resolve().parent)]
from skips import skip_each  # noqa: E402


def main():
    called, *names = sys.argv[1:]
    loader = unittest.defaultTestLoader
    if names:
        suite = loader.loadTestsFromNames(names)
    else:
        suite = unittest.TestSuite(loader.discover(str(folder), top_level_dir=str(folder)) for folder in FOLDERS)
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
