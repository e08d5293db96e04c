"""Ways to take the machine from everybody else: too much of something."""

import contextlib
import mmap
import os
import subprocess
import sys
import time

from probe import NOBODY, Refused, SeenOutside, any_of, probe

LIMITS = "limits of the job"
PROCESSES = 600
MEMORY = 64 << 30
DISK, PART = 512 << 20, 8 << 20
DETACHED = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
MEMORY_FILES = 600 << 20
FILES = 30_000
LOG = 8 << 20


@probe(LIMITS, "EAGAIN")
def fork_bomb(facts):
    """starts 600 processes"""
    children = []
    try:
        for _ in range(PROCESSES):
            child = os.fork()
            if child == 0:
                time.sleep(600)
            children.append(child)
        return f"{len(children)} processes"
    finally:
        for child in children:
            os.kill(child, 9)


@probe(LIMITS, "ENOMEM", "step `probe` ended with exit code 137")
def memory_bomb(facts):
    """asks for more memory than the machine gives a job"""
    memory = mmap.mmap(-1, MEMORY, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)
    memory.close()
    return f"{MEMORY >> 30} GiB"


@probe(LIMITS, "EFBIG", "ENOSPC", "EDQUOT")
def large_file(facts):
    """fills the disk that the runner's journal is on with one file"""
    with open("large", "wb") as file:
        os.posix_fallocate(file.fileno(), 0, DISK)
    return f"{DISK >> 20} MiB"


@probe(LIMITS, "because the workspace holds", "ENOSPC", "EDQUOT")
def disk_bomb(facts):
    """fills that disk with many files, and keeps them"""
    os.mkdir("large-files")
    for at in range(DISK // PART):
        with open(f"large-files/{at}", "wb") as file:
            os.posix_fallocate(file.fileno(), 0, PART)
    time.sleep(facts["until_noticed"])
    return f"{DISK >> 20} MiB"


@probe(LIMITS, "because the workspace holds", "ENOSPC", "EDQUOT")
def many_files(facts):
    """makes so many files that removing them takes the runner long, and keeps them"""
    os.mkdir("many")
    for at in range(FILES):
        os.close(os.open(f"many/{at}", os.O_CREAT | os.O_WRONLY))
    time.sleep(facts["until_noticed"])
    return f"{FILES} files"


@probe("the runner's own limit", "at most", reached_by=NOBODY)
def log_flood(facts):
    """writes 8 MiB of log, which the runner must cut; the harness counts what is left"""
    line = b"x" * 1023 + b"\n"
    for _ in range(LOG // len(line)):
        sys.stdout.buffer.write(line)
    sys.stdout.flush()
    raise SeenOutside


@probe("the job's processes end with it", "gone")
def stays_behind(facts):
    """leaves a process behind that no longer belongs to its group"""
    mark = facts["mark_of_daemon"]
    subprocess.Popen(["python3", "-c", "import time; time.sleep(600)", mark], start_new_session=True, **DETACHED)
    raise SeenOutside


@probe("size of each file system in memory", "ENOSPC", "nothing to write to")
def files_in_memory(facts):
    """fills the machine's memory with files, in every place in memory that it may write to"""
    with open("/proc/self/mounts") as mounts:
        mounted = [line.split()[1] for line in mounts if line.split()[2] == "tmpfs"]
    # Without a box: the one place that this machine has for it.
    places = facts["in_memory"] or mounted
    own = os.getcwd()

    def fill(place):
        paths = [f"{place}/freehold-escape-{os.getpid()}-{at}" for at in range(MEMORY_FILES // PART)]
        try:
            for path in paths:
                with open(path, "xb") as file:
                    os.posix_fallocate(file.fileno(), 0, PART)
        finally:
            for path in paths:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
        return f"{MEMORY_FILES >> 20} MiB in {place}"

    folders = [place for place in places if os.path.isdir(place) and not own.startswith(place)]
    writable = [place for place in folders if os.access(place, os.W_OK)]
    if not writable:
        raise Refused("nothing to write to")
    return any_of(*[lambda place=place: fill(place) for place in writable])
