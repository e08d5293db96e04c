"""Ways to another process: the runner, the first process of the box."""

import ctypes
import os
import signal
import subprocess
import time

from probe import ROOT, Lacking, Refused, any_of, name_of, probe, read_all
from syscalls import CLONE_NEWNET, call

PIDS = "process namespace"
PTRACE_SEIZE = 0x4206


@probe(PIDS, "ENOENT")
def runner_in_proc(facts):
    """reads the command line of the runner"""
    return read_all([f"/proc/{facts['runner']}/cmdline"])


@probe(PIDS, "ENOENT", "EACCES", "nothing in it")
def runner_environment(facts):
    """looks for the runner's environment in every process that it sees"""
    processes = [f"/proc/{name}/environ" for name in os.listdir("/proc") if name.isdigit()]
    return read_all([f"/proc/{facts['runner']}/environ", *processes], facts["mark"].encode())


@probe(PIDS, "ENOENT", "EACCES", "EPERM")
def root_of_others(facts):
    """reads the runner's key through the root directory of every process that it sees"""
    processes = [name for name in os.listdir("/proc") if name.isdigit()]
    return read_all([f"/proc/{pid}/root{facts['key']}" for pid in [facts["runner"], *processes]])


@probe(PIDS, "ENOENT", "EACCES", "EPERM")
def memory_of_runner(facts):
    """opens the memory of the runner"""
    with open(f"/proc/{facts['runner']}/mem", "rb"):
        return "opened"


@probe(PIDS, "ESRCH", "EPERM")
def trace_runner(facts):
    """attaches to the runner as a debugger"""
    return trace(facts["runner"])


@probe(PIDS, "ESRCH", "EPERM")
def copy_memory_of_runner(facts):
    """copies memory out of the runner (process_vm_readv)"""
    return copy_memory(facts["runner"])


@probe(PIDS, "ESRCH")
def signal_runner(facts):
    """sends the runner a signal"""
    os.kill(facts["runner"], 0)
    return "kill"


@probe(PIDS, "ENOENT", "EACCES", "EPERM", reached_by=ROOT)
def namespaces_of_runner(facts):
    """joins the network of the runner or of the first process, where it differs from its own"""

    def join(pid):
        path = f"/proc/{pid}/ns/net"
        with open(path) as namespace:
            if os.path.sameopenfile(namespace.fileno(), os.open("/proc/self/ns/net", os.O_RDONLY)) and pid == 1:
                raise Lacking("it is the same")
            call("setns", namespace.fileno(), CLONE_NEWNET)
        return f"joined {path}"

    return any_of(lambda: join(facts["runner"]), lambda: join(1))


# `init` is the first process of the box. Without a box it is a process of another job, which shows that it is possible.


@probe("no capability, not dumpable, seccomp filter", "EPERM", "EACCES")
def trace_init(facts):
    """attaches to the first process of the box as a debugger"""
    return trace(facts["init"])


@probe("no capability, not dumpable, seccomp filter", "EPERM", "EACCES")
def memory_of_init(facts):
    """opens the memory of the first process of the box for writing, and copies out of it"""

    def write():
        with open(f"/proc/{facts['init']}/mem", "r+b"):
            return "opened for writing"

    return any_of(write, lambda: copy_memory(facts["init"]))


@probe("no capability, not dumpable, seccomp filter", "EPERM", "EACCES")
def descriptors_of_init(facts):
    """opens the descriptors of the first process of the box, and takes copies of them (pidfd_getfd)"""

    def list_them():
        names = os.listdir(f"/proc/{facts['init']}/fd")
        return f"descriptors {names}"

    def copy_one():
        return call("pidfd_getfd", call("pidfd_open", facts["init"], 0), 0, 0)

    return any_of(list_them, copy_one)


@probe("the kernel shields the first process of a namespace", "not stopped", "EPERM")
def stop_init(facts):
    """stops the first process of the box by a signal, so that it no longer watches"""
    os.kill(facts["init"], signal.SIGSTOP)
    try:
        deadline = time.monotonic() + 0.5
        while time.monotonic() < deadline:
            with open(f"/proc/{facts['init']}/stat") as stat:
                if stat.read().rpartition(")")[2].split()[0] == "T":
                    return "stopped"
        raise Refused("not stopped")
    finally:
        os.kill(facts["init"], signal.SIGCONT)


@probe("read-only root", "EROFS", "EACCES", reached_by=ROOT)
def program_of_init(facts):
    """asks whether the program of the first process may be overwritten (as runc's once could)"""
    path = f"/proc/{facts['init']}/exe".encode()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.faccessat(-100, path, os.W_OK, 0x200) < 0:
        raise OSError(ctypes.get_errno(), "")
    return os.readlink(path)


@probe("close on exec", "the standard three only")
def leaked_descriptors(facts):
    """looks for descriptors that the runner left open"""
    leaked = []
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:
            # That of the listing itself.
            continue
        if int(name) > 2 and not target.endswith("/outputs-0.json"):
            leaked.append(f"{name} is {target}")
        if int(name) <= 2 and not (target == "/dev/null" or target.startswith("pipe:")):
            leaked.append(f"{name} is {target}")
    if leaked:
        return ", ".join(leaked)
    raise Refused("the standard three only")


@probe("no new privileges", "effective user", "nosuid")
def setuid_program(facts):
    """runs a setuid program of the machine and looks whether it is the superuser"""
    candidates = ["/usr/bin/su", "/usr/bin/mount", "/usr/bin/chsh"]
    program = next((path for path in candidates if os.path.exists(path) and os.stat(path).st_mode & 0o4000), None)
    if program is None:
        raise Lacking("there is no setuid program")
    with open("/proc/self/status") as status:
        if "NoNewPrivs:\t1" in status.read():
            own = os.geteuid()
            if effective_user(program) == own:
                raise Refused(f"effective user {own}")
            return f"{program} changes the user"
    return f"{program} may be the superuser: effective user {effective_user(program)}"


def effective_user(program):
    """Starts a program whose output is a full pipe, so that it stays, and returns its effective user."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    try:
        while True:
            os.write(writing, b"x")
    except BlockingIOError:
        pass
    os.set_blocking(writing, True)
    child = subprocess.Popen([program, "--help"], stdin=subprocess.DEVNULL, stdout=writing, stderr=writing)
    try:
        with open(f"/proc/{child.pid}/status") as status:
            return int(next(line for line in status if line.startswith("Uid:")).split()[2])
    finally:
        child.kill()
        child.wait()
        os.close(reading)
        os.close(writing)


def trace(pid):
    # The end of this process detaches again.
    call("ptrace", PTRACE_SEIZE, pid, 0, 0)
    return f"attached to {pid}"


def copy_memory(pid):
    """Copies a few bytes from where a program file is mapped; any answer but a refusal shows that it is allowed."""

    class Vector(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]

    target = ctypes.create_string_buffer(8)
    local = Vector(ctypes.cast(target, ctypes.c_void_p), 8)
    remote = Vector(0x10000, 8)
    try:
        call("process_vm_readv", pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)
    except OSError as error:
        # There is nothing at that address; the permission was given.
        if name_of(error) != "EFAULT":
            raise
    return f"may copy from {pid}"
