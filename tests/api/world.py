"""The world that the fuzzed requests meet: a tenant, an app with a build and a release, an install with a deploy."""

import base64
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from programs import CUSTOMER, INSTALL, REGION, ROOT, TENANT, VENDOR

APP = "shop"
RELEASE = "first"
WEBHOOK = "ci"
# Each is for one webhook only.
FREE_KEYS = 20
# A second install waits for its runner for ever, so that one is left to read when the other is changed.
WAITING = "initech"
# One in which nothing runs is deleted.
UNUSED = "hooli"


@dataclass
class Known:
    """Values that exist in the world, by the name of their dictionary, and the parameters that take them."""

    host: str
    values: dict = field(default_factory=dict)
    parameters: dict = field(default_factory=dict)

    def know(self, name, values, *parameters):
        self.values[name] = values
        self.parameters.update(dict.fromkeys(parameters, name))


def make(programs):
    """Makes the world with the command, as a vendor and a customer do, and returns what is in it."""
    programs.step("local cloud and tenant")
    programs.start_own_cloud()
    functions, principal = ROOT / "target/lambda/local", f"arn:aws:iam::{VENDOR}:root"
    deploy = ("tenant", "deploy", "--name", TENANT, "--functions", functions, "--build-runner-principal", principal)
    deploy += ("--webhooks", "on")
    deployed = programs.freehold_json(*deploy)
    programs.step("an app with its build and a release")
    app = Path(__file__).resolve().parent / APP
    version = programs.freehold_json("app", "sync", app)["version"]
    builder(programs)
    built = programs.freehold_json("build", APP)
    programs.freehold_quietly("release", "create", APP, "--name", RELEASE)
    programs.step("an install with its deploy, and one that waits")
    workflow = install(programs)
    ended = programs.freehold_json("workflow", "watch", workflow)
    hook = ("webhook", "add", WEBHOOK, "--install", INSTALL, "--deploy", "--key-file", programs.files / "ci.pem")
    keys = [programs.freehold_json(*hook)["key"], *(public_key() for _ in range(FREE_KEYS))]
    waiting = create(programs, WAITING)
    programs.end_runners()
    return known(programs, deployed, version, built, ended, waiting, keys)


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


def create(programs, name):
    place = ("--app", APP, "--account", CUSTOMER, "--region", REGION)
    return programs.freehold_json("install", "create", name, *place)


def install(programs):
    """Creates and launches an install, starts its runner, and returns the workflow that provisions it."""
    created = create(programs, INSTALL)
    template, config = programs.files / f"{INSTALL}.yaml", programs.files / "runner.toml"
    stack = (ROOT / "target/debug/freehold", "install", "stack", INSTALL, "-o", template)
    programs.wait_until("the install stack is ready", lambda: programs.succeeds(*stack))
    principal = f"RunnerPrincipal=arn:aws:iam::{CUSTOMER}:root"
    programs.freehold_quietly(
        "install", "launch", INSTALL, "--template", template, "--parameter", principal, account=CUSTOMER
    )
    place = ("--out", config, "--state-dir", programs.files / "runner-state", "--sandbox", programs.sandbox)
    programs.freehold_quietly("install", "runner-config", INSTALL, *place, account=CUSTOMER)
    start_runner(programs)
    return created["workflow"]


def start_runner(programs):
    config = programs.files / "runner.toml"
    programs.start_runner("install", config, CUSTOMER, f"fh-{TENANT}--{INSTALL}--runner")


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
    start_runner(programs)
    left = open_workflows(programs)
    # Requests of a long run leave much work, so the limit of a wait is for the end of one workflow.
    while left:
        ended = f"one of the install's open workflows ends: {', '.join(left)}"
        programs.wait_until(ended, lambda before=left: open_workflows(programs) != before)
        left = open_workflows(programs)
    programs.end_runners()


def open_workflows(programs):
    return sorted(
        f"{one['workflow']} ({one['kind']})"
        for one in programs.freehold_json("workflow", "list", INSTALL)
        if not one.get("ended_at")
    )


def known(programs, deployed, version, built, ended, waiting, keys):
    contract = programs.freehold_json("contract", "show", APP)
    artifacts = [build["artifact"] for build in built["builds"]]
    workflows = [ended["workflow"], waiting["workflow"], built["workflow"]]
    found = Known(urlsplit(deployed["api_url"]).netloc)
    found.know("apps", [APP], "path.app", "body.app", "body.starts.app")
    found.know("versions", [version], "path.version", "body.version")
    found.know("terms", [contract["terms"]], "path.terms")
    found.know("releases", [RELEASE], "path.release", "body.release")
    found.know("artifacts", artifacts, "path.artifact")
    found.know("installs", [INSTALL, WAITING, "build"], "path.install", "body.starts.install")
    found.know("webhooks", [WEBHOOK], "path.webhook")
    found.know("keys", keys, "body.key")
    found.know("actions", ["show"], "path.action")
    found.know("components", ["queue"], "body.components[*]")
    found.know("roles", ["maintenance", "provision"], "body.role")
    found.know("regions", [REGION], "body.region")
    found.know("workflows", workflows, "path.workflow")
    found.know("jobs", [node["job"] for node in ended["nodes"]], "path.job")
    builds = [f"build#{build['build']}" for build in built["builds"]]
    rows = [f"number#{2**64 - 2:020}", f"release#{RELEASE}", f"workflow#{0:020}#{ended['workflow']}", *builds]
    uses = [f"use#{INSTALL}#queue#{node['job']}#1.1" for node in ended["nodes"]]
    found.know("places", [APP, INSTALL, "log#0001.000001#00000001", *rows, *uses], "query.after")
    return found
