"""Tests in Python that do not run say so: none returns early, and what unittest skips is in the list of `make test`."""

import ast
import io
import os
import subprocess
import tempfile
import unittest
from contextlib import redirect_stderr
from pathlib import Path
from unittest.mock import patch

from skips import lacking, no_box, skip, skip_each

ROOT = Path(__file__).resolve().parents[2]


def early_returns(text):
    """Returns the tests of a file that return by themselves, functions inside of them aside."""
    found = []
    for test in ast.walk(ast.parse(text)):
        if isinstance(test, ast.FunctionDef) and test.name.startswith("test_") and _is_method(test):
            todo = list(test.body)
            while todo:
                node = todo.pop()
                if isinstance(node, ast.Return):
                    found.append(test.name)
                elif not isinstance(node, ast.FunctionDef | ast.Lambda):
                    todo += ast.iter_child_nodes(node)
    return found


def _is_method(function):
    return [argument.arg for argument in function.args.args[:1]] == ["self"]


def listed(write):
    """Returns the lines that `write` adds to the list."""
    with tempfile.TemporaryDirectory() as folder, redirect_stderr(io.StringIO()):
        path = os.path.join(folder, "skips.txt")
        with patch.dict(os.environ, FREEHOLD_SKIPS=path):
            write()
        return Path(path).read_text().splitlines()


class Skips(unittest.TestCase):
    def test_a_skip_is_one_line_of_the_list(self):
        lines = listed(lambda: skip("a test", "no `bwrap`\non PATH"))

        self.assertEqual(lines, ["SKIPPED a test: no `bwrap` on PATH"])

    def test_a_bwrap_that_makes_no_box_is_lacking_with_what_it_says(self):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder, "bwrap")
            program.write_text("#!/bin/sh\necho 'No permissions to create new namespace' >&2\nexit 1\n")
            program.chmod(0o755)
            with patch.dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}"):
                reason = lacking(["sh", "bwrap"])

        self.assertEqual(reason, "`bwrap` cannot make a box on this machine: No permissions to create new namespace")
        self.assertEqual(lacking(["sh", "no-such-program|nor-this"]), "there is no `no-such-program|nor-this` on PATH")
        self.assertIsNone(lacking(["sh", "no-such-program|sh"]))
        self.assertIsNotNone(no_box(["/no/such/program"]))

    def test_what_unittest_skips_is_listed(self):
        class Absent(unittest.TestCase):
            def test_it(self):
                self.skipTest("needs Linux")

        result = unittest.TestResult()
        Absent("test_it").run(result)

        [line] = listed(lambda: skip_each(result))

        self.assertRegex(line, r"^SKIPPED .*Absent\.test_it: needs Linux$")

    def test_no_test_returns_early(self):
        files = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        found = [f"{file}: {test}" for file in files.split() for test in early_returns((ROOT / file).read_text())]

        self.assertEqual(found, [], "call self.skipTest with a reason instead")

    def test_an_early_return_is_found(self):
        self.assertEqual(early_returns("def test_a(self):\n if missing():\n  return\n"), ["test_a"])
        self.assertEqual(early_returns("def test_a(self):\n def inner():\n  return 1\n inner()\n"), [])


if __name__ == "__main__":
    unittest.main()
