"""A process that is started again when it ends, until it is stopped. It never outlives this one (Linux)."""

import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
import time

logger = logging.getLogger("eks")

# PR_SET_PDEATHSIG: the kernel kills the child when the thread that started it ends, hence a thread for each child. The
# parent may have ended before that call.
GUARD = (
    "import ctypes, os, sys\n"
    "ctypes.CDLL(None).prctl(1, 9)\n"
    "os.getppid() == int(sys.argv[1]) or sys.exit(1)\n"
    "os.execv(sys.argv[2], sys.argv[2:])"
)
# A process that ran this long before it ended is started again at once.
STEADY_SECS = 10


class Daemon:
    def __init__(self, name, argv, folder, environment):
        self.name, self.exits = name, 0
        self._argv, self._folder, self._environment = argv, folder, environment
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._process = None
        self._thread = threading.Thread(target=self._keep, daemon=True, name=f"{name}-{folder.name}")

    def start(self):
        self._thread.start()

    def stop(self, timeout):
        with self._lock:
            self._stopped.set()
            process = self._process
        if process is not None:
            if timeout:
                process.send_signal(signal.SIGTERM)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout)
            process.kill()
        if self._thread.is_alive():
            self._thread.join(10)

    def last_line(self):
        try:
            lines = (self._folder / f"{self.name}.log").read_text(errors="replace").strip().splitlines()
        except OSError:
            lines = []
        return lines[-1] if lines else "its log is empty"

    def _keep(self):
        pause = 0.5
        while begin := self._launched():
            code = self._process.wait()
            (self._folder / f"{self.name}.pid").unlink(missing_ok=True)
            self.exits += 1
            pause = 0.5 if time.monotonic() - begin > STEADY_SECS else min(2 * pause, STEADY_SECS)
            if self._stopped.wait(pause):
                return
            logger.warning("EKS: %s of %s ended (%s); starting it again", self.name, self._folder.name, code)

    def _launched(self):
        """Starts the process; returns when that was, or nothing when the daemon is stopped."""
        for leftover in self._folder.glob(f"{self.name}-*:0"):
            leftover.unlink()  # a socket of an earlier process, which etcd does not take over
        command = [sys.executable, "-c", GUARD, str(os.getpid()), *self._argv]
        with self._lock, open(self._folder / f"{self.name}.log", "ab") as log:
            if self._stopped.is_set():
                return None
            self._process = subprocess.Popen(
                command, cwd=self._folder, env=self._environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        (self._folder / f"{self.name}.pid").write_text(str(self._process.pid))
        return time.monotonic()
