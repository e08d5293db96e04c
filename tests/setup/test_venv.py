"""Calls of `tests/setup/venv` at the same time make an environment once, and another lock file makes it again."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV = ROOT / "tests/setup/venv"


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

    def other_python(self, makes, version="3.0.0"):
        """Returns the variables with which `python3` is a program of this version that makes an environment so."""
        program = Path(self.lock.parent, "python3")
        program.write_text(f'#!/bin/sh\nif [ "$1" = -V ]; then echo Python {version}; else {makes}; fi\n')
        program.chmod(0o755)
        return {"PATH": f"{program.parent}:{os.environ['PATH']}"}

    def quick_python(self, version="3.0.0"):
        """Returns the same for one that makes an environment whose Python does nothing, which takes no time."""
        return self.other_python('mkdir -p "$3/bin" && ln -s /bin/true "$3/bin/python"', version)

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
        quick = self.quick_python()
        made = [self.end(self.start(**quick)) for _ in range(2)]
        self.lock.write_text("# other packages\n")
        made.append(self.end(self.start(**quick)))

        self.assertEqual(made, [1, 0, 1])

    def test_an_environment_is_made_again_with_another_python(self):
        made = [self.end(self.start(**self.quick_python()))]
        other = self.quick_python("3.0.1")
        made += [self.end(self.start(**other)) for _ in range(2)]

        self.assertEqual(made, [1, 1, 0])

    def test_environments_are_kept_for_the_user_and_a_checkout_names_the_one_of_its_lock(self):
        del self.environment["FREEHOLD_OF_A_TEST_VENV"]
        link = ROOT / "target" / "of-a-test-venv"
        self.addCleanup(link.unlink, missing_ok=True)
        cache = {"XDG_CACHE_HOME": str(self.lock.parent / "cache"), **self.quick_python()}
        found = []
        for text in ("# no packages\n", "# other packages\n", "# no packages\n"):
            self.lock.write_text(text)
            out, trace = self.start(**cache).communicate()
            found.append((Path(out.strip()), trace.count("+ python3 -m venv ")))
            self.assertEqual(link.readlink(), found[-1][0], trace)

        self.assertEqual([made for _, made in found], [1, 1, 0])
        self.assertEqual(found[0][0], found[2][0])
        self.assertEqual({path.parent for path, _ in found}, {self.lock.parent / "cache/freehold/venvs"})

    def test_what_python_says_against_an_environment_is_on_stderr(self):
        refuses = self.other_python("echo install python3-venv; exit 1")
        call = self.start(**refuses)
        out, error = call.communicate()

        self.assertEqual((call.returncode, out), (1, ""), error)
        self.assertIn("install python3-venv", error)


if __name__ == "__main__":
    unittest.main()
