"""Calls of `tests/setup/venv` at the same time make an environment once, and another lock file makes it again."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

VENV = Path(__file__).resolve().parent / "venv"


class Venv(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.lock, self.made = Path(place.name, "requirements.lock"), Path(place.name, "not", "yet there")
        self.lock.write_text("# no packages\n")
        self.environment = {**os.environ, "FREEHOLD_OF_A_TEST_VENV": str(self.made)}

    def start(self, **environment):
        command, pipe = ["bash", "-x", VENV, "of-a-test", self.lock], subprocess.PIPE
        return subprocess.Popen(command, env={**self.environment, **environment}, stdout=pipe, stderr=pipe, text=True)

    def other_python(self, text):
        """Returns the variables with which `python3` is a program with this text."""
        program = Path(self.lock.parent, "python3")
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
        return {"PATH": f"{program.parent}:{os.environ['PATH']}"}

    def end(self, call):
        """Returns how often the call made the environment, by the commands that it traced."""
        out, trace = call.communicate()
        self.assertEqual((call.returncode, out), (0, f"{self.made}\n"), trace)
        return trace.count("+ python3 -m venv ")

    def test_two_first_calls_at_once_make_one_environment(self):
        calls = [self.start(), self.start()]

        made = [self.end(call) for call in calls]

        self.assertEqual(sorted(made), [0, 1])
        version = subprocess.run([self.made / "bin" / "python", "-m", "pip", "--version"], stdout=subprocess.DEVNULL)
        self.assertEqual(version.returncode, 0)

    def test_an_environment_is_made_again_when_its_lock_file_changed(self):
        made = [self.end(self.start()) for _ in range(2)]
        self.lock.write_text("# other packages\n")
        made.append(self.end(self.start()))

        self.assertEqual(made, [1, 0, 1])

    def test_an_environment_is_made_again_with_another_python(self):
        made = [self.end(self.start())]
        other = self.other_python(f'if [ "$1" = -V ]; then echo Python 3.0.0; else exec {sys.executable} "$@"; fi')
        made += [self.end(self.start(**other)) for _ in range(2)]

        self.assertEqual(made, [1, 1, 0])

    def test_what_python_says_against_an_environment_is_on_stderr(self):
        refuses = self.other_python(
            'if [ "$1" = -V ]; then echo Python 3.0.0; else echo install python3-venv; exit 1; fi'
        )
        call = self.start(**refuses)
        out, error = call.communicate()

        self.assertEqual((call.returncode, out), (1, ""), error)
        self.assertIn("install python3-venv", error)


if __name__ == "__main__":
    unittest.main()
