"""The tenant whose console is walked: an app with a release, an install that is deployed, and one whose plan waits.

The command makes all of it, as a vendor and a customer do. The accounts of the people are made in the user pool.
"""

import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from programs import CUSTOMER, FUNCTIONS, REGION, ROOT, TENANT, VENDOR

APP, RELEASE = "shop", "first"
# Every change is permitted to developers in the first one; the second is in production, and its plans wait.
STAGING, PRODUCTION = "globex", "initech"
OPTIONS = {STAGING: ("--label", "environment=staging"), PRODUCTION: ("--approval-option", "prompt")}
PASSWORD = "Correct horse battery 7!"
OWNER = "olga@example.com"
# Invited by the owner in the console: the group, and the installs that the member is limited to.
INVITED = {
    "dev@example.com": ("developer", ""),
    "data@example.com": ("data_scientist", ""),
    "customer@example.com": ("customer", STAGING),
}
STRANGER = "nobody@example.com"


@dataclass
class Tenant:
    """What the walk needs to know."""

    console: str
    # The origin of the user pool's sign-in page.
    issuer: str
    # The code of the owner's invitation.
    code: str
    # Digests of the app's versions: that of the release, and the latest one.
    versions: list
    # The first workflow of each install.
    workflows: dict = field(default_factory=dict)


def make(programs):
    programs.step("local cloud and tenant")
    programs.start_own_cloud()
    principal = f"arn:aws:iam::{VENDOR}:root"
    deploy = ("tenant", "deploy", "--name", TENANT, "--functions", FUNCTIONS, "--build-runner-principal", principal)
    console = programs.freehold_json(*deploy)["console_url"]
    make_accounts(programs)
    code = programs.freehold_json("member", "invite", OWNER, "--group", "owner")["code"]

    programs.step("an app with its build and a release")
    config = app(programs)
    versions = [programs.freehold_json("app", "sync", config)["version"]]
    start_builder(programs)
    programs.freehold_quietly("build", APP)
    programs.freehold_quietly("release", "create", APP, "--name", RELEASE)

    programs.step("an install that is deployed, and one whose plan waits")
    made = Tenant(console, programs.endpoint, code, versions)
    for name, options in OPTIONS.items():
        place = ("--app", APP, "--account", CUSTOMER, "--region", REGION)
        made.workflows[name] = programs.freehold_json("install", "create", name, *place, *options)["workflow"]
    # A launch mostly waits for its stack.
    with ThreadPoolExecutor() as launches:
        list(launches.map(lambda name: launch(programs, name), OPTIONS))
    programs.freehold_quietly("workflow", "watch", made.workflows[STAGING])

    programs.step("a second version of the app")
    inputs = config / "inputs.toml"
    inputs.write_text(inputs.read_text().replace("default      = 1\n", "default      = 2\n"))
    versions.append(programs.freehold_json("app", "sync", config)["version"])
    programs.freehold_quietly("build", APP)
    return made


def app(programs):
    """Returns the directory of the app's config: that of the fuzzed API, without the component that needs Terraform."""
    config = programs.files / APP
    shutil.copytree(ROOT / "tests" / "api" / APP, config)
    (config / "components" / "page.toml").unlink()
    return config


def start_builder(programs):
    config, state = programs.files / "build-runner.toml", programs.files / "build-state"
    programs.freehold_quietly(
        "tenant", "build-runner", "--out", config, "--state-dir", state, "--sandbox", programs.sandbox
    )
    programs.start_runner("build", config, VENDOR, f"fh-{TENANT}--build-runner", quiet=True)


def launch(programs, name):
    """Launches the stack of an install, and starts its runner."""
    template, config = programs.files / f"{name}.yaml", programs.files / f"{name}.toml"
    stack = (ROOT / "target/debug/freehold", "install", "stack", name, "-o", template)
    programs.wait_until(f"the stack of `{name}` is ready", lambda: programs.succeeds(*stack))
    principal = f"RunnerPrincipal=arn:aws:iam::{CUSTOMER}:root"
    given = ("--template", template, "--parameter", principal)
    programs.freehold_quietly("install", "launch", name, *given, account=CUSTOMER)
    place = ("--out", config, "--state-dir", programs.files / f"{name}-state", "--sandbox", programs.sandbox)
    programs.freehold_quietly("install", "runner-config", name, *place, account=CUSTOMER)
    programs.start_runner("install", config, CUSTOMER, f"fh-{TENANT}--{name}--runner", quiet=True, install=name)


def make_accounts(programs):
    """Makes an account in the tenant's user pool for each person."""
    [stack] = programs.client("cloudformation", VENDOR).describe_stacks(StackName=f"freehold-{TENANT}")["Stacks"]
    issuer = next(one["OutputValue"] for one in stack["Outputs"] if one["OutputKey"] == "PeopleIssuer")
    pool, cognito = issuer.rsplit("/", 1)[1], programs.client("cognito-idp", VENDOR)
    for person in (OWNER, *INVITED, STRANGER):
        address = [{"Name": "email", "Value": person}, {"Name": "email_verified", "Value": "true"}]
        cognito.admin_create_user(UserPoolId=pool, Username=person, UserAttributes=address, MessageAction="SUPPRESS")
        cognito.admin_set_user_password(UserPoolId=pool, Username=person, Password=PASSWORD, Permanent=True)
