"""A person's shell: their folder, home and variables, and the programs that they started in the background."""

import os
import signal
import subprocess
import time

SECS = 180
# An install is forgotten 90 seconds after the request at the earliest, by functions that run each minute.
MOST_SECS = 5 * SECS
EXPORTS = 'status=$?; { pwd; env -0; } >"$GUIDE_STATE"; exit $status'


class Shell:
    def __init__(self, folder, environment):
        self.folder = folder
        self.home = folder.parent / f"{folder.name}-home"
        for made in (self.folder, self.home / ".aws"):
            made.mkdir(parents=True)
        self.environment = {**environment, "HOME": str(self.home), "GUIDE_STATE": str(self.home / "state")}
        self.cwd = folder
        self.background = []

    def run(self, script):
        """Returns the exit code and what was printed; the folder and the variables stay for the next command."""
        command = f"trap '{EXPORTS}' EXIT\nset -aeuo pipefail\n{script}"
        done = subprocess.run(["bash", "-c", command], **self._place(), stdout=subprocess.PIPE, timeout=MOST_SECS)
        pwd, _, variables = (self.home / "state").read_text().partition("\n")
        self.cwd = pwd
        self.environment = dict(line.split("=", 1) for line in variables.split("\0") if line)
        return done.returncode, done.stdout

    def start(self, script):
        """Starts a command in the background and returns the file that it prints to."""
        log = self.home / f"background-{len(self.background)}.log"
        with log.open("w") as file:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {script}"], **self._place(), stdout=file, start_new_session=True
            )
        self.background.append((process, log))
        return log

    def _place(self):
        streams = {"stdin": subprocess.DEVNULL, "stderr": subprocess.STDOUT, "text": True}
        return {"cwd": self.cwd, "env": self.environment, **streams}

    def end(self):
        for process, _ in self.background:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def wait_for(condition):
    """Returns whether the condition holds in time."""
    deadline = time.monotonic() + SECS
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True
