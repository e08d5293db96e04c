"""Runs the probes on this machine through a runner, beside a neighbour; writes one answer for each as a JSON line."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import evidence
from machine import INTERNET_V4, Machine

MARK = "freehold-mark-of-the-runner"


def main():
    folder, sandbox = Path(sys.argv[1]), sys.argv[2]
    daemon = f"daemon-of-{folder.name}"
    machine = Machine(folder / "disk")
    state = folder / "disk/state"
    wait_for("the machine's internet", reachable)
    runner = Runner(folder, state, sandbox, machine)
    facts = machine.facts() | runner.facts(sandbox) | {"mark_of_daemon": daemon}
    # The probes read it from their copy of the folder.
    with open(runner.probes / "facts.json", "w") as file:
        json.dump(facts, file)
    for name in json.loads((folder / "names.json").read_text()):
        before = len(machine.asked)
        started, owners = time.monotonic(), []
        if name in evidence.WATCHED:
            threading.Thread(target=look_at, args=(state / "work" / name / "owned", owners), daemon=True).start()
        ended = runner.attempt(name)
        owner = owners[0] if owners else None
        seen = evidence.Seen(ended, state, machine.asked[before:], sandbox, daemon, owner)
        answer = evidence.answer(name, seen) | {"name": name, "seconds": round(time.monotonic() - started, 1)}
        print(json.dumps(answer), flush=True)
    runner.stop()


class Runner:
    """A runner with one neighbour that stays; see tests/src/bin/probe-runner.rs."""

    def __init__(self, folder, state, sandbox, machine):
        self.probes, self.state = folder / "disk/probes", state
        subprocess.run(["cp", "-r", folder / "escapes/probes", self.probes], check=True)
        state.mkdir(mode=0o700)
        (state / "journal.jsonl").write_text("{}\n")
        outside = state.parent / "outside"
        outside.mkdir()
        (outside / "shown").write_text("")
        (state / "stolen.json").write_text('{"stolen": "yes"}')
        command = [folder / "probe-runner", "--state", state, "--sandbox", sandbox, "--probes", self.probes]
        # Without a box, what a careless runner would have done: a descriptor left open, everybody's proxy passed on.
        leaked = os.open(state / "stolen.json", os.O_RDONLY)
        environment = {"PATH": os.environ["PATH"], "FREEHOLD_MARK": MARK}
        if sandbox == "none":
            environment["HTTP_PROXY"] = environment["http_proxy"] = f"http://127.0.0.1:{machine.proxy}"
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            pass_fds=[leaked] if sandbox == "none" else [],
        )
        self.neighbour = Path(json.loads(self.process.stdout.readline())["neighbour"])

    def facts(self, sandbox):
        outside = str(self.state.parent / "outside")
        folders, shown = [outside], [f"{outside}/shown"]
        if sandbox == "bubblewrap":
            folders += ["/", "/etc", "/usr", "/usr/bin", "/var/tmp", "/proc", "/run", "/run/freehold"]
            shown += ["/etc/passwd", "/etc/resolv.conf", "/usr/bin/env", "/run/freehold/init"]
        ready = wait_for("the neighbour says where it is", lambda: readable(self.neighbour / "ready.json"))
        pid = wait_for("the neighbour's process", lambda: evidence.processes(str(self.neighbour)))[0]
        return {
            "runner": self.process.pid,
            "init": 1 if sandbox == "bubblewrap" else pid,
            "key": str(self.state / "runner.key"),
            "journal": str(self.state / "journal.jsonl"),
            "stolen": str(self.state / "stolen.json"),
            "read_only": str(self.state.parent / "read-only") if sandbox == "none" else "/usr",
            "outside": folders,
            "shown": shown,
            "in_memory": ["/run"] if sandbox == "none" else [],
            # The box looks at its workspace once a second, or less often where that takes long.
            "until_noticed": 20 if sandbox == "bubblewrap" else 0,
            "mark": MARK,
            "neighbour": {**ready, "pid": pid, "workspace": str(self.neighbour)},
        }

    def attempt(self, name):
        self.process.stdin.write(f"{name}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"escapes: the runner ended during `{name}` with {self.process.wait()}")
        return json.loads(line)

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


def look_at(file, owners):
    """Adds the owner of a file that a probe makes, as soon as it is there."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not owners:
        with contextlib.suppress(OSError):
            owners.append(os.stat(file).st_uid)
        time.sleep(0.02)


def reachable():
    with contextlib.suppress(OSError), socket.create_connection((INTERNET_V4, 443), timeout=1):
        return True
    return False


def readable(path):
    return json.loads(path.read_text()) if path.exists() else None


def wait_for(what, condition, seconds=30):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.05)
    sys.exit(f"escapes: {what}: not within {seconds} s")


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    main()
