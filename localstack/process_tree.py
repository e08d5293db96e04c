"""Finds the descendants of a process; reads /proc, or calls ps on systems without /proc."""

import os
import subprocess


def descendants(root):
    """Returns the pids of the descendants of `root`, the deepest last."""
    children = {}
    for pid, parent in _pairs():
        children.setdefault(parent, []).append(pid)
    found, todo = [], [root]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def command_line(pid):
    """Returns the arguments of `pid` as one string, which is empty when the process has ended or is a zombie."""
    if os.path.isdir("/proc/self"):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                return file.read().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            return ""
    return subprocess.run(["ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True).stdout.strip()


def _pairs():
    if os.path.isdir("/proc/self"):
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{entry}/stat") as file:
                    yield int(entry), int(file.read().rpartition(")")[2].split()[1])
            except OSError:
                continue
        return
    listing = subprocess.run(["ps", "-axo", "pid=,ppid="], capture_output=True, text=True).stdout
    for line in listing.splitlines():
        pid, parent = line.split()
        yield int(pid), int(parent)
