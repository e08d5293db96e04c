"""The customer's side of the world: creates and launches installs of the app, and starts their runners."""

from programs import CUSTOMER, REGION, ROOT, TENANT

APP = "shop"


def create(programs, name, *options):
    place = ("--app", APP, "--account", CUSTOMER, "--region", REGION)
    return programs.freehold_json("install", "create", name, *place, *options)


def launch(programs, name):
    """Launches the stack of an install, and starts its runner."""
    template, config = programs.files / f"{name}.yaml", _config(programs, name)
    stack = (ROOT / "target/debug/freehold", "install", "stack", name, "-o", template)
    programs.wait_until(f"the stack of `{name}` is ready", lambda: programs.succeeds(*stack))
    principal = f"RunnerPrincipal=arn:aws:iam::{CUSTOMER}:root"
    programs.freehold_quietly(
        "install", "launch", name, "--template", template, "--parameter", principal, account=CUSTOMER
    )
    place = ("--out", config, "--state-dir", programs.files / f"{name}-state", "--sandbox", programs.sandbox)
    programs.freehold_quietly("install", "runner-config", name, *place, account=CUSTOMER)
    start_runner(programs, name)


def start_runner(programs, name):
    role = f"fh-{TENANT}--{name}--runner"
    programs.start_runner("install", _config(programs, name), CUSTOMER, role, install=name)


def _config(programs, name):
    return programs.files / f"{name}.toml"
