"""Runs the start script of a machine in a real shell, with stand-ins for commands that change the machine."""

import os
import subprocess
import tempfile
from pathlib import Path


class StartScript:
    """For test cases that have `PROGRAM`, the published program, `CALLED`, `FOLDERS` and `script(**parameters)`."""

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.root = Path(place.name)
        for folder in ("bin", *self.FOLDERS):
            (self.root / folder).mkdir(parents=True)
        # Commands that would change the machine of the test, or call out of it, only record their call.
        for name in self.CALLED:
            self.tool(name, f'echo {name} "$@" >> "{self.root}/calls"')
        (self.root / "published").write_bytes(self.PROGRAM)
        self.tool(
            "curl",
            f'echo curl "$@" >> "{self.root}/calls"\n'
            f'while [ "$1" != --output ]; do shift; done; cp "{self.root}/published" "$2"',
        )
        self.tool("id", "exit 1")

    def tool(self, name, text):
        path = self.root / "bin" / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def run_script(self, before="", **parameters):
        env = {"PATH": f"{self.root}/bin:{os.environ['PATH']}"}
        return subprocess.run(
            ["bash", "-c", before + self.script(**parameters)], env=env, capture_output=True, text=True, timeout=60
        )

    def calls(self):
        log = self.root / "calls"
        return log.read_text().splitlines() if log.exists() else []
