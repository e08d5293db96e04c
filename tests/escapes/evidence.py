"""What the machine saw of a probe, where no answer can be given from inside: whose a file is, what was asked for."""

import json
import os
import signal
import stat
import time
from dataclasses import dataclass
from pathlib import Path

# The most log of one attempt that a runner may report, in bytes.
MOST_LOG = 2 << 20


@dataclass
class Seen:
    """What is left of an attempt."""

    ended: dict
    state: Path
    names_asked: list
    sandbox: str
    daemon: str
    # Whose the file `owned` was while the probe ran.
    owner: int | None

    @property
    def workspace(self):
        return Path(self.ended["workspace"])

    @property
    def outputs(self):
        return self.ended["outcome"].get("outputs", {})

    @property
    def reason(self):
        return self.ended["outcome"].get("reason", json.dumps(self.ended["outcome"]))


def answer(name, seen):
    look = OUTSIDE.get(name)
    if look:
        return look(seen)
    if "verdict" in seen.outputs:
        return {"verdict": seen.outputs["verdict"], "how": seen.outputs["how"]}
    if (stop_reason := seen.ended["log"].rpartition("[freehold: stopped the program, ")[2]) != seen.ended["log"]:
        return refused(stop_reason.partition(";")[0].strip())
    # It was killed, or its box was not made.
    return refused(f"{seen.reason} {seen.ended['log'][-300:]}".strip())


def refused(how):
    return {"verdict": "refused", "how": how}


def reached(how):
    return {"verdict": "reached", "how": how}


def owner(seen):
    if seen.owner is None:
        return answer("", seen)
    is_runners = seen.owner == os.stat(seen.state).st_uid
    return reached("the runner's own user") if is_runners else refused("another user")


def symlink(seen):
    """A runner that follows the link would report the file; so it is seen that there is something to refuse."""
    if "stolen" in seen.outputs:
        return reached("the runner reported the file")
    if seen.sandbox == "none" and "stolen" in (seen.workspace / "outputs-0.json").read_text():
        return reached("a reader that follows links has the file")
    return refused(seen.reason)


def hard_link(seen):
    return reached("the runner reported the file") if "stolen" in seen.outputs else answer("", seen)


def swapped(seen):
    if "stolen" in seen.outputs:
        return reached("the runner reported the file")
    return refused(seen.outputs.get("how", seen.reason))


def setuid(seen):
    data = os.stat(seen.workspace / "setuid") if (seen.workspace / "setuid").exists() else None
    if data and data.st_uid == 0 and data.st_mode & stat.S_ISUID:
        return reached("a setuid program of the superuser")
    return refused("not the superuser's")


def log(seen):
    size = len(seen.ended["log"])
    return reached(f"{size} bytes of log") if size > MOST_LOG else refused("at most" if size else "no log at all")


def daemon(seen):
    """A process that has been killed may take a moment to go."""
    deadline = time.monotonic() + 20
    while pids := processes(seen.daemon):
        if time.monotonic() > deadline:
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
            return reached(f"process {pids} stayed")
        time.sleep(0.05)
    return refused("gone") if seen.outputs or "succeeded" in json.dumps(seen.ended["outcome"]) else answer("", seen)


def processes(mark):
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if mark.encode() in words:
                found.append(int(entry.name))
    return found


def name_of_tunnel(seen):
    if any(b"stolen-by-proxy" in query for query in seen.names_asked):
        return reached("the name server was asked")
    return answer("", seen)


# Whose files are looked at while the probe runs.
WATCHED = ("files-belong-to-another-user",)
OUTSIDE = {
    "files-belong-to-another-user": owner,
    "symlink-for-outputs": symlink,
    "hard-link-for-outputs": hard_link,
    "swapped-outputs": swapped,
    "setuid-file": setuid,
    "log-flood": log,
    "stays-behind": daemon,
    "dns-tunnel-by-proxy": name_of_tunnel,
}
