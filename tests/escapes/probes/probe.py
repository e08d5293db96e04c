"""What a probe is, and how it answers.

A probe is a function that tries one way out of a job's box. It returns what it reached. It raises `OSError` when the
kernel refused, `Refused` when something else did, `Lacking` when this machine has nothing to try, and `SeenOutside`
when only the machine can see what became of it.
"""

import errno
import json
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

PROBES = {}

# Who reaches it where the wall is missing: everybody, the superuser only, or nobody, because the
# wall is the runner itself and the harness shows by other means that it was needed.
ANYBODY, ROOT, NOBODY = "anybody", "root", "nobody"


class Refused(Exception):
    """Says which answer the probe got instead of what it wanted."""


class SeenOutside(Exception):
    """Says that the machine has to look: `evidence.py`."""


class Lacking(Exception):
    """Says what this machine does not have, without which the probe says nothing."""


@dataclass(frozen=True)
class Probe:
    name: str
    tries: str
    wall: str
    answers: tuple
    reached_by: str
    run: Callable

    def described(self):
        return {
            "name": self.name,
            "tries": self.tries,
            "wall": self.wall,
            "answers": self.answers,
            "reached_by": self.reached_by,
        }


def probe(wall, *answers, reached_by=ANYBODY):
    """Registers a probe, which `wall` has to refuse by nothing but `answers`; its docstring says what it tries."""

    def register(function):
        name = function.__name__.replace("_", "-")
        PROBES[name] = Probe(name, function.__doc__, wall, answers, reached_by, function)
        return function

    return register


def answer(probe, facts):
    try:
        return {"verdict": "reached", "how": str(probe.run(facts))}
    except Refused as refused:
        return {"verdict": "refused", "how": str(refused)}
    except SeenOutside:
        return {"verdict": "outside", "how": ""}
    except Lacking as lacking:
        return {"verdict": "lacking", "how": str(lacking)}
    except OSError as error:
        return {"verdict": "refused", "how": name_of(error)}


def name_of(error):
    """Returns `EPERM` and the like, or the words of an error that has no number."""
    if isinstance(error, TimeoutError):
        return "timeout"
    return errno.errorcode.get(error.errno, str(error)) if error.errno and error.errno > 0 else str(error)


def any_of(*attempts):
    """Returns what the first attempt that succeeds returned; raises `Refused` with all answers when none does."""
    answers = set()
    for attempt in attempts:
        try:
            return attempt()
        except Refused as refused:
            answers.add(str(refused))
        except OSError as error:
            answers.add(name_of(error))
        except Lacking:
            continue
    if not answers:
        raise Lacking("nothing to try")
    raise Refused("; ".join(sorted(answers)))


def read_all(paths, wanted=b""):
    """Returns the first of `paths` that can be read and holds `wanted`."""

    def read(path):
        with open(path, "rb") as file:
            if wanted not in file.read(1 << 20):
                raise Refused("nothing in it")
        return f"read {path}"

    return any_of(*[lambda path=path: read(path) for path in paths])


def may_write(paths):
    """Returns the first of `paths` that opens for writing; writes nothing."""

    def write(path):
        with open(path, "ab"):
            return f"could write to {path}"

    return any_of(*[lambda path=path: write(path) for path in paths])


def in_child(attempt):
    """Runs `attempt` in a process of its own, whose death by a signal is an answer: `SIGSYS`."""
    code = (
        "import sys, json, os; sys.path.insert(0, os.getcwd() + '/probes')\n"
        f"import {attempt.__module__} as module, probe\n"
        f"one = probe.Probe('', '', '', (), '', lambda _: module.{attempt.__name__}())\n"
        "print(json.dumps(probe.answer(one, None)))"
    )
    done = subprocess.run(["python3", "-S", "-c", code], capture_output=True, text=True)
    if done.returncode < 0:
        raise Refused(signal.Signals(-done.returncode).name)
    if done.returncode:
        raise Refused(done.stderr.strip().splitlines()[-1])
    got = json.loads(done.stdout)
    if got["verdict"] == "reached":
        return got["how"]
    raise (Refused if got["verdict"] == "refused" else Lacking)(got["how"])
