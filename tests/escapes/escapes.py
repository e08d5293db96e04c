"""Tries every probe in a job's box, and the same without a box, where it has to succeed: else it could never fail.

Prints the figure `sandbox.escapes` and the same figure of each user, such as `sandbox.escapes_root`, as JSON lines. The
exit code is 1 when a probe got out, was refused by an answer that is not its wall's, or could not be shown to work
without the wall. Each run has a machine of its own: network,
metadata service, name server, system bus (`machine.py`), made by namespaces. Nothing outside of them is touched.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target") / "debug"
PROGRAM = "probe-runner"
# One that every user may run: not from somebody's home.
PYTHON = shutil.which("python3", path="/usr/bin:/bin:/usr/local/bin") or sys.executable
# Who runs the runner: root, an ordinary user whose jobs get another user (by /etc/subuid), and one whose jobs do not.
USERS = ("root", "ordinary", "alone")
# The ordinary user's number, which no machine has; `make-machine.sh` names it.
ORDINARY = 60_123

# What a kernel answers, without a box too, that was built without what a probe asks for.
NOT_IN_KERNEL = ("ENOSYS", "EAFNOSUPPORT", "EOPNOTSUPP")

sys.path.insert(0, str(ROOT / "tests/setup"))
from skips import ALL_SKIPPED, no_box, skip  # noqa: E402

SKIPPED = "skipped"


def main():
    args = arguments()
    probes = known_probes(args.only)
    wanted = args.user or (USERS[:2] if args.short and os.geteuid() == 0 else USERS)
    users = [user for user in wanted if user == "alone" or os.geteuid() == 0]
    for user in sorted(set(wanted) - set(users)):
        skip(f"escapes as {user}", "not started by root")
    for user in users[:]:
        if reason := lacking(user):
            skip(f"escapes as {user}", reason)
            users.remove(user)
    if not users:
        return ALL_SKIPPED
    judged = {user: [*faults_as(user, probes, args.verbose)] for user in users}
    every = [fault for faults in judged.values() for fault in faults]
    print("\n".join(filter(None, every)), file=sys.stderr)
    for figure in figures_of(judged):
        print(json.dumps(figure))
    return 1 if any(every) else 0


def figures_of(judged):
    """Returns the figure of all users together, then that of each user under which something was attempted."""
    every = [fault for faults in judged.values() for fault in faults]
    of_users = {f"sandbox.escapes_{user}": faults for user, faults in judged.items() if faults}
    return [figure(name, faults) for name, faults in {"sandbox.escapes": every, **of_users}.items()]


def figure(name, faults):
    wrong = sum(fault is not None for fault in faults)
    return {"name": name, "value": wrong, "attempted": len(faults), "passed": len(faults) - wrong, "seed": 0}


def faults_as(user, probes, is_verbose):
    """Yields what is wrong with the answers of each probe when `user` runs the runner, `None` if nothing is."""
    with ThreadPoolExecutor() as pool:
        boxed, bare = pool.map(lambda sandbox: in_machine(user, sandbox, probes), ("bubblewrap", "none"))
    for probe in probes:
        name = probe["name"]
        fault = judge(probe, boxed[name], bare[name], user)
        # A probe that was skipped counts as not attempted.
        if fault != SKIPPED:
            yield fault and f"{user}: {name}: {fault}"
        if is_verbose or fault not in (None, SKIPPED):
            show(user, probe, boxed[name], bare[name])


def arguments():
    parser = argparse.ArgumentParser(prog="tests/escapes/run", description=__doc__)
    parser.add_argument("--only", nargs="+", default=[], metavar="PROBE", help="try these probes")
    parser.add_argument("--user", nargs="+", choices=USERS, default=[], help="run the runner as these users (all)")
    parser.add_argument("--short", action="store_true", help="leave out the user whose jobs have no other user")
    parser.add_argument("--verbose", action="store_true", help="show every answer")
    return parser.parse_args()


def known_probes(names):
    done = subprocess.run([sys.executable, HERE / "probes/main.py"], stdout=subprocess.PIPE, check=True, text=True)
    probes = [json.loads(line) for line in done.stdout.splitlines()]
    if unknown := set(names) - {probe["name"] for probe in probes}:
        sys.exit(f"there is no probe {', '.join(sorted(unknown))}; `python3 {HERE}/probes/main.py` lists all")
    return [probe for probe in probes if not names or probe["name"] in names]


def judge(probe, boxed, bare, user):
    """Returns what is wrong with the answers of a probe in the box and without one, nothing, or that it was skipped."""
    if user == "alone" and probe["wall"] == "another user":
        skip(f"escapes {probe['name']} as {user}", "a job has the runner's user where no range is in /etc/subuid")
        return SKIPPED
    if boxed["verdict"] == "reached":
        return f"GOT OUT past {probe['wall']}: {boxed['how']}"
    if bare["verdict"] == "lacking" or bare["how"] in NOT_IN_KERNEL:
        skip(f"escapes {probe['name']} as {user}", f"this machine has nothing to try: {bare['how']}")
        return SKIPPED
    if boxed["verdict"] != "refused":
        return f"gave no answer in the box: {boxed['how']}"
    parts = boxed["how"].split("; ")
    if strange := [part for part in parts if not any(part.startswith(answer) for answer in probe["answers"])]:
        return f"was refused by {strange}, and {probe['wall']} answers {probe['answers']}"
    must = {"anybody": True, "root": user == "root", "nobody": False}
    if must[probe["reached_by"]] and bare["verdict"] != "reached":
        return f"was refused without a box too ({bare['how']}), so that its refusal shows nothing"
    return None


def show(user, probe, boxed, bare):
    print(f"  {user} {probe['name']}: {probe['tries']}", file=sys.stderr)
    for name, answer in (("box", boxed), ("none", bare)):
        print(f"    {name:<5} {answer['verdict']} in {answer['seconds']} s: {answer['how']}", file=sys.stderr)


def in_machine(user, sandbox, probes):
    """Runs the probes on a machine of their own; returns their answers by name."""
    with tempfile.TemporaryDirectory(prefix="freehold-escapes-", ignore_cleanup_errors=True) as folder:
        folder = Path(folder)
        place(TARGET / PROGRAM, folder / PROGRAM)
        shutil.copytree(HERE, folder / "escapes", ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "names.json").write_text(json.dumps([probe["name"] for probe in probes]))
        os.chmod(folder, 0o755)
        world = [PYTHON, "-B", str(folder / "escapes/world.py"), str(folder), sandbox]
        make = ["sh", str(folder / "escapes/make-machine.sh"), str(folder), user]
        done = subprocess.run([*become(), *make, *drop(user), *world], stdout=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit(f"escapes: the machine of {user} without network ended with {done.returncode}; see above")
        return {answer["name"]: answer for answer in map(json.loads, done.stdout.splitlines())}


def place(program, at):
    if not program.exists():
        sys.exit(f"escapes: there is no {program}; run `cargo build --workspace --bins`")
    try:
        os.link(program, at)
    except OSError:
        shutil.copy2(program, at)


def lacking(user):
    """Returns why this machine cannot be split into namespaces for `user`, or why it makes no box there, or nothing."""
    done = subprocess.run([*become(), "true"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        return f"this machine permits no namespaces: {done.stderr.strip()}"
    return no_box([*become(), *drop(user)])


def become():
    """Makes namespaces for the network and mounts, in which this process may set them up."""
    if os.geteuid() == 0:
        return ["unshare", "--net", "--mount", "--"]
    return ["unshare", "--user", "--map-current-user", "--keep-caps", "--net", "--mount", "--"]


def drop(user):
    """Gives up, for the runner, what was needed to set the machine up."""
    if user == "root":
        return []
    if os.geteuid() == 0:
        number = str(ORDINARY)
        return ["setpriv", "--reuid", number, "--regid", number, "--clear-groups", "--inh-caps=-all", "--"]
    return ["setpriv", "--ambient-caps=-all", "--inh-caps=-all", "--"]


if __name__ == "__main__":
    sys.exit(main())
