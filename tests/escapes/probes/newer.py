"""Ways out through calls of the kernel that are newer or rarer than those of `kernel.py`; most need no privilege."""

import ctypes
import os
import platform
import resource
import socket

from kernel import DENIED, SECCOMP, permitted
from mounts import NESTED, OPEN_TREE_CLONE, REFUSALS
from probe import ROOT, Lacking, Refused, any_of, in_child, probe
from syscalls import CLONE_NEWUSER, call, enter_own_user_namespace, text

FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6)
# One more than the last that Linux has.
ALL_FAMILIES = 46
IMMUTABLE, SET_FLAGS, GET_FLAGS = 0x10, 0x40086602, 0x80086601


@probe(SECCOMP, "EAFNOSUPPORT", "EPERM", "ESOCKTNOSUPPORT", "EPROTONOSUPPORT")
def other_sockets(facts):
    """opens a socket of every family but IP and files: the kernel's own (netlink), and rare ones with holes"""
    families = [family for family in range(1, ALL_FAMILIES) if family not in FAMILIES]
    kinds = (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET, socket.SOCK_RAW)

    def attempt(family, kind):
        with socket.socket(family, kind):
            return f"family {family}, kind {kind}"

    return any_of(*[lambda f=family, k=kind: attempt(f, k) for family in families for kind in kinds])


@probe(SECCOMP, "EPROTONOSUPPORT", "EAFNOSUPPORT", "EPERM")
def rare_protocols(facts):
    """opens a socket of a rare protocol (such as SCTP, DCCP, L2TP), whose module the kernel loads"""
    protocols = ((1, 132), (5, 132), (6, 33), (6, 0), (2, 115), (2, 136), (1, 262))

    def attempt(family, kind, protocol):
        with socket.socket(family, kind, protocol):
            return f"family {family}, kind {kind}, protocol {protocol}"

    inet = (socket.AF_INET, socket.AF_INET6)
    return any_of(
        *[lambda f=family, k=kind, p=number: attempt(f, k, p) for family in inet for kind, number in protocols],
        lambda: in_child(pair_of_netlink),
    )


def pair_of_netlink():
    # The kernel makes both sockets, and with them loads their module, before it hears that they make no pair.
    pair = ctypes.create_string_buffer(8)
    return permitted("socketpair", ("EOPNOTSUPP", "ENOTSUP"), int(socket.AF_NETLINK), int(socket.SOCK_DGRAM), 0, pair)


@probe(SECCOMP, *DENIED)
def io_uring_of_others(facts):
    """uses a ring for system calls that somebody else might hand over"""
    return in_child(enter_ring)


def enter_ring():
    # The standard input is not a ring, which only somebody hears who may use one.
    answers = ("EBADF", "ENOTSUP", "EOPNOTSUPP", "EINVAL")
    return any_of(
        lambda: permitted("io_uring_enter", answers, 0, 0, 0, 0, 0, 0),
        lambda: permitted("io_uring_register", answers, 0, 0, 0, 0),
    )


@probe(SECCOMP, *DENIED)
def file_events(facts):
    """asks for the events of file systems (fanotify), by which one sees what others open"""
    return in_child(watch_files)


def watch_files():
    # Without privilege since Linux 5.13, if files are named by handles.
    return f"descriptor {call('fanotify_init', 0x200, os.O_RDONLY)}"


@probe(SECCOMP, *DENIED)
def comparing_processes(facts):
    """compares kernel objects of two processes (kcmp), which shows where they are in the kernel's memory"""
    return in_child(compare)


def compare():
    return f"order {call('kcmp', os.getpid(), os.getpid(), 1, 0, 0)}"


@probe(SECCOMP, *DENIED)
def personality(facts):
    """switches off that its memory lies at random addresses, for itself and for what it starts"""
    return in_child(lie_still)


def lie_still():
    return f"before: {call('personality', 0x0040000)}"


@probe(SECCOMP, *DENIED)
def segments(facts):
    """reads the table of segments of its own, whose call has had holes (modify_ldt)"""
    if platform.machine() != "x86_64":
        raise Lacking("only x86-64 has it")
    return in_child(read_segments)


def read_segments():
    return f"{call('modify_ldt', 0, ctypes.create_string_buffer(64), 64)} bytes"


@probe(SECCOMP, *DENIED)
def quotas(facts):
    """asks for the quotas of the file system, by a call that takes a descriptor instead of a path"""
    return in_child(ask_for_quotas)


def ask_for_quotas():
    folder = os.open(".", os.O_RDONLY)
    # The format of users' quotas: whoever may ask hears that there are none.
    answers = ("ESRCH", "ENOTBLK", "EINVAL", "ENODEV", "EOPNOTSUPP")
    return permitted("quotactl_fd", answers, folder, 0x800004 << 8, 0, ctypes.create_string_buffer(4))


@probe("seccomp filter, not dumpable", *DENIED, "EACCES", reached_by=ROOT)
def memory_of_others(facts):
    """has the kernel take the memory of another process away (process_madvise)"""
    vector = (ctypes.c_uint64 * 2)(0x10000, 4096)
    process = call("pidfd_open", facts["init"], 0)
    return permitted("process_madvise", ("ENOMEM", "EINVAL", "EFAULT"), process, ctypes.byref(vector), 1, 20, 0)


@probe("no capability, seccomp filter", *DENIED, reached_by=ROOT)
def another_kernel(facts):
    """loads another kernel to start; the call has wrong flags in it, so that only the permission is asked"""
    return in_child(load_kernel)


def load_kernel():
    return permitted("kexec_load", ("EINVAL",), 0, 0, 0, 0x8000)


@probe("no capability, seccomp filter", *DENIED, reached_by=ROOT)
def accounting(facts):
    """has the kernel write down every process that ends; its file is not there, so only the permission is asked"""
    return in_child(account)


def account():
    return permitted("acct", ("ENOENT",), text("no/such/file"))


@probe("no capability", "EPERM", reached_by=ROOT)
def priority_of_disk(facts):
    """takes the disk before everybody else (ioprio_set)"""
    call("ioprio_set", 1, 0, 1 << 13)
    return "real time"


@probe("no capability", "EPERM", reached_by=ROOT)
def higher_limit(facts):
    """raises a limit that was lowered for it"""
    kind = resource.RLIMIT_CORE
    try:
        resource.setrlimit(kind, (0, 0))
        resource.setrlimit(kind, (0, 1))
    except ValueError:
        if os.geteuid() == 0:
            raise Lacking("root has no CAP_SYS_RESOURCE here") from None
        raise Refused("EPERM") from None
    return "a limit of core dumps"


@probe("no capability", "EPERM", reached_by=ROOT)
def immutable_file(facts):
    """leaves a file that nobody can change or remove, not even the runner"""
    import fcntl

    with open("immutable", "w") as file:
        flags = ctypes.c_long(0)
        try:
            fcntl.ioctl(file, GET_FLAGS, flags)
        except OSError as error:
            raise Lacking(f"the file system has no flags: {error}") from None
        fcntl.ioctl(file, SET_FLAGS, ctypes.c_long(flags.value | IMMUTABLE))
        fcntl.ioctl(file, SET_FLAGS, flags)
    return "an immutable file"


@probe("no capability", "EPERM", reached_by=ROOT)
def file_capabilities(facts):
    """leaves a program with capabilities in its workspace, for an accomplice outside"""
    with open("capable", "w"):
        pass
    # Version 2 with CAP_SYS_ADMIN permitted and effective.
    os.setxattr("capable", "security.capability", bytes([1, 0, 0, 2, 0, 0, 0x20, 0] + [0] * 12))
    return "CAP_SYS_ADMIN for a file"


@probe("no user namespaces", *REFUSALS)
def user_namespace_by_clone(facts):
    """makes a process that is the superuser of a new user namespace, by the oldest call for it"""
    return in_child(clone)


def clone():
    child = call("clone", CLONE_NEWUSER | 17, 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return "clone"


@probe(NESTED, *REFUSALS)
def copy_of_the_root_with_attributes(facts):
    """takes a copy of the mount tree by the newest call for it (open_tree_attr)"""
    return any_of(lambda: in_child(clone_with_attributes), lambda: in_child(nested_clone_with_attributes))


def clone_with_attributes():
    attributes = (ctypes.c_uint64 * 4)(0, 1, 0, 0)
    return f"descriptor {call('open_tree_attr', -100, text('.'), OPEN_TREE_CLONE, ctypes.byref(attributes), 32)}"


def nested_clone_with_attributes():
    enter_own_user_namespace()
    return clone_with_attributes()
