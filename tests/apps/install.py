"""What happens to an install of an app: create, launch, provision, change an input, run the actions, tear down."""

import re

import clusters
import values
import vendor
from programs import BIN, CUSTOMER, INSTALL, REGION, TENANT, Failed

# How the product names what it cannot deploy yet: "component `api` is a `job`, action `x` runs in ...".
IN_THE_WAY = re.compile(r"(component|action) `([^`]+)` (.+?)(?=, (?:component|action|the|role) |, and \d+ more|$)")
# What an action may say of the machine that it runs on, and what it lacks then.
LACKS = (
    (re.compile(r"([\w.+-]+): (?:command )?not found"), "needs `{}`, which is not on this machine"),
    (re.compile(r"Illegal option (-o \w+)"), "its `sh` is to know `{}`, which that of this machine does not"),
    (re.compile(r"The connection to the server (localhost:8080) was refused"), "has no kubeconfig: it asks `{}`"),
    (re.compile(r"Could not resolve host: (\S+)"), "needs the host `{}`, which is not there"),
)


def create(app):
    """Creates the install, without what the product says that it cannot deploy."""
    answers = values.of_inputs(app.config.inputs())
    words = [word for name, value in answers.items() for word in ("--input", f"{name}={value}")]
    place = ("--account", CUSTOMER, "--region", REGION, "--secret-file", app.programs.files / "enrolment")
    for _ in range(50):
        try:
            app.created = app.ask("install", "create", INSTALL, "--app", app.config.name, *place, *words)
            return f"inputs answered: {', '.join(answers) or 'none'}"
        except Failed as refused:
            if not any([app.config.leave_out(kind, name, why) for kind, name, why in IN_THE_WAY.findall(str(refused))]):
                raise
        vendor.sync_what_is_valid(app)
    raise Failed("the product finds something new that it cannot deploy, each time")


def launch(app):
    """Launches the stack as the customer, answers its parameters, and starts the runner."""
    programs, files = app.programs, app.programs.files
    template = files / "stack.yaml"
    command = (BIN / "freehold", "install", "stack", INSTALL, "-o", template)
    programs.wait_until("the install stack is ready", lambda: programs.succeeds(*command))
    answers = values.of_parameters(template.read_text(), CUSTOMER)
    words = [word for name, value in answers.items() for word in ("--parameter", f"{name}={value}")]
    place = ("--template", template, "--secret-file", files / "enrolment")
    app.ask("install", "launch", INSTALL, *place, *words, account=CUSTOMER)
    if app.cluster:
        clusters.admit(programs, app.cluster["name"], f"fh-{TENANT}--{INSTALL}--")
    tools = ("--sandbox", programs.sandbox, *(("--terraform", programs.terraform) if programs.terraform else ()))
    config = ("--out", files / "runner.toml", "--state-dir", files / "runner-state")
    app.ask("install", "runner-config", INSTALL, *config, *tools, account=CUSTOMER)
    programs.start_runner("install", files / "runner.toml", CUSTOMER, f"fh-{TENANT}--{INSTALL}--runner", quiet=True)
    return f"parameters answered: {', '.join(answers)}"


def provision(app):
    return nodes(app.ask("workflow", "watch", app.created["workflow"]))


def change(app):
    """Changes an input that the vendor sets, one that something reads when there is one."""
    text = app.config.text()
    ours = [one for one in app.config.inputs() if not one.get("user_configurable") and not one.get("sensitive")]
    ours.sort(key=lambda one: f".inputs.{one['name']}" not in text)
    if not ours:
        return "left out: the vendor sets no input of this app"
    name, value = ours[0]["name"], values.changed(ours[0])
    return f"`{name}` to `{value}`: {nodes(app.ask('deploy', INSTALL, '--input', f'{name}={value}'))}"


def act(app):
    """Runs every action that a person may run."""
    ended = []
    for name, (_, table) in app.config.entries("action").items():
        if any(trigger.get("type") == "manual" for trigger in table.get("triggers", [])):
            ended.append(run_action(app, name))
    return ", ".join(ended) or "no action is left that a person may run"


def run_action(app, name):
    answer = app.programs.answer("action", "run", INSTALL, name)
    if answer.code == 0:
        return f"`{name}` ran"
    log = last_log(app)
    for pattern, what in LACKS:
        if found := pattern.search(log):
            app.config.left_out["action", name] = what.format(found[1])
            return f"`{name}` was left out"
    raise Failed(f"action `{name}` failed: {log.strip().splitlines()[-1] if log.strip() else answer.reason}")


def last_log(app):
    """Returns the log of the newest job of the install; an empty text when there is none."""
    workflows = app.ask("workflow", "list", INSTALL)
    shown = app.ask("workflow", "show", workflows[0]["workflow"])
    job = next((node.get("job") for node in reversed(shown["nodes"]) if node.get("job")), None)
    return app.programs.output("job", "logs", job) if job else ""


def tear_down(app):
    """Switches the mode for it on, as the customer, and removes all that is deployed, with its data."""
    template = app.programs.files / "stack.yaml"
    on = ("--parameter", "EnableDeprovision=true")
    app.ask("install", "launch", INSTALL, "--template", template, *on, account=CUSTOMER)
    if not app.ask("install", "show", INSTALL)["components"]:
        return "left out: nothing is deployed"
    return nodes(app.ask("teardown", INSTALL, "--destroy-data", "--confirm", INSTALL))


def nodes(workflow):
    """Returns how many parts of a workflow there were; all of them must have ended well."""
    if workflow.get("state") != "succeeded":
        failed = [one["name"] for one in workflow.get("nodes", []) if one.get("state") != "succeeded"]
        raise Failed(f"the workflow ended as {workflow.get('state')}: {', '.join(failed)}")
    return f"{len(workflow['nodes'])} done"
