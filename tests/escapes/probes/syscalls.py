"""System calls that Python has no function for."""

import ctypes
import os
import platform

from probe import Lacking

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long

# x86-64 and arm64 (which has no `modify_ldt`); calls from 424 on have the same number everywhere.
NUMBERS = {
    "socketpair": (53, 199),
    "clone": (56, 220),
    "ptrace": (101, 117),
    "personality": (135, 92),
    "modify_ldt": (154, None),
    "pivot_root": (155, 41),
    "adjtimex": (159, 171),
    "acct": (163, 89),
    "mount": (165, 40),
    "reboot": (169, 142),
    "kexec_load": (246, 104),
    "add_key": (248, 217),
    "keyctl": (250, 219),
    "ioprio_set": (251, 30),
    "unshare": (272, 97),
    "perf_event_open": (298, 241),
    "fanotify_init": (300, 262),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "setns": (308, 268),
    "process_vm_readv": (310, 270),
    "kcmp": (312, 272),
    "finit_module": (313, 273),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "open_tree": (428, 428),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "pidfd_open": (434, 434),
    "clone3": (435, 435),
    "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
    "mount_setattr": (442, 442),
    "quotactl_fd": (443, 443),
    "open_tree_attr": (467, 467),
}

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000


def number(name):
    machine = platform.machine()
    if machine not in ("x86_64", "aarch64"):
        raise Lacking(f"no numbers of system calls for {machine}")
    return NUMBERS[name][machine == "aarch64"]


def call(name, *arguments):
    """Makes the system call `name` and returns its result; raises `OSError`."""
    return call_number(number(name), *arguments)


def call_number(which, *arguments):
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in arguments]
    result = LIBC.syscall(ctypes.c_long(which), *words)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def text(words):
    return ctypes.c_char_p(words.encode())


def enter_own_user_namespace(more=CLONE_NEWNS):
    """Makes this process the superuser of a new user namespace; the most that an ordinary user can ask for."""
    user, group = os.geteuid(), os.getegid()
    call("unshare", CLONE_NEWUSER | more)
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
