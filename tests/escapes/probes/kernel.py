"""Ways out through the kernel: calls that a job does not need, and that have had holes."""

import ctypes
import os
import struct

from probe import ROOT, Lacking, Refused, any_of, in_child, name_of, probe
from syscalls import LIBC, call, text

SECCOMP = "seccomp filter"
DENIED = ("EPERM", "ENOSYS", "SIGSYS")
PROCESS_KEYRING, SESSION_KEYRING = -2, -3


@probe("no capability", "all sets are empty", reached_by=ROOT)
def capabilities(facts):
    """counts its capabilities"""
    # Without new privileges no program takes from the bounding and the inheritable set, so that these do not count.
    with open("/proc/self/status") as status:
        sets = dict(line.split() for line in status if line.startswith(("CapPrm", "CapEff", "CapAmb")))
    owned = {name.rstrip(":"): value for name, value in sets.items() if int(value, 16)}
    if owned:
        return owned
    raise Refused("all sets are empty")


@probe("no new privileges", "on")
def new_privileges(facts):
    """asks whether a program that it runs may get privileges"""
    return status_is("NoNewPrivs", "1")


@probe(SECCOMP, "on")
def seccomp(facts):
    """asks whether its system calls are filtered"""
    return status_is("Seccomp", "2")


def status_is(name, wanted):
    with open("/proc/self/status") as status:
        value = next(line.split()[1] for line in status if line.startswith(f"{name}:"))
    if value == wanted:
        raise Refused("on")
    return f"{name} is {value}"


@probe(SECCOMP, *DENIED)
def keyring(facts):
    """puts a key into a keyring, which no namespace separates"""
    return in_child(add_key)


def add_key():
    return f"key {call('add_key', text('user'), text('freehold-escape'), text('x'), 1, PROCESS_KEYRING)}"


@probe(SECCOMP, *DENIED)
def keyring_of_runner(facts):
    """asks for the session keyring that it shares with the runner"""
    return in_child(session_keyring)


def session_keyring():
    return f"keyring {call('keyctl', 0, SESSION_KEYRING, 0, 0, 0)}"


@probe(SECCOMP, *DENIED, reached_by=ROOT)
def bpf(facts):
    """makes a map for a program in the kernel"""
    return in_child(make_map)


def make_map():
    attributes = ctypes.create_string_buffer(struct.pack("IIII", 2, 4, 8, 1), 72)
    return f"descriptor {call('bpf', 0, attributes, 72)}"


@probe(SECCOMP, *DENIED)
def perf(facts):
    """opens a performance counter, of which many exploits were made"""
    return in_child(open_counter)


def open_counter():
    # A software clock of this process in user mode: allowed to everybody unless perf_event_paranoid is above 2.
    attributes = ctypes.create_string_buffer(struct.pack("IIQQQQQ", 1, 112, 1, 0, 0, 0, 0x60), 112)
    return f"descriptor {call('perf_event_open', attributes, 0, -1, -1, 0)}"


@probe(SECCOMP, *DENIED)
def io_uring(facts):
    """makes a ring for system calls that no filter sees"""
    return in_child(make_ring)


def make_ring():
    return f"descriptor {call('io_uring_setup', 1, ctypes.create_string_buffer(120))}"


@probe(SECCOMP, *DENIED)
def userfaultfd(facts):
    """handles page faults itself, by which races in the kernel are won"""
    return in_child(open_faults)


def open_faults():
    return f"descriptor {call('userfaultfd', 1)}"


@probe("no capability", *DENIED, reached_by=ROOT)
def load_module(facts):
    """loads a module into the kernel"""
    return in_child(load)


def load():
    with open("probes/main.py", "rb") as file:
        return permitted("finit_module", ("ENOEXEC", "EINVAL"), file.fileno(), text(""), 0)


@probe("no capability", *DENIED, reached_by=ROOT)
def reboot(facts):
    """restarts the machine; the call has a wrong number in it, so that only the permission is asked"""
    return in_child(restart)


def restart():
    return permitted("reboot", ("EINVAL",), 0, 0, 0, 0)


@probe("no capability", *DENIED, reached_by=ROOT)
def change_time(facts):
    """sets the clock's tick to what it is already, which asks for the same permission as any time"""
    return in_child(set_tick)


def set_tick():
    timex = ctypes.create_string_buffer(208)
    call("adjtimex", timex)
    # struct timex has `modes` first and `tick` after nine longs and a timeval.
    ctypes.c_uint.from_buffer(timex).value = 0x4000
    call("adjtimex", timex)
    return "set the tick"


@probe("no capability, seccomp filter", *DENIED, reached_by=ROOT)
def kernel_log(facts):
    """reads the log of the kernel, which has addresses and secrets of others"""
    length = LIBC.klogctl(3, ctypes.create_string_buffer(64), 64)
    if length < 0:
        raise OSError(ctypes.get_errno(), "")
    return f"{length} bytes"


@probe("no capability", "EPERM", reached_by=ROOT)
def host_name(facts):
    """changes the host name, to what it is"""
    name = os.uname().nodename.encode()
    if LIBC.sethostname(name, len(name)) < 0:
        raise OSError(ctypes.get_errno(), "")
    return "sethostname"


@probe("no capability", "EPERM", "EACCES", reached_by=ROOT)
def priority(facts):
    """takes the processor before everybody else"""
    return any_of(
        lambda: os.setpriority(os.PRIO_PROCESS, 0, -5) or "a higher priority",
        lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)) or "real time",
    )


@probe("no capability", "EPERM", "EACCES", reached_by=ROOT)
def out_of_memory_score(facts):
    """asks the kernel to kill others first when memory runs out"""
    try:
        with open("/proc/self/oom_score_adj", "w") as score:
            score.write("-900")
    except OSError:
        if os.geteuid() == 0:
            raise Lacking("root has no CAP_SYS_RESOURCE here") from None
        raise
    return "-900"


def permitted(name, answers, *arguments):
    """Makes a call that cannot succeed; returns the error that only somebody gets who has the permission."""
    try:
        return call(name, *arguments)
    except OSError as error:
        if name_of(error) in answers:
            return f"{name} was permitted, and answered {name_of(error)}"
        if name_of(error) == "ENOSYS":
            raise Refused("ENOSYS") from None
        raise
