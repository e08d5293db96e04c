"""Ways to another job of the same runner."""

import os
import signal
import socket
import time

from network import NETWORK, converse, fetch
from probe import SeenOutside, any_of, probe, read_all
from processes import PIDS
from syscalls import LIBC

MOUNTS = "mount namespace"


@probe(MOUNTS, "ENOENT")
def workspace_of_neighbour(facts):
    """reads a file in the workspace of another job"""
    return read_all([facts["neighbour"]["workspace"] + "/ready.json"])


@probe(MOUNTS, "ENOENT")
def writes_to_neighbour(facts):
    """puts a file into the workspace of another job"""
    with open(facts["neighbour"]["workspace"] + "/planted", "w") as file:
        file.write("planted")
    return "planted a file"


@probe("network namespace, token", "ECONNREFUSED", "HTTP Error 401: Unauthorized")
def credentials_of_neighbour(facts):
    """asks the credentials endpoint of another job, whose address and token it knows"""
    other = facts["neighbour"]
    fetch(other["credentials"], {"Authorization": other["token"]})
    return "credentials of another job"


@probe(NETWORK, "ECONNREFUSED")
def loopback_of_neighbour(facts):
    """connects to a service that another job has on its loopback"""
    return converse(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", facts["neighbour"]["port"]))


@probe(PIDS, "ESRCH")
def signals_to_neighbour(facts):
    """sends a signal to a process of another job"""
    os.kill(facts["neighbour"]["pid"], signal.SIGCONT)
    return "kill"


@probe(PIDS, "ENOENT", "EACCES", "nothing in it")
def environment_of_neighbour(facts):
    """looks for the token of another job in the environment of every process that it sees"""
    pids = {facts["neighbour"]["pid"], *[int(name) for name in os.listdir("/proc") if name.isdigit()]} - {os.getpid()}
    return read_all([f"/proc/{pid}/environ" for pid in pids], facts["neighbour"]["token"].encode())


@probe("a /tmp of its own", "ENOENT")
def temporary_files_of_neighbour(facts):
    """reads what another job left in /tmp and /dev/shm"""
    return read_all([facts["neighbour"]["temporary"], facts["neighbour"]["shared"]])


@probe("IPC namespace", "ENOENT", "ENOSYS", "EPERM")
def shared_memory_of_neighbour(facts):
    """attaches to the System V memory of another job"""
    import ctypes

    found = LIBC.shmget(facts["neighbour"]["memory"], 0, 0)
    if found < 0:
        raise OSError(ctypes.get_errno(), "")
    return f"segment {found}"


@probe(MOUNTS, "ENOENT")
def runner_key(facts):
    """reads the key with which the runner signs"""
    return read_all([facts["key"]])


@probe(MOUNTS, "ENOENT")
def runner_journal(facts):
    """reads and appends to the runner's journal"""

    def append():
        with open(facts["journal"], "ab"):
            return "could append"

    return any_of(append, lambda: read_all([facts["journal"]]))


@probe("another user", "another user")
def files_belong_to_another_user(facts):
    """makes a file, which on the machine must not belong to the runner's user while the job runs"""
    with open("owned", "w"):
        # Until it has been looked at; afterwards the runner takes it back.
        time.sleep(1)
    raise SeenOutside
