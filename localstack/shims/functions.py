"""Lambda: an answer does not wait for what has happened already, and code that is unpacked is not unpacked again."""

import array
import contextlib
import fcntl
import hashlib
import os
import queue
import select
import termios
import threading
from pathlib import Path

from ministack.core.lambda_runtime import ProvidedWorker
from ministack.services import lambda_svc

from shims.replace import replace

# Where `infra/package --local` unpacks the zips of functions, each in a folder that is named after its SHA-256.
UNPACKED = Path(os.environ.get("FREEHOLD_UNPACKED") or os.devnull)


def apply():
    # MiniStack unpacks the code of each function in each of its processes: 140 MB for one tenant.
    replace(lambda_svc, "_provided_runtime_code_dir", _unpacked_before)
    # MiniStack writes an event in two parts and waits for the acknowledgement of the first one, which takes 40 ms.
    replace(ProvidedWorker, "_build_handler_class", _without_waiting_for_acknowledgements)
    # After each answer it waits 50 ms for lines of the log. A function writes them before it answers.
    replace(ProvidedWorker, "_pump_output", _at_once)
    replace(ProvidedWorker, "_drain_stderr_bounded", _all_that_is_written)


def _unpacked_before(original):
    def provided_runtime_code_dir(code):
        folder = UNPACKED / hashlib.sha256(code).hexdigest()
        return str(folder) if (folder / "bootstrap").exists() else original(code)

    return provided_runtime_code_dir


def _without_waiting_for_acknowledgements(original):
    def build_handler_class(worker, *arguments):
        handler = original(worker, *arguments)
        handler.disable_nagle_algorithm = True
        return handler

    return build_handler_class


def _at_once(original):
    def pump_output(worker, stream, lines):
        worker.output = _Output(stream, lines)
        worker.output.read_all()

    return pump_output


def _all_that_is_written(original):
    def drain_stderr_bounded(worker, **waits):
        output = getattr(worker, "output", None)
        if not output:
            return original(worker, **waits)
        output.read_waiting()
        return worker._drain_stderr()

    return drain_stderr_bounded


class _Output:
    """What a function writes. Each thread can read what waits in the pipe; the lines keep their order."""

    def __init__(self, stream, lines):
        self.stream, self.lines = stream, lines
        self.lock, self.rest = threading.Lock(), b""

    def read_all(self):
        """Reads until the function has ended."""
        poll, ended = select.poll(), False
        poll.register(self.stream, select.POLLIN)
        while not ended:
            events = poll.poll()[0][1]
            ended = not self.read_waiting() and events & ~select.POLLIN
        with self.lock:
            self._put([self.rest] if self.rest else [])
            self.stream.close()

    def read_waiting(self):
        """Hands over the lines that are written by now; returns whether there was anything to read."""
        with self.lock:
            waiting = 0 if self.stream.closed else _waiting(self.stream)
            if waiting:
                *lines, self.rest = (self.rest + os.read(self.stream.fileno(), waiting)).split(b"\n")
                self._put(lines)
        return waiting > 0

    def _put(self, lines):
        for line in lines:
            if self.lines.full():
                with contextlib.suppress(queue.Empty):
                    self.lines.get_nowait()
            self.lines.put_nowait(line.decode(errors="replace").rstrip("\r"))


def _waiting(stream):
    """Returns how many bytes can be read from a pipe without waiting."""
    count = array.array("i", [0])
    fcntl.ioctl(stream, termios.FIONREAD, count)
    return count[0]
