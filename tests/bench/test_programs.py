"""What a bench measures: what it builds from this tree, and nothing that lay there before."""

import contextlib
import io
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import cloud
import images
import programs


class Measured(unittest.TestCase):
    def test_make_bench_measures_what_ships(self):
        recipe = subprocess.run(["make", "--dry-run", "bench"], cwd=programs.ROOT, capture_output=True, text=True)

        self.assertIn("tests/bench/run --release", recipe.stdout)

    def test_make_test_counts_with_dev_builds(self):
        steps = (programs.ROOT / "tests/run").read_text()

        self.assertIn("tests/bench/run --only counted\n", steps)

    def test_a_release_that_lies_there_is_measured_only_by_a_run_that_builds_it(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(programs, "TARGET", Path(folder)):
            (Path(folder) / "release").mkdir()
            (Path(folder) / "release/freehold-runner").touch()

            measured = [programs.program("freehold-runner", release) for release in (False, True)]

        self.assertEqual([path.parent.name for path in measured], ["debug", "release"])

    def test_zips_of_another_tree_are_not_counted(self):
        here = subprocess.run([programs.ROOT / "infra/package", "--tree"], capture_output=True, text=True, check=True)
        with tempfile.TemporaryDirectory() as folder:
            stamp = Path(folder) / "arm64.tree"
            absent = cloud.of_another_tree(stamp)
            stamp.write_text("0" * 40)
            other = cloud.of_another_tree(stamp)
            stamp.write_text(here.stdout)
            same = cloud.of_another_tree(stamp)

        self.assertEqual([absent, other, same], [True, True, False])

    def test_every_release_that_is_measured_is_built_first(self):
        built = [" ".join(map(str, command)) for command in programs.commands(True)]

        for words in ("--release -p freehold-runner -p freehold-builder --bins", "--release -p freehold-oci"):
            self.assertTrue(any(words in command for command in built), words)
        self.assertTrue(any(command.endswith(f"package {programs.ARCHITECTURE}") for command in built), built)
        self.assertFalse(any("--release" in " ".join(map(str, command)) for command in programs.commands(False)))

    def test_a_build_that_fails_ends_the_bench(self):
        with (
            mock.patch.object(programs, "commands", lambda release: [("false",), ("touch", "/nowhere/at/all")]),
            contextlib.redirect_stdout(io.StringIO()),
            self.assertRaisesRegex(SystemExit, "`false` failed"),
        ):
            programs.build(True)

    def test_without_a_registry_neither_tool_copies_and_both_say_why(self):
        results = programs.Results()
        results.ask("copy", "skopeo")

        with mock.patch.object(images.shutil, "which", return_value=None):
            images.copies(None, results)

        for name in ("copy.big.wall", "skopeo.big.wall"):
            self.assertIn("docker-registry", results.reason(name))

    def test_a_function_is_measured_as_its_dev_build_when_nothing_else_was_built(self):
        results = programs.Results()

        function = cloud._function(False, results)

        self.assertEqual((function.parent.name, results.dev_builds), ("debug", {"function": "the function"}))


if __name__ == "__main__":
    unittest.main()
