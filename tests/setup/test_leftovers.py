"""A run that leaves a process behind fails and ends it, and touches nothing that it did not start."""

import contextlib
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).with_name("leftovers")


def command_lines():
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(entry.read_bytes().replace(b"\0", b" ").decode(errors="replace").strip())
    return found


class Leftovers(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.program = Path(place.name) / "freehold-of-a-test"
        shutil.copy(shutil.which("sleep"), self.program)

    def run_script(self, script, grace="0.5"):
        command = [sys.executable, SCRIPT, "--grace", grace, "sh", "-c", script]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    def test_what_a_command_leaves_is_named_and_ended(self):
        # It has a session of its own, and its parent ends as soon as it runs.
        runs = "grep -q 31536030 /proc/$!/cmdline && ! grep -q setsid /proc/$!/cmdline"
        ran = self.run_script(f"setsid {self.program} 31536030 >/dev/null 2>&1 & until {runs}; do :; done")

        self.assertEqual((1, f"left running: {self.program} 31536030\n"), (ran.returncode, ran.stderr))
        self.assertNotIn(f"{self.program} 31536030", command_lines())

    def test_what_ends_in_time_is_nothing_left(self):
        self.assertEqual(0, self.run_script(f"(setsid {self.program} 0.5 >/dev/null 2>&1 &)", grace="30").returncode)

    def test_a_process_of_somebody_else_lives_on_whatever_its_name_is(self):
        command = [sys.executable, SCRIPT, "--grace", "0.5", "sh", "-c", "echo ready; read go"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, **pipes) as run:
            run.stdout.readline()
            with subprocess.Popen([self.program, "600"]) as other:
                run.communicate("go\n", timeout=60)

                self.assertEqual((0, None), (run.returncode, other.poll()))
                other.kill()

    def test_a_process_that_was_taken_over_is_gone_when_it_ends(self):
        orphan = "$(sh -c 'sleep 0.1 >/dev/null 2>&1 & echo $!')"

        self.assertEqual(0, self.run_script(f"pid={orphan}; while [ -e /proc/$pid ]; do :; done").returncode)

    def test_the_exit_code_of_the_command_stays(self):
        self.assertEqual([0, 3], [self.run_script(f"exit {code}").returncode for code in (0, 3)])
        self.assertEqual(137, self.run_script("kill -KILL $$").returncode)


if __name__ == "__main__":
    unittest.main()
