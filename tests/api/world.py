"""The world that the fuzzed requests meet: a tenant, an app with a build and a release, and installs of the app.

One install is changed by every operation. Others are each in the state that certain operations need, and only these
get them.
"""

import base64
import json
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from installs import APP, create, launch, start_runner
from prepared_installs import ADDRESS, CALM, CHECK, PAGE, RUNBOOK, prepare, start_run
from programs import INSTALL, REGION, ROOT, TENANT, VENDOR

RELEASE, ACTION = "first", "show"
WEBHOOK = "ci"
# Its calls are signed: see `hooks.py`. It runs an action, which takes an empty body, in an install that is never busy.
SIGNED_WEBHOOK = "signed"
# The app as which documents are synced, so that the installs do not get them.
DRAFT = "draft"
# Each is for one webhook only.
FREE_KEYS = 20
# The member whom operations read and change, and those whom an operation removes, each once.
MEMBER, LEAVING = "ana@example.com", 20
# A second install waits for its runner for ever, so that one is left to read when the other is changed.
WAITING = "initech"
# One in which nothing runs is deleted.
UNUSED = "hooli"


@dataclass
class Known:
    """Values that exist in the world, by the name of their dictionary, and the parameters that take them."""

    host: str
    # Files for the hooks: the document of an app that a sync takes, and the key that signs calls of a webhook.
    document: Path
    webhook_key: Path
    values: dict = field(default_factory=dict)
    parameters: dict = field(default_factory=dict)
    # By the id of an operation: the parameters that take other values there.
    of_operation: dict = field(default_factory=dict)

    def know(self, name, values, *parameters):
        self.values[name] = values
        self.parameters.update(dict.fromkeys(parameters, name))

    def know_for(self, operation, values):
        """Adds the only value of each of these parameters in one operation."""
        names = {parameter: f"{operation} {parameter}" for parameter in values}
        self.values.update({names[parameter]: [value] for parameter, value in values.items()})
        self.of_operation[operation] = names


def make(programs):
    """Makes the world with the command, as a vendor and a customer do, and returns what is in it."""
    programs.step("local cloud and tenant")
    programs.start_own_cloud()
    functions, principal = ROOT / "target/lambda/local", f"arn:aws:iam::{VENDOR}:root"
    deploy = ("tenant", "deploy", "--name", TENANT, "--functions", functions, "--build-runner-principal", principal)
    deploy += ("--webhooks", "on")
    deployed = programs.freehold_json(*deploy)
    programs.step("an app with its build and a release")
    version = programs.freehold_json("app", "sync", app(programs))["version"]
    builder(programs)
    built = programs.freehold_json("build", APP)
    programs.freehold_quietly("release", "create", APP, "--name", RELEASE)
    programs.step("an install with its deploy, and one that waits")
    workflow = create(programs, INSTALL)["workflow"]
    launch(programs, INSTALL)
    ended = programs.freehold_json("workflow", "watch", workflow)
    keys = [webhook(programs, WEBHOOK, "--install", INSTALL, "--deploy")["key"]]
    keys += [public_key() for _ in range(FREE_KEYS)]
    waiting = create(programs, WAITING)
    programs.step("installs for the operations that need a certain state")
    prepared = prepare(programs)
    webhook(programs, SIGNED_WEBHOOK, "--install", CALM, "--action", ACTION)
    leaving = [f"leaving-{number}" for number in range(LEAVING)]
    for member in (MEMBER, *leaving):
        programs.freehold_quietly("member", "invite", member, "--group", "developer")
    programs.end_runners()
    prepared.open_run = start_run(programs)
    found = Known(urlsplit(deployed["api_url"]).netloc, document(programs), webhook_key(programs, SIGNED_WEBHOOK))
    know(programs, found, version, built, ended, waiting, keys)
    know_prepared(found, prepared)
    know_access(programs, found, leaving)
    return found


def know_access(programs, found, leaving):
    """Adds what the operations about members and policies get. The policies let the IAM principals do everything."""
    policies = programs.freehold_json("access", "show")["policies"]
    found.know("members", [MEMBER], "path.member", "body.member")
    found.know("groups", ["developer", "auditor"], "body.groups[*]")
    found.know("access actions", ["show_tenant", "show_app", "show_install"], "body.action")
    found.values["leaving"] = leaving
    found.of_operation["RemoveMember"] = {"path.member": "leaving"}
    role = f"arn:aws:iam::{VENDOR}:role/ci"
    found.know_for("InviteMember", {"body.member": MEMBER, "body.iam": role})
    digest = programs.freehold_json("access", "show")["digest"]
    found.know_for("SetPolicies", {"body.policies": policies, "body.expected": digest})


def app(programs):
    """Returns the directory of the app's config; without Terraform on this machine, it lacks the component for it."""
    config = programs.files / APP
    shutil.copytree(Path(__file__).resolve().parent / APP, config)
    if not programs.terraform:
        (config / "components" / f"{PAGE}.toml").unlink()
    return config


def document(programs):
    """Returns the file of the document that the world's app was synced with, as one of the app `DRAFT`."""
    found = programs.files / f"{DRAFT}.json"
    found.write_text(json.dumps({**programs.freehold_json("app", "show", APP)["document"], "app": DRAFT}))
    return found


def webhook(programs, name, *options):
    return programs.freehold_json("webhook", "add", name, *options, "--key-file", webhook_key(programs, name))


def webhook_key(programs, name):
    return programs.files / f"{name}.pem"


def public_key():
    """Returns an Ed25519 public key that no webhook has, as the API takes it: the last 32 bytes of its DER, base64."""
    private = subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519"], check=True, capture_output=True).stdout
    words = ["openssl", "pkey", "-pubout", "-outform", "DER"]
    der = subprocess.run(words, check=True, capture_output=True, input=private).stdout
    return base64.b64encode(der[-32:]).decode()


def builder(programs):
    config, state = programs.files / "build-runner.toml", programs.files / "build-state"
    programs.freehold_quietly(
        "tenant", "build-runner", "--out", config, "--state-dir", state, "--sandbox", programs.sandbox
    )
    programs.start_runner("build", config, VENDOR, f"fh-{TENANT}--build-runner")


def install_for(programs, operation):
    """Returns an install from which `operation` can take something away now."""
    if operation == "DeleteInstall":
        create(programs, UNUSED)
        return UNUSED
    settle(programs)
    return INSTALL


def settle(programs):
    """Lets the runner end what its install does: an install that is busy refuses the next request."""
    programs.freehold_quietly("install", "enable", INSTALL)
    is_settled = False
    # A workflow may start when the others have ended, such as the next step of a runbook.
    while not is_settled:
        start_runner(programs, INSTALL)
        left = open_workflows(programs)
        # Requests of a long run leave much work, so the limit of a wait is for the end of one workflow.
        while left:
            ended = f"one of the install's open workflows ends: {', '.join(left)}"
            programs.wait_until(ended, lambda before=left: open_workflows(programs) != before)
            left = open_workflows(programs)
        programs.end_runners()
        is_settled = not open_workflows(programs)


def open_workflows(programs):
    return sorted(
        f"{one['workflow']} ({one['kind']})"
        for one in programs.freehold_json("workflow", "list", INSTALL)
        if not one.get("ended_at")
    )


def know(programs, found, version, built, ended, waiting, keys):
    """Adds what every operation gets."""
    contract = programs.freehold_json("contract", "show", APP)
    artifacts = [build["artifact"] for build in built["builds"]]
    workflows = [ended["workflow"], waiting["workflow"], built["workflow"]]
    found.know("apps", [APP], "path.app", "body.app", "body.starts.app")
    found.know("versions", [version], "path.version", "body.version")
    found.know("terms", [contract["terms"]], "path.terms")
    found.know("releases", [RELEASE], "path.release", "body.release")
    found.know("artifacts", artifacts, "path.artifact")
    found.know("installs", [INSTALL, WAITING, "build"], "path.install", "body.starts.install")
    found.know("webhooks", [WEBHOOK], "path.webhook")
    found.know("runbooks", [RUNBOOK], "path.runbook", "body.starts.runbook")
    found.know("checks", [CHECK], "path.check")
    found.know("keys", keys, "body.key")
    found.know("actions", [ACTION], "path.action")
    found.know("components", ["queue"], "body.components[*]", "path.component")
    found.know("roles", ["maintenance", "provision"], "body.role")
    found.know("regions", [REGION], "body.region")
    found.know("workflows", workflows, "path.workflow")
    # A component that the install leaves out has no job.
    jobs = [node["job"] for node in ended["nodes"] if node.get("job")]
    found.know("jobs", jobs, "path.job")
    builds = [f"build#{build['build']}" for build in built["builds"]]
    rows = [f"number#{2**64 - 2:020}", f"release#{RELEASE}", f"workflow#{0:020}#{ended['workflow']}", *builds]
    uses = [f"use#{INSTALL}#queue#{job}#1.1" for job in jobs]
    found.know("places", [APP, INSTALL, "log#0001.000001#00000001", *rows, *uses], "query.after")


def know_prepared(found, prepared):
    """Adds what the operations get that need an install in a certain state."""
    found.know("runs", [prepared.failed_run, prepared.open_run], "path.run")
    for operation in ("CheckHealth", "ReportCheck", "RunRunbook"):
        found.know_for(operation, {"path.install": CALM})
    found.know_for("DetectDrift", {"path.install": CALM, "body.components[*]": PAGE})
    found.know_for("AcknowledgeDrift", {"path.install": CALM, "body.address": ADDRESS, "body.component": PAGE})
    found.know_for("CancelRun", {"path.run": prepared.open_run})
    found.know_for("ResumeRun", {"path.run": prepared.failed_run})
    for operation, (job, plan) in zip(("ApproveJob", "RejectJob"), prepared.plans, strict=True):
        found.know_for(operation, {"path.job": job, "body.plan": plan})
    failed = prepared.failed
    found.know_for("RetryJob", {"path.job": failed["RetryJob"]["job"]})
    found.know_for("ResumeWorkflow", {"path.workflow": failed["ResumeWorkflow"]["workflow"]})
    node = failed["SkipNode"]
    found.know_for("SkipNode", {"path.workflow": node["workflow"], "body.node": node["node"]})
    found.know_for("SyncApp", {"path.app": DRAFT})
    found.know_for("CallWebhook", {"path.webhook": SIGNED_WEBHOOK})
