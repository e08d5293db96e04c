"""Calls of `tests/setup/venv` at the same time make an environment once, and another lock file makes it again."""

import os
import subprocess
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

    def start(self):
        command, pipe = ["bash", "-x", VENV, "of-a-test", self.lock], subprocess.PIPE
        return subprocess.Popen(command, env=self.environment, stdout=pipe, stderr=pipe, text=True)

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


if __name__ == "__main__":
    unittest.main()
