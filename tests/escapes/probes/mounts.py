"""Ways out through mounts and namespaces. An ordinary user tries each in a user namespace of its own, too."""

import ctypes
import os
import subprocess

from probe import ROOT, Refused, any_of, in_child, probe
from syscalls import CLONE_NEWNET, CLONE_NEWNS, CLONE_NEWUSER, call, enter_own_user_namespace, text

NESTED = "no capability, no user namespaces"
REFUSALS = ("EPERM", "ENOSPC", "ENOSYS")
BIND, REMOUNT, RECURSIVE_PRIVATE = 0x1000, 0x20, 0x44000
OPEN_TREE_CLONE = 1


def with_and_without_namespace(attempt):
    """Makes the attempt as it is, and as the superuser of a new user namespace."""
    return any_of(lambda: in_child(attempt), lambda: in_child(globals()[f"nested_{attempt.__name__}"]))


def nested(attempt):
    """Gives `attempt` a sibling that enters a user namespace first."""

    def inside():
        enter_own_user_namespace()
        return attempt()

    inside.__name__ = f"nested_{attempt.__name__}"
    inside.__module__ = attempt.__module__
    globals()[inside.__name__] = inside
    return attempt


@probe("no user namespaces", *REFUSALS)
def user_namespace(facts):
    """makes a user namespace, in which it is the superuser and the kernel offers it far more code"""
    return in_child(make_user_namespace)


def make_user_namespace():
    enter_own_user_namespace(CLONE_NEWNET)
    return "a user namespace"


@probe("no user namespaces", *REFUSALS)
def user_namespace_by_clone3(facts):
    """makes a user namespace by the call whose arguments no filter can read"""
    return in_child(clone3)


def clone3():
    arguments = (ctypes.c_uint64 * 11)(CLONE_NEWUSER, 0, 0, 0, 17)
    child = call("clone3", ctypes.byref(arguments), ctypes.sizeof(arguments))
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return "clone3"


@probe(NESTED, *REFUSALS)
def mount(facts):
    """mounts a new file system"""
    return with_and_without_namespace(mount_new)


@nested
def mount_new():
    os.makedirs("mounted", exist_ok=True)
    call("mount", text("none"), text("mounted"), text("tmpfs"), 0, 0)
    return "mounted a tmpfs"


@probe(NESTED, *REFUSALS)
def mount_by_new_calls(facts):
    """mounts by fsopen, fsconfig and fsmount, which older filters do not know"""
    return with_and_without_namespace(open_file_system)


@nested
def open_file_system():
    made = call("fsopen", text("tmpfs"), 0)
    call("fsconfig", made, 6, 0, 0, 0)
    return f"descriptor {call('fsmount', made, 0, 0)}"


@probe(NESTED, *REFUSALS)
def copy_of_the_root(facts):
    """takes a copy of the whole mount tree that may be changed (open_tree, mount_setattr)"""
    return with_and_without_namespace(clone_tree)


@nested
def clone_tree():
    tree = call("open_tree", -100, text("."), OPEN_TREE_CLONE)
    return f"descriptor {tree}"


@probe("no capability", "EPERM", reached_by=ROOT)
def remount(facts):
    """makes writable what the box shows read-only"""
    path = facts["read_only"]

    def again(flags):
        call("mount", text("none"), text(path), 0, flags, 0)
        return f"remounted {path}"

    def set_attributes():
        attributes = (ctypes.c_uint64 * 4)(0, 1, 0, 0)
        call("mount_setattr", -100, text(path), 0, ctypes.byref(attributes), 32)
        return f"mount_setattr {path}"

    return any_of(lambda: again(BIND | REMOUNT), set_attributes)


@probe(NESTED, *REFUSALS)
def pivot_root(facts):
    """changes the root of its mount namespace"""
    return with_and_without_namespace(pivot)


@nested
def pivot():
    try:
        # Else the root of every process of this namespace would change.
        call("unshare", CLONE_NEWNS)
    except OSError:
        call("pivot_root", text("."), text("."))
    os.makedirs("new-root", exist_ok=True)
    call("mount", text("none"), text("/"), 0, RECURSIVE_PRIVATE, 0)
    call("mount", text("none"), text("new-root"), text("tmpfs"), 0, 0)
    os.makedirs("new-root/old", exist_ok=True)
    call("pivot_root", text("new-root"), text("new-root/old"))
    return "pivot_root"


@probe(NESTED, *REFUSALS)
def chroot(facts):
    """leaves a root directory by chroot and `..`"""
    return with_and_without_namespace(leave_root)


@nested
def leave_root():
    os.makedirs("new-root", exist_ok=True)
    above = os.open("/", os.O_RDONLY)
    os.chroot("new-root")
    os.fchdir(above)
    return f"chroot; the directory above has {len(os.listdir('.'))} names"


@probe("no user namespaces", "bwrap: ")
def nested_bwrap(facts):
    """runs bubblewrap again, to get a box of its own making"""
    command = ["bwrap", "--unshare-all", "--dev-bind", "/", "/", "--tmpfs", "/tmp", "true"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise Refused(done.stderr.strip().splitlines()[-1].replace(";", ","))
    return "a box inside the box"
