"""Checks that a test that waits for a denial says so: an engine that enforces no policies can only skip it."""

import ast
import unittest
from pathlib import Path

# How AWS denies what a policy does not allow; `refused` of the contract takes one of them.
DENIALS = ("AccessDenied", "AuthorizationError")


def unmarked(text):
    """Returns the tests of a file that wait for a denial, and neither they nor their class name what they need."""
    classes = [node for node in ast.parse(text).body if isinstance(node, ast.ClassDef) and not _marked(node)]
    tests = [node for found in classes for node in found.body if isinstance(node, ast.FunctionDef)]
    return [test.name for test in tests if not _marked(test) and any(map(_denies, ast.walk(test)))]


def _marked(node):
    calls = [mark.func for mark in node.decorator_list if isinstance(mark, ast.Call)]
    return any(isinstance(call, ast.Name) and call.id == "needs" for call in calls)


def _denies(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(DENIALS)


class Marks(unittest.TestCase):
    def test_a_denial_without_a_mark_is_found(self):
        test = 'def test_it(self):\n        self.refused("AccessDeniedException", call)\n'

        self.assertEqual(unmarked(f"class One:\n    {test}"), ["test_it"])
        self.assertEqual(unmarked(f'class One:\n    @needs("enforcement")\n    {test}'), [])
        self.assertEqual(unmarked(f'@needs("templates")\nclass One:\n    {test}'), [])

    def test_every_test_that_waits_for_a_denial_is_marked(self):
        files = sorted(Path(__file__).parent.glob("test_contract*.py"))

        self.assertEqual([f"{file.name}: {name}" for file in files for name in unmarked(file.read_text())], [])


if __name__ == "__main__":
    unittest.main()
