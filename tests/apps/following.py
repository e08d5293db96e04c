"""Follows workflows to their end. What cannot work on this machine is left out, and the rest continues without it."""

import time

import kinds
import lacks
import sources
import vendor
from programs import INSTALL, Failed

WORKFLOW_SECS, LOOK_SECS = 1200, 0.5
# So often the log of a failed action is read: its last parts may come after its end.
LOG_LOOKS = 20
# An action that has written nothing for this time is ended. One that waits for a machine continues for five minutes.
PATIENCE_SECS = 60


def follow(app, workflow):
    """Waits until a workflow has ended, and returns what it shows. Cancels actions that cannot work here, and those
    that wait long for what a stand-in has told them of."""
    deadline, cancelled, began = time.monotonic() + WORKFLOW_SECS, set(), {}
    while time.monotonic() < deadline:
        view = app.ask("workflow", "show", workflow)
        if view["state"] in ("succeeded", "failed", "cancelled"):
            app.ran_actions |= {action_of(node) for node in view["nodes"] if node["state"] == "succeeded"} - {None}
            return view
        for node in view["nodes"]:
            job = node.get("job")
            if not action_of(node) or not job or job in cancelled or not (log := _log_on_disk(app, job)):
                continue
            waited = time.monotonic() - began.setdefault(job, time.monotonic())
            if lacks.of(log) or waited > PATIENCE_SECS:
                cancelled.add(job)
                if waited > PATIENCE_SECS:
                    app.cut_short[job] = PATIENCE_SECS
                app.programs.answer("job", "cancel", job)
        time.sleep(LOOK_SECS)
    raise Failed(f"workflow {workflow} has not ended within {WORKFLOW_SECS} s")


def through(app, workflow, again=None):
    """Follows a workflow, and continues without what cannot work here, by a deploy and then `again`.

    Returns how many parts ran.
    """
    done = 0
    for _ in range(20):
        view = follow(app, workflow)
        done += sum(node["state"] == "succeeded" for node in view["nodes"])
        if view["state"] == "succeeded":
            return done
        if not leave_out_lacking(app, view):
            raise Failed(f"{why(view)}; {last_words(app, view)}")
        vendor.sync_what_is_valid(app)
        app.ask("build", app.config.name)
        workflow = app.ask("deploy", INSTALL, "--no-wait")["workflow"]
        if again:
            follow(app, workflow)
            workflow = again()
    raise Failed("another action cannot work here, each time")


def leave_out_lacking(app, view):
    """Mends or leaves out parts of a workflow that failed because of this machine; returns whether there were any."""
    found = False
    for node in view["nodes"]:
        if node["state"] == "succeeded":
            continue
        reason, name = node.get("reason", ""), action_of(node)
        if (
            define_kinds(app, reason)
            or use_older_kinds(app, node["name"], reason)
            or drop_field(app, node["name"], reason)
            or drop_empty_defaults(app, node["name"], reason)
            or make_up_output(app, node["name"], reason)
        ):
            found = True
        elif what := lacks.of(reason, lacks.OF_PARTS) or reads_lost_action(app, reason):
            found |= app.fail_action(name, what) if name else app.config.leave_out("component", node["name"], what)
            continue
        if name and node.get("job") and (what := why_action_failed(app, name, node["job"])):
            found |= app.fail_action(name, what)
    return found


def define_kinds(app, reason):
    """Defines kinds that the cluster lacks; returns whether it has all of them now, and did not before."""
    lacking = [one for one in kinds.lacking(reason) if "." in one[1] and one not in app.kinds]
    made = kinds.stand_in(app.programs, lacking) if lacking and app.cluster else []
    app.kinds += made
    return bool(lacking) and made == lacking


def use_older_kinds(app, name, reason):
    """Writes an older version of kinds that the API server has only so into a component; returns whether there are."""
    changed = False
    for kind, version in kinds.lacking(reason) if app.cluster else ():
        older = kinds.older(app.programs, kind, version)
        if older and sources.write_version(app, name, version, older):
            app.changed.setdefault(name, []).append(f"with `{older}` for `{version}`")
            changed = True
    return changed


def drop_field(app, name, reason):
    """Removes a field that the API server is too old for from a manifest; returns whether there was one."""
    if not (found := lacks.FIELD.search(reason)) or f"without `{found[1]}`" in app.changed.get(name, ()):
        return False
    key = found[1].rpartition(".")[2]
    if not app.config.remove_field(name, key):
        return False
    app.changed.setdefault(name, []).append(f"without `{found[1]}`")
    return True


def drop_empty_defaults(app, name, reason):
    """Removes the empty defaults of definitions of kinds, which the API server reads as null, from a component; returns
    whether there were any."""
    if not lacks.EMPTY_DEFAULT.search(reason) or not sources.drop_empty_defaults(app, name):
        return False
    app.changed.setdefault(name, []).append("without defaults that are empty texts")
    return True


def make_up_output(app, name, reason):
    """Makes up what the sandbox reads of the install stack and no such stack has; returns whether it was that."""
    found = lacks.NO_OUTPUT.search(reason)
    if not found or name != "sandbox" or not app.config.make_up_output(found[1]):
        return False
    app.config.left_out["sandbox", found[1]] = "no install stack has such an output; the sandbox gets a made-up text"
    return True


def reads_lost_action(app, reason):
    """Returns that a component reads the outputs of an action that failed or is left out here, or nothing."""
    found = lacks.NO_ACTION_OUTPUT.search(reason)
    if not found or (found[1] not in app.failed_actions and ("action", found[1]) not in app.config.left_out):
        return None
    return f"reads the outputs of action `{found[1]}`, which has none here"


def why_action_failed(app, name, job):
    """Returns why an action could not succeed on this machine, or nothing when that is not the reason."""
    for look in range(LOG_LOOKS):
        time.sleep(LOOK_SECS if look else 0)
        log = app.programs.output("job", "logs", job)
        if what := lacks.of(log) or lacks.removed(app.config, log):
            return what
        if what := lacks.unmade(app.config, log, app.stand_ins, [kind for kind, _ in app.kinds]):
            return what
    entry, last = app.config.entries("action").get(name), (log.strip().splitlines() or ["no log"])[-1]
    read = lacks.read_stand_ins(entry[0].read_text(), app.stand_ins) if entry else []
    if read:
        ended = f"waited for {app.cut_short[job]} s and was ended" if job in app.cut_short else "failed"
        return f"was told what is made up, by {', '.join(f'`{one}`' for one in read)}, and {ended}: `{last}`"
    return None


def why(view):
    """Returns the reasons why a workflow did not succeed."""
    failed = [one for one in view["nodes"] if one["state"] not in ("succeeded", "skipped")]
    reasons = "; ".join(f"{one['name']}: {one.get('reason') or one['state']}" for one in failed)
    return f"the workflow ended as {view['state']}: {reasons or view.get('reason')}"


def last_words(app, view):
    """Returns the last line that the job of a failed node wrote."""
    jobs = [node["job"] for node in view["nodes"] if node.get("job") and node["state"] != "succeeded"]
    lines = app.programs.output("job", "logs", jobs[-1]).strip().splitlines() if jobs else []
    return lines[-1] if lines else "no log"


def action_of(node):
    """Returns the name of the action that a node runs: `action:check`, or with its event `action:check@post-...`."""
    kind, _, name = node["name"].partition(":")
    return name.partition("@")[0] if kind == "action" else None


def _log_on_disk(app, job):
    logs = (app.programs.files / "runner-state" / "logs").glob(f"{job}.*.log")
    return "".join(file.read_text(errors="replace") for file in logs)
