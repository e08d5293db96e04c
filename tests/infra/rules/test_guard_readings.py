"""Guard judges one of the templates that a file can be read as; cfn-lint and `verify-template` refuse such a file."""

import json
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import guard
import linting
import templates

PROGRAM = Path(os.environ.get("CARGO_TARGET_DIR") or templates.ROOT / "target") / "debug" / "freehold"
STRANGE = 'Resources: {Strange: {Type: "Custom::Strange"}}'


def _changed(text, old, new):
    assert text.count(old) == 1, old
    return text.replace(old, new)


def _two_readings():
    """Returns files that keep every rule of Guard, each with what `verify-template` says about it."""
    rendered = templates.install_text()
    role = '"RoleName": "fh-acme--globex-prod--provision"'
    return {
        "a section that is given twice": (
            _changed(rendered, "\nResources:\n", f"\n{STRANGE}\nResources:\n"),
            "key `Resources` is given twice",
        ),
        "a property that is given twice, in JSON": (
            _changed(json.dumps(templates.install()), role, f'"PermissionsBoundary": "", {role}'),
            "key `PermissionsBoundary` is given twice",
        ),
        "a second document": (f"{rendered}---\n{STRANGE}\n", "there is a second document"),
    }


class Readings(unittest.TestCase):
    def test_guard_finds_nothing_in_a_file_with_two_readings(self):
        with tempfile.TemporaryDirectory() as place:
            for name, (text, _) in _two_readings().items():
                (Path(place) / name).with_suffix(".yaml").write_text(text)
            broken = guard.broken_rules_of_files(place, whole=True)

        self.assertEqual(broken, {f"{name}.yaml": {} for name in _two_readings()})

    def test_cfn_lint_refuses_it_whatever_the_template_tells_cfn_lint_to_ignore(self):
        for name, (text, _) in _two_readings().items():
            with self.subTest(name):
                # One of the warnings that every rendered template ignores.
                silenced = re.sub(r"\bW1030\b", "E0000", text)
                self.assertNotEqual(silenced, text)
                for each in (text, silenced):
                    self.assertTrue(any(found.startswith("E0000 ") for found in linting.lint(each)), name)
        for rendered in (templates.install_text(), templates.install_with_inputs_text()):
            self.assertFalse(any(found.startswith("E0000 ") for found in linting.lint(rendered)))

    def test_verify_template_refuses_it(self):
        if not PROGRAM.exists():
            self.skipTest(f"`{PROGRAM.name}` is not built; `cargo build -p freehold-cli` builds it")
        for name, (text, reason) in _two_readings().items():
            with self.subTest(name), tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
                file.write(text)
                file.flush()
                command = [PROGRAM, "customer", "verify-template", file.name]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 2, done.stdout)
                self.assertIn(reason, done.stderr)

    def test_an_alias_and_a_merged_map_do_not_pass_guard(self):
        rendered = templates.install_text()
        seconds = "      MaxSessionDuration: 3600\n"
        merged = rendered.replace(seconds, "      <<: {MaxSessionDuration: 3600}\n", 1)
        alias = rendered.replace(seconds, seconds.replace("3600", "&secs 3600"), 1)
        alias = alias.replace(seconds, seconds.replace("3600", "*secs"), 1)

        self.assertEqual(set(guard.broken_rules(merged, whole=True)), {"as_rendered"})
        with self.assertRaisesRegex(RuntimeError, "Parser Error"):
            guard.broken_rules(alias)
