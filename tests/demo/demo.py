"""A vendor ships, a customer installs, a runner deploys: the whole path with real binaries in two accounts.

With a Kubernetes cluster where its programs are on this machine. What is left out is said first, and again at the end.

Uses the cloud of `make up` when it is up, and leaves that running with all that the demo made; otherwise, and when an
earlier demo left its tenant there, one of its own, which ends with the demo.
"""

import shutil
import sys

import image_layout
import results
from demo_cluster import CHART, Cluster
from programs import APP, BIN, CUSTOMER, FUNCTIONS, INSTALL, REGION, ROOT, TENANT, VENDOR, Failed, Programs

GREETING = "good morning"
# The action of the demo for a machine without Terraform: the original one shows an output of a Terraform module.
ACTION_WITHOUT_TERRAFORM = """\
name = "health-check"
timeout = "1m"
idempotent = true

[[triggers]]
type = "manual"

[[triggers]]
type = "post-deploy-all-components"

[[steps]]
name = "show"
command = "echo bucket {{ .nuon.components.storage.outputs.BucketName }}"
"""


def run(programs, cluster):
    shutil.rmtree(programs.files, ignore_errors=True)
    programs.files.mkdir(parents=True)
    tell_left_out(programs, cluster)

    programs.step("start the local cloud")
    programs.start_cloud()

    programs.step(f"vendor: deploy tenant `{TENANT}` into account {VENDOR}")
    functions, principal = FUNCTIONS, f"arn:aws:iam::{VENDOR}:root"
    programs.freehold(
        "tenant", "deploy", "--name", TENANT, "--functions", functions, "--build-runner-principal", principal
    )

    programs.step(f"vendor: an app with {parts(programs, cluster)}")
    config = make_app(programs)
    cluster.add(config)

    programs.step("vendor: check and sync the app")
    programs.freehold("app", "check", config)
    programs.freehold("app", "sync", config)

    programs.step("vendor: start the build runner and build every component into the tenant registry")
    start_build_runner(programs)
    programs.freehold("build", APP)

    programs.step(f"vendor: create install `{INSTALL}` for account {CUSTOMER}")
    template, workflow = create_install(programs)

    programs.step(f"customer: read the stack, launch it in account {CUSTOMER}, start the runner")
    launch(programs, template)

    programs.step("provision: everything, in the order of its dependencies")
    programs.freehold("workflow", "watch", workflow)

    change, touched = change_of(programs, cluster)
    programs.step(f"vendor: change one input (`{change}`) and deploy only what depends on it")
    programs.freehold("deploy", INSTALL, "--input", change)

    programs.step(f"what exists now in the customer's account {CUSTOMER}")
    results.show_resources(programs)
    if cluster.exists:
        programs.step("what exists now in the customer's cluster")
        cluster.show(programs, GREETING)
    programs.step("the same digests in both registries")
    results.show_digests(programs)
    programs.step("customer: where everything that runs came from, by the key of the own stack and without a network")
    results.show_lineage(programs)
    programs.step("the log of the job that ran last")
    results.show_last_job(programs, touched)
    programs.step("who may read the install's orders queue")
    results.show_access(programs)


def left_out(programs, cluster):
    """Returns what the demo leaves out on this machine, and how to get it."""
    parts = []
    if not programs.terraform:
        parts.append(
            "the Terraform components: neither `terraform` nor `tofu` is on PATH; "
            "install OpenTofu or Terraform 1.10 or newer from its publisher and run the demo again"
        )
    if programs.sandbox == "none":
        parts.append(
            f"the sandbox of jobs: {programs.no_box}; install the package bubblewrap, on a machine that permits user "
            "namespaces"
        )
    return parts + cluster.left_out()


def tell_left_out(programs, cluster):
    for what in left_out(programs, cluster):
        print(f"left out: {what}")


def parts(programs, cluster):
    """Returns the parts of the app, in words."""
    modules = ["two Terraform modules"] if programs.terraform else []
    parts = ["an image", *modules, "a CloudFormation stack", *cluster.parts()]
    return f"{', '.join(parts)} and an action"


def change_of(programs, cluster):
    """Returns the input that is changed, and the names of what a deploy of it has to touch."""
    if not (programs.terraform or cluster.has_chart):
        return "retention_days=30", ["action:health-check", "storage"]
    readers = [name for name, is_there in ((CHART, cluster.has_chart), ("settings", programs.terraform)) if is_there]
    return f"greeting={GREETING}", ["action:health-check", *readers]


def make_app(programs):
    config = programs.files / APP
    shutil.copytree(ROOT / "examples" / "demo", config, ignore=shutil.ignore_patterns("image"))
    digest = image_layout.make(shutil.which("busybox") or "/bin/busybox", config / "image")
    print(f"image:  {digest} (static busybox)")
    if not programs.terraform:
        for name in ("settings", "store-info"):
            (config / "components" / f"{name}.toml").unlink()
        (config / "actions" / "health-check.toml").write_text(ACTION_WITHOUT_TERRAFORM)
    return config


def start_build_runner(programs):
    config, state = programs.files / "build-runner.toml", programs.files / "build-state"
    programs.freehold_quietly(
        "tenant", "build-runner", "--out", config, "--state-dir", state, "--sandbox", programs.sandbox
    )
    programs.start_runner("build", config, VENDOR, f"fh-{TENANT}--build-runner")


def create_install(programs):
    """Returns the file of the install's stack, and the workflow that provisions it."""
    template = programs.files / "globex.yaml"
    place = ("--app", APP, "--account", CUSTOMER, "--region", REGION)
    programs.freehold("install", "create", INSTALL, *place)
    created = programs.freehold_json("install", "create", INSTALL, *place)
    command = ("install", "stack", INSTALL, "-o", template)
    programs.wait_until("the install stack is ready", lambda: programs.succeeds(BIN / "freehold", *command))
    programs.freehold(*command)
    return template, created["workflow"]


def launch(programs, template):
    principal = f"RunnerPrincipal=arn:aws:iam::{CUSTOMER}:root"
    programs.freehold("install", "launch", INSTALL, "--template", template, "--parameter", principal, account=CUSTOMER)
    config, state = programs.files / "runner.toml", programs.files / "runner-state"
    tools = ("--sandbox", programs.sandbox, *(("--terraform", programs.terraform) if programs.terraform else ()))
    programs.freehold_quietly(
        "install", "runner-config", INSTALL, "--out", config, "--state-dir", state, *tools, account=CUSTOMER
    )
    programs.start_runner("install", config, CUSTOMER, f"fh-{TENANT}--{INSTALL}--runner")


def main():
    programs, cluster = Programs(), Cluster()
    reason = None
    try:
        run(programs, cluster)
    except Failed as failure:
        reason = str(failure)
    except KeyboardInterrupt:
        reason = "interrupted"
    except Exception as error:  # whatever it is, the last line says so
        reason = f"{type(error).__name__}: {error}"
    finally:
        programs.end()
    print()
    if reason:
        print(f"demo: failed: {reason}")
        return 1
    tell_left_out(programs, cluster)
    print(f"done in {programs.seconds():.0f} s")
    print("demo: ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
