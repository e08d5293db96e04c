"""Follows workflows to their end. What cannot work on this machine is left out, and the rest goes on without it."""

import re
import time

import vendor
from programs import INSTALL, Failed

# What an action may say of the machine that it runs on, and what it lacks then.
LACKS = (
    (re.compile(r"([\w.+-]+): (?:command )?not found"), "needs `{}`, which is not on this machine"),
    (re.compile(r"env: .?([\w.+-]+?).?: No such file"), "needs `{}`, which is not on this machine"),
    (re.compile(r'namespaces "([^"]+)" not found'), "looks into the namespace `{}`, which nothing of the app makes"),
    (re.compile(r"pod (\S+) does not have a host assigned"), "looks into pod `{}`, and the cluster here has no nodes"),
    (re.compile(r"The connection to the server (localhost:8080) was refused"), "has no kubeconfig: it asks `{}`"),
    (re.compile(r"Could not resolve host: (\S+)"), "needs the host `{}`, which is not there"),
    (re.compile(r"refused a connection to ([^\s:]+)"), "reaches `{}`, which is not among the hosts of the contract"),
)
# What an action looks for in the cluster in vain.
NOT_FOUND = re.compile(r'\(NotFound\): [\w.]+ "([^"]+)" not found')
# What `kubectl` says of the first of a list that is empty.
NONE_FOUND = re.compile(r"array index out of bounds: index 0, length 0")
# What a component may ask for that is not there: kinds of a newer API server or an operator, values of the stack.
LACKING_PARTS = (
    (
        re.compile(r'no matches for kind "([^"]+)" in version "([^"]+)"'),
        "needs `{}` of `{}`, which the cluster here lacks",
    ),
    (re.compile(r"has no kind `([^`]+)` of `([^`]+)`"), "needs `{}` of `{}`, which the cluster here lacks"),
    (
        re.compile(r"(\.[\w.\[\]-]+): field not declared in schema"),
        "sets `{}`, which the API server here is too old for",
    ),
    (
        re.compile(r"no install stack has an output `([^`]+)`"),
        "reads `{}` of the install stack, which has no such output",
    ),
)
WORKFLOW_SECS, LOOK_SECS = 1200, 0.5


def follow(app, workflow):
    """Waits until a workflow has ended, and returns what it shows. Cancels actions that cannot work here."""
    deadline, cancelled = time.monotonic() + WORKFLOW_SECS, set()
    while time.monotonic() < deadline:
        shown = app.ask("workflow", "show", workflow)
        if shown["state"] in ("succeeded", "failed", "cancelled"):
            return shown
        for node in shown["nodes"]:
            job = node.get("job")
            if action_of(node) and job and job not in cancelled and lacking(_log_on_disk(app, job)):
                cancelled.add(job)
                app.programs.answer("job", "cancel", job)
        time.sleep(LOOK_SECS)
    raise Failed(f"workflow {workflow} has not ended within {WORKFLOW_SECS} s")


def through(app, workflow, again=None):
    """Follows a workflow, and goes on without what cannot work here, by a deploy and then `again`.

    Returns how many parts ran.
    """
    done = 0
    for _ in range(20):
        shown = follow(app, workflow)
        done += sum(node["state"] == "succeeded" for node in shown["nodes"])
        if shown["state"] == "succeeded":
            return done
        if not leave_out_lacking(app, shown):
            raise Failed(f"{why(shown)}; {last_words(app, shown)}")
        vendor.sync_what_is_valid(app)
        app.ask("build", app.config.name)
        workflow = app.ask("deploy", INSTALL, "--no-wait")["workflow"]
        if again:
            follow(app, workflow)
            workflow = again()
    raise Failed("another action cannot work here, each time")


def leave_out_lacking(app, shown):
    """Leaves out the parts of a workflow that failed because of this machine; returns whether there were any."""
    found = False
    for node in shown["nodes"]:
        if node["state"] != "succeeded" and (what := lacking(node.get("reason", ""), LACKING_PARTS)):
            found |= app.config.leave_out("component", node["name"], what)
        name = action_of(node)
        if name and node["state"] != "succeeded" and node.get("job"):
            log = app.programs.output("job", "logs", node["job"])
            what = lacking(log) or needs_removed(app.config, log)
            found |= bool(what) and app.config.leave_out("action", name, what)
    return found


def lacking(said, patterns=LACKS):
    """Returns what an action, or another part, lacks here by what it said, or nothing."""
    matches = ((pattern.search(said), what) for pattern, what in patterns)
    return next((what.format(*match.groups()) for match, what in matches if match), None)


def needs_removed(config, log):
    """Returns which part that was left out would have made what an action looks for in the cluster, or nothing."""
    components = [name for kind, name in config.removed if kind == "component"]
    if components and NONE_FOUND.search(log):
        return f"finds an empty list in the cluster; left out are {', '.join(f'`{name}`' for name in components)}"
    for thing in NOT_FOUND.findall(log):
        for (kind, name), text in config.removed.items():
            if thing in text:
                return f"needs `{thing}`, which {kind} `{name}` would make, and that is left out"
    return None


def why(shown):
    """Returns the reasons why a workflow did not succeed."""
    failed = [one for one in shown["nodes"] if one["state"] not in ("succeeded", "skipped")]
    reasons = "; ".join(f"{one['name']}: {one.get('reason') or one['state']}" for one in failed)
    return f"the workflow ended as {shown['state']}: {reasons or shown.get('reason')}"


def last_words(app, shown):
    """Returns the last line that the job of a failed node wrote."""
    jobs = [node["job"] for node in shown["nodes"] if node.get("job") and node["state"] != "succeeded"]
    lines = app.programs.output("job", "logs", jobs[-1]).strip().splitlines() if jobs else []
    return lines[-1] if lines else "no log"


def action_of(node):
    """Returns the name of the action that a node runs: `action:check`, or with its event `action:check@post-...`."""
    kind, _, name = node["name"].partition(":")
    return name.partition("@")[0] if kind == "action" else None


def _log_on_disk(app, job):
    logs = (app.programs.files / "runner-state" / "logs").glob(f"{job}.*.log")
    return "".join(file.read_text(errors="replace") for file in logs)
