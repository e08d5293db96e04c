"""Ways out through files: what is shown, what is left behind, devices, and the kernel's own file systems."""

import contextlib
import fcntl
import os
import pty
import stat
import struct
import termios
import time

from probe import NOBODY, ROOT, Lacking, Refused, SeenOutside, any_of, in_child, may_write, probe
from syscalls import call

MOUNTS = "mount namespace"
PLAIN_FILES = "the runner takes plain files only"
NOT_PLAIN = "step `probe`, outputs: they are not in a regular file"


# Without a box these are files and a folder of the machine that the runner may write to; in it, also the machine's own.


@probe("mount namespace, read-only root", "EROFS", "EACCES", "ENOENT")
def write_outside_workspace(facts):
    """makes a file next to the programs and settings of the machine"""

    def make(folder):
        path = f"{folder}/freehold-escape-{os.getpid()}"
        with open(path, "x"):
            os.unlink(path)
            return f"made {path}"

    return any_of(*[lambda folder=folder: make(folder) for folder in facts["outside"]])


@probe("read-only binds", "EROFS", "EACCES", "ENOENT")
def write_to_what_is_shown(facts):
    """opens files for writing that the box shows read-only"""
    return may_write(facts["shown"])


@probe("read-only binds", "EROFS", "EACCES", "EPERM", "ENOENT")
def change_what_is_shown(facts):
    """changes times, owners and modes of what the box shows read-only, to what they are"""

    def change(path):
        data = os.stat(path)
        return any_of(
            lambda: os.utime(path, ns=(data.st_atime_ns, data.st_mtime_ns)) or f"changed times of {path}",
            lambda: os.chown(path, data.st_uid, data.st_gid) or f"changed the owner of {path}",
            lambda: os.chmod(path, stat.S_IMODE(data.st_mode)) or f"changed the mode of {path}",
        )

    return any_of(*[lambda path=path: change(path) for path in facts["shown"]])


@probe(PLAIN_FILES, NOT_PLAIN)
def symlink_for_outputs(facts):
    """puts a symbolic link to a file of the runner's in place of its outputs"""
    os.unlink(os.environ["FREEHOLD_OUTPUTS"])
    os.symlink(facts["stolen"], os.environ["FREEHOLD_OUTPUTS"])
    raise SeenOutside


# Without a box, the runner refuses the link itself, and whether it meets the link is chance.
@probe(PLAIN_FILES, NOT_PLAIN, "plain", reached_by=NOBODY)
def swapped_outputs(facts):
    """puts a plain file and a link to a file of the runner's in place of its outputs, in turns, while they are read"""
    path, plain = os.environ["FREEHOLD_OUTPUTS"], '{"verdict": "refused", "how": "plain"}'
    if os.fork() == 0:
        nothing = os.open("/dev/null", os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nothing, descriptor)
        os.setsid()
        deadline = time.monotonic() + 3
        while time.monotonic() < deadline:
            os.symlink(facts["stolen"], "next")
            os.rename("next", path)
            with open("next", "w") as file:
                file.write(plain)
            os.rename("next", path)
        os._exit(0)
    time.sleep(0.2)
    raise SeenOutside


# Without a box, the runner refuses a file with two names itself.
@probe(MOUNTS, "ENOENT", reached_by=NOBODY)
def hard_link_for_outputs(facts):
    """puts a hard link to a file of the runner's in place of its outputs"""
    os.unlink(os.environ["FREEHOLD_OUTPUTS"])
    os.link(facts["stolen"], os.environ["FREEHOLD_OUTPUTS"])
    raise SeenOutside


@probe("another user", "not the superuser's", "EINVAL", "EPERM", reached_by=ROOT)
def setuid_file(facts):
    """leaves a setuid program of the superuser in its workspace, for an accomplice outside"""
    with open("setuid", "w") as file:
        # Refused or not: whose it is may change when the job has ended.
        with contextlib.suppress(OSError):
            os.fchown(file.fileno(), 0, 0)
        os.fchmod(file.fileno(), 0o4755)
    raise SeenOutside


@probe("no capability", "EPERM", reached_by=ROOT)
def device_node(facts):
    """makes a device node of the null device, as it could one of the disk"""
    os.mknod("device", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    os.unlink("device")
    return "a device node"


@probe("a /dev of its own", "ENOENT", "EACCES", "EPERM", "ENXIO", reached_by=ROOT)
def devices_of_the_machine(facts):
    """opens disks, memory, virtual machines, tunnels and the log of the kernel under /dev"""
    names = ["mem", "port", "kmsg", "kvm", "fuse", "net/tun", "loop-control", "mapper/control", "vhost-vsock"]
    names += ["sda", "vda", "nvme0n1", "xvda", "dm-0", "vport0p1", "hwrng", "userfaultfd", "cpu/0/msr", "nsm"]
    existing = [f"/dev/{name}" for name in names]

    def attempt(path):
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
        return f"opened {path}"

    return any_of(*[lambda path=path: attempt(path) for path in existing])


@probe("no terminal, seccomp filter", "EPERM", "EIO", "SIGSYS")
def type_into_the_terminal(facts):
    """puts characters into the input of a terminal (TIOCSTI), as if a person had typed them"""
    return in_child(inject)


def inject():
    # An own terminal, since a service has none: what is asked is whether the call is let through.
    os.setsid()
    _, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    fcntl.ioctl(terminal, termios.TIOCSTI, b"x")
    return "typed a character"


@probe("no terminal", "ENXIO", "ENOTTY", "ENOENT", reached_by=NOBODY)
def terminal_of_the_runner(facts):
    """looks for the terminal of whoever started the runner"""

    def attempt(descriptor):
        fcntl.ioctl(descriptor, termios.TIOCGWINSZ, struct.pack("8x"))
        return f"descriptor {descriptor} is a terminal"

    return any_of(
        lambda: os.open("/dev/tty", os.O_RDWR) and "opened /dev/tty",
        *[lambda descriptor=descriptor: attempt(descriptor) for descriptor in (0, 1, 2)],
    )


@probe("read-only /proc/sys", "EROFS", "EACCES", "ENOENT", reached_by=ROOT)
def core_pattern(facts):
    """opens the kernel's setting for writing that names a program to run on a crash, outside of every box"""
    return may_write(["/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe"])


@probe("read-only /proc", "EROFS", "EACCES", "ENOENT", "EPERM", reached_by=ROOT)
def switches_of_the_kernel(facts):
    """opens other switches of the kernel under /proc for writing"""
    names = ["sysrq-trigger", "sys/vm/drop_caches", "sys/kernel/hostname", "sys/fs/binfmt_misc/register", "irq/0"]
    return may_write([f"/proc/{name}" for name in names])


@probe("no capability", "EACCES", "ENOENT", "EPERM", "EIO", "nothing in it", reached_by=ROOT)
def memory_of_the_kernel(facts):
    """reads the memory of the kernel, or the addresses in it"""

    def addresses():
        with open("/proc/kallsyms") as symbols:
            line = next(symbols, "0 ")
        if int(line.split()[0], 16) == 0:
            raise Refused("nothing in it")
        return f"addresses: {line.strip()}"

    def core():
        os.close(os.open("/proc/kcore", os.O_RDONLY))
        return "opened /proc/kcore"

    return any_of(core, addresses)


@probe("no /sys", "ENOENT", "EROFS", "EACCES", reached_by=ROOT)
def writes_to_sys(facts):
    """opens settings of devices and of the kernel under /sys for writing"""
    names = ["kernel/mm/transparent_hugepage/enabled", "kernel/uevent_helper", "class/net/lo/mtu", "power/state"]
    return may_write([f"/sys/{name}" for name in names])


@probe("no /sys", "ENOENT", "EROFS", "EACCES", "EPERM", reached_by=ROOT)
def cgroup_of_the_machine(facts):
    """opens the lists of processes of the control groups above its own for writing, and the release agent"""
    top = "/sys/fs/cgroup"
    paths = [f"{top}/cgroup.procs", f"{top}/memory/cgroup.procs", f"{top}/unified/cgroup.procs"]
    return may_write([*paths, f"{top}/memory/release_agent", f"{top}/devices/release_agent"])


@probe("no capability", "EPERM", reached_by=ROOT)
def file_by_handle(facts):
    """opens a file by its handle, which looks at no path and so at no mount namespace"""
    import ctypes

    class Handle(ctypes.Structure):
        _fields_ = [("size", ctypes.c_uint), ("kind", ctypes.c_int), ("bytes", ctypes.c_ubyte * 128)]

    handle, mount = Handle(size=128), ctypes.c_int()
    path = ctypes.c_char_p(b".")
    try:
        call("name_to_handle_at", -100, path, ctypes.byref(handle), ctypes.byref(mount), 0)
    except OSError as error:
        if error.errno == 95:
            raise Lacking("the file system has no handles") from None
        raise
    folder = os.open(".", os.O_RDONLY)
    return f"descriptor {call('open_by_handle_at', folder, ctypes.byref(handle), os.O_RDONLY)}"
