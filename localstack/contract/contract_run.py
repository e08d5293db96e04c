"""Runs the contract tests on one engine, and tells which were skipped. Run by `cloud test`, whose words it gets."""

import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "localstack"), str(ROOT / "tests/setup")]
from skips import skip_each  # noqa: E402

import contract_cloud  # noqa: E402


def main():
    loader = unittest.TestLoader()
    loader.testNamePatterns = [f"*{word}*" for word in sys.argv[1:]] or None
    files = sorted(Path(__file__).parent.glob("test_contract*.py"))
    result = unittest.TextTestRunner(verbosity=2).run(loader.loadTestsFromNames([file.stem for file in files]))
    skip_each(result)
    for test, _ in result.expectedFailures:
        print(f"DIFFERS {test.id()}: {contract_cloud.DIFFERENCES[test.id().rpartition('.')[2]]}")
    if not result.testsRun:
        sys.exit(f"no test has a name with one of these words: {' '.join(sys.argv[1:])}")
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
