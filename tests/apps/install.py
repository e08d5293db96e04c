"""What happens to an install of an app: create, launch, provision, change an input, run the actions, tear down."""

import datetime
import os
import re
import shutil

import clusters
import following
import values
import vendor
from programs import BIN, CUSTOMER, INSTALL, REGION, TENANT, Failed

# How the product names what it cannot deploy yet: "component `api` is a `job`, action `x` runs in ...".
IN_THE_WAY = re.compile(r"(component|action) `([^`]+)` (.+?)(?=, (?:component|action|the|role) |, and \d+ more|$)")

# Of an app with many inputs, this many are changed in search of one that something reads.
INPUTS_TO_TRY = 6


def create(app):
    """Creates the install, without what the product says that it cannot deploy."""
    answers = values.of_inputs([one for one in app.config.inputs() if not one.get("sensitive")])
    words = _words(answers)
    place = ("--account", CUSTOMER, "--region", REGION)
    for _ in range(50):
        try:
            app.created = app.ask("install", "create", INSTALL, "--app", app.config.name, *place, *words)
            note_what_is_off(app.config)
            return f"inputs answered: {', '.join(answers) or 'none'}"
        except Failed as refused:
            if not any([app.config.leave_out(kind, name, why) for kind, name, why in IN_THE_WAY.findall(str(refused))]):
                raise
        vendor.sync_what_is_valid(app)
    raise Failed("the product finds something new that it cannot deploy, each time")


def note_what_is_off(config):
    """Notes the components that an install has only when somebody switches them on."""
    for name, (_, table) in config.entries("component").items():
        if table.get("toggleable") and table.get("default_enabled") is False:
            config.left_out["component", name] = "an install has it when somebody switches it on"


def launch(app):
    """Launches the stack as the customer, answers its parameters, and starts the runner."""
    programs, files = app.programs, app.programs.files
    template = files / "stack.yaml"
    command = (BIN / "freehold", "install", "stack", INSTALL, "-o", template)
    programs.wait_until("the install stack is ready", lambda: programs.succeeds(*command))
    answers = values.of_parameters(template.read_text(), CUSTOMER)
    if _names_roles(app.config):
        tomorrow = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=1)
        answers |= values.of_switches(template.read_text(), tomorrow.strftime("%Y-%m-%dT%H:%M:%SZ"))
    words = [word for name, value in answers.items() for word in ("--parameter", f"{name}={value}")]
    place = ("--template", template)
    app.ask("install", "launch", INSTALL, *place, *words, account=CUSTOMER)
    if app.cluster:
        clusters.admit(programs, app.cluster["name"], f"fh-{TENANT}--{INSTALL}--")
    tools = ("--sandbox", programs.sandbox, *(("--terraform", programs.terraform) if programs.terraform else ()))
    config = ("--out", files / "runner.toml", "--state-dir", files / "runner-state")
    app.ask("install", "runner-config", INSTALL, *config, *tools, account=CUSTOMER)
    role = f"fh-{TENANT}--{INSTALL}--runner"
    programs.start_runner("install", files / "runner.toml", CUSTOMER, role, _path(app), quiet=True)
    _give_sensitive(app)
    return f"parameters answered: {', '.join(answers)}"


def _names_roles(config):
    """Returns whether actions run under roles of their own: a job waits until the customer has switched its role on."""
    actions = (table for _, table in config.entries("action").values())
    return any(table.get("role") or table.get("break_glass_role") for table in actions)


def _path(app):
    """Returns where the runner finds the stand-in for `pulumi`, for an app that needs it and has it in no image."""
    if not app.pulumi or app.has_tool_image:
        return {}
    folder = app.work / "programs"
    folder.mkdir()
    shutil.copy(app.pulumi, folder / "pulumi")
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def _give_sensitive(app):
    """Gives the vendor's sensitive inputs, which are sealed to the runner, as soon as it has announced itself."""
    words = _words(values.of_inputs([one for one in app.config.inputs() if one.get("sensitive")]))
    if words:
        command = (BIN / "freehold", "install", "inputs", INSTALL, *words)
        app.programs.wait_until("the sensitive inputs are given", lambda: app.programs.succeeds(*command))


def _words(answers):
    return [word for name, value in answers.items() for word in ("--input", f"{name}={value}")]


def provision(app):
    return f"{following.through(app, app.created['workflow'])} done"


def change(app):
    """Changes inputs that the vendor sets until one makes something run; or deploys everything again."""
    text = app.config.text("components")
    ours = [one for one in app.config.inputs() if not one.get("user_configurable") and not one.get("sensitive")]
    ours.sort(key=lambda one: f".inputs.{one['name']}" not in text)
    for one in ours[:INPUTS_TO_TRY]:
        name, value = one["name"], values.changed(one)
        workflow = app.ask("deploy", INSTALL, "--input", f"{name}={value}", "--no-wait")["workflow"]
        if done := following.through(app, workflow):
            return f"`{name}` to `{value}`: {done} done"
    workflow = app.ask("deploy", INSTALL, "--all", "--no-wait")["workflow"]
    return f"no input of the vendor changes a part, so all was deployed again: {following.through(app, workflow)} done"


def act(app):
    """Runs every action that a person may run, and answers its inputs."""
    ended = []
    for name, (_, table) in app.config.entries("action").items():
        if any(trigger.get("type") == "manual" for trigger in table.get("triggers", [])):
            ended.append(run_action(app, name, _words(values.of_inputs(table.get("inputs", [])))))
    return ", ".join(ended) or "no action is left that a person may run"


def run_action(app, name, inputs):
    view = following.follow(app, app.ask("action", "run", INSTALL, name, *inputs, "--no-wait")["workflow"])
    if view["state"] == "succeeded":
        return f"`{name}` ran"
    if following.leave_out_lacking(app, view):
        return f"`{name}` failed for a reason of this machine"
    raise Failed(f"action `{name}`: {following.why(view)}; {following.last_words(app, view)}")


def tear_down(app):
    """Switches the mode for it on, as the customer, and removes all that is deployed, with its data."""
    template = app.programs.files / "stack.yaml"
    on = ("--parameter", "EnableDeprovision=true")
    app.ask("install", "launch", INSTALL, "--template", template, *on, account=CUSTOMER)
    view = app.ask("install", "show", INSTALL)
    if not view["components"] and not app.config.sandbox():
        return "left out: nothing is deployed"

    def begin():
        return app.ask("teardown", INSTALL, "--destroy-data", "--confirm", INSTALL, "--no-wait")["workflow"]

    return f"{following.through(app, begin(), begin)} done"
