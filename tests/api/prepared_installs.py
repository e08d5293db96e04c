"""Installs that are each in the state that certain operations need, and that no other operation changes."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from installs import create, launch
from programs import CUSTOMER, TENANT

RUNBOOK, CHECK = "look", "load-test"
# All that it has is deployed, so that its checks and its runbook can run.
CALM = "calm"
# The first deploy of each has failed. A workflow that continues has not ended, so each is for one operation.
FAILED = {"RetryJob": "failed-job", "ResumeWorkflow": "failed-deploy", "SkipNode": "failed-node"}
# The plans of its first deploy wait for two approvals.
ASKING = "asking"
# The component with Terraform, and the only resource of its module.
PAGE, ADDRESS = "page", "terraform_data.page"
STATE = {"Bucket": f"fh-{TENANT}--{CALM}--{CUSTOMER}", "Key": f"terraform/{PAGE}.tfstate"}


@dataclass
class Prepared:
    """What the prepared installs have."""

    # The failed node of each, by the operation that continues its workflow: the workflow, the node's name and its job.
    failed: dict
    # The jobs that wait for an approval, with the digests of their plans.
    plans: list
    # A run that has failed, and one that waits for a runner.
    failed_run: str
    open_run: str = ""


def prepare(programs):
    """Makes the prepared installs. Their runners are left running."""
    unfriendly = ("--input", "greeting=unfriendly")
    has_page = ("--on", PAGE) if programs.terraform else ()
    options = {CALM: has_page, ASKING: ("--on", "archive", "--approval-option", "prompt")}
    options |= dict.fromkeys(FAILED.values(), unfriendly)
    workflows = {name: create(programs, name, *more)["workflow"] for name, more in options.items()}
    # A launch mostly waits for its stack.
    with ThreadPoolExecutor() as launches:
        list(launches.map(lambda name: launch(programs, name), options))
    failed = {operation: _failed_node(programs, workflows[name]) for operation, name in FAILED.items()}
    programs.freehold_quietly("workflow", "watch", workflows[CALM])
    if programs.terraform:
        _make_drift(programs)
    failed_run = _failed_run(programs, FAILED["SkipNode"])
    return Prepared(failed, _waiting_plans(programs, workflows[ASKING]), failed_run)


def start_run(programs):
    """Starts a run in an install whose runner has ended."""
    return programs.freehold_json("runbook", "run", FAILED["ResumeWorkflow"], RUNBOOK, "--no-wait")["run"]


def _failed_node(programs, workflow):
    programs.answer("workflow", "watch", workflow)
    nodes = programs.freehold_json("workflow", "show", workflow)["nodes"]
    [node] = [node for node in nodes if node["state"] == "failed"]
    return {"workflow": workflow, "node": node["name"], "job": node["job"]}


def _failed_run(programs, install):
    programs.answer("runbook", "run", install, RUNBOOK)
    [run] = programs.freehold_json("runbook", "runs", install)
    return run["run"]


def _make_drift(programs):
    """Changes a resource as somebody does who may write to the customer's bucket, and lets a check find the change."""
    s3 = programs.client("s3", CUSTOMER)
    state = json.load(s3.get_object(**STATE)["Body"])
    attributes = state["resources"][0]["instances"][0]["attributes"]
    for name in ("input", "output"):
        attributes[name]["value"] = "changed by hand"
    s3.put_object(**STATE, Body=json.dumps(state).encode())
    programs.freehold_quietly("drift", "detect", CALM)


def _waiting_plans(programs, workflow):
    found = []

    def two_wait():
        nodes = programs.freehold_json("workflow", "show", workflow)["nodes"]
        waiting = [node["job"] for node in nodes if node["state"] == "waiting_for_approval"]
        jobs = [programs.freehold_json("job", "show", job) for job in waiting]
        found[:] = [(job["job"], job["plan"]["proposed"]["plan"]) for job in jobs if job.get("plan")]
        return len(found) == 2

    programs.wait_until("two plans wait for approval", two_wait)
    return found
