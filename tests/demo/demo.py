"""A vendor ships, a customer installs, a runner deploys: the whole path with real binaries in two accounts.

Uses the cloud of `make up` when it is up, and leaves that running; otherwise one of its own, which ends with the demo.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import botocore.session
from botocore.exceptions import ClientError

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import image_layout  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "target" / "demo"
CLOUD = ROOT / "localstack" / "cloud"
BIN = ROOT / "target" / "debug"
VENDOR, CUSTOMER, REGION = "111111111111", "222222222222", "eu-west-1"
TENANT, INSTALL, APP = "acme", "globex", "demo"
RUNNER_SECS = 60


class Failed(Exception):
    """Why the demo did not get to its end."""


class Demo:
    def __init__(self):
        self.started = time.monotonic()
        self.steps = 0
        self.runners = []
        self.own_cloud = None
        self.terraform = shutil.which("terraform") or shutil.which("tofu")
        self.sandbox = "bubblewrap" if shutil.which("bwrap") else "none"

    # ---- the path -----------------------------------------------------------------------------------------------

    def run(self):
        shutil.rmtree(WORK / "files", ignore_errors=True)
        (WORK / "files").mkdir(parents=True)
        self.say_what_is_missing()
        self.local_cloud()
        self.step(f"vendor: deploy tenant `{TENANT}` into account {VENDOR}")
        self.freehold(
            "tenant",
            "deploy",
            "--name",
            TENANT,
            "--functions",
            ROOT / "target/lambda/local",
            "--build-runner-principal",
            f"arn:aws:iam::{VENDOR}:root",
        )
        config = self.app()
        self.step("vendor: check and sync the app")
        self.freehold("app", "check", config)
        self.freehold("app", "sync", config)
        self.build()
        workflow = self.customer_installs()
        self.step("provision: everything, in the order of its dependencies")
        self.freehold("workflow", "watch", workflow)
        change = "greeting=good morning" if self.terraform else "retention_days=30"
        self.step(f"vendor: change one input (`{change}`) and deploy only what depends on it")
        self.freehold("deploy", INSTALL, "--input", change)
        self.show()

    def local_cloud(self):
        self.step("start the local cloud")
        if self.program([CLOUD, "status"], quiet=True, may_fail=True).returncode == 0:
            state = ROOT / "target" / "local"
            print("uses the cloud of `make up`")
        else:
            state = self.own_cloud = WORK / "cloud"
            self.program([CLOUD, "up", "--detach", "--port", "0", "--state", state, "--until-pid", os.getpid()])
        self.endpoint = (state / "endpoint").read_text().strip()

    def app(self):
        self.step("vendor: an app with an image, two Terraform modules, a CloudFormation stack and an action")
        config = WORK / "files" / APP
        shutil.copytree(ROOT / "examples" / "demo", config, ignore=shutil.ignore_patterns("image"))
        busybox = shutil.which("busybox") or "/bin/busybox"
        print(f"image:  {image_layout.make(busybox, config / 'image')} (static busybox)")
        if not self.terraform:
            self.drop_terraform(config)
        return config

    def drop_terraform(self, config):
        for name in ("settings", "store-info"):
            (config / "components" / f"{name}.toml").unlink()
        (config / "actions" / "health-check.toml").write_text(
            'name = "health-check"\ntimeout = "1m"\nidempotent = true\n\n[[triggers]]\ntype = "manual"\n\n'
            '[[triggers]]\ntype = "post-deploy-all-components"\n\n[[steps]]\nname = "show"\n'
            'command = "echo bucket {{ .nuon.components.storage.outputs.BucketName }}"\n'
        )

    def build(self):
        self.step("vendor: start the build runner and build every component into the tenant registry")
        runner = WORK / "files" / "build-runner.toml"
        self.freehold(
            "tenant",
            "build-runner",
            "--out",
            runner,
            "--state-dir",
            WORK / "files" / "build-state",
            "--sandbox",
            self.sandbox,
            quiet=True,
        )
        self.runner("build", runner, VENDOR, f"fh-{TENANT}-build-runner")
        self.freehold("build", APP)

    def customer_installs(self):
        files = WORK / "files"
        secret, template, runner = files / "globex.enrolment", files / "globex.yaml", files / "runner.toml"
        self.step(f"vendor: create install `{INSTALL}` for account {CUSTOMER}")
        created = json.loads(
            self.freehold(
                "install",
                "create",
                INSTALL,
                "--app",
                APP,
                "--account",
                CUSTOMER,
                "--region",
                REGION,
                "--secret-file",
                secret,
                "--json",
                quiet=True,
            )
        )
        print(f"install `{INSTALL}` waits for its runner; its enrolment secret stays on this machine")
        self.until(
            "the install stack is ready",
            lambda: (
                self.program(
                    self.command("install", "stack", INSTALL, "-o", template), VENDOR, quiet=True, may_fail=True
                ).returncode
                == 0
            ),
        )
        self.step(f"customer: read the stack, launch it in account {CUSTOMER}, start the runner")
        self.freehold(
            "install",
            "launch",
            INSTALL,
            "--template",
            template,
            "--secret-file",
            secret,
            "--parameter",
            f"RunnerPrincipal=arn:aws:iam::{CUSTOMER}:root",
            account=CUSTOMER,
        )
        terraform = ("--terraform", self.terraform) if self.terraform else ()
        self.freehold(
            "install",
            "runner-config",
            INSTALL,
            "--out",
            runner,
            "--state-dir",
            files / "runner-state",
            "--sandbox",
            self.sandbox,
            *terraform,
            account=CUSTOMER,
            quiet=True,
        )
        self.runner("install", runner, CUSTOMER, f"fh-{INSTALL}-runner")
        return created["workflow"]

    # ---- what is there now --------------------------------------------------------------------------------------

    def show(self):
        self.step(f"what exists now in the customer's account {CUSTOMER}")
        self.show_resources()
        self.step("the same digests in both registries")
        self.show_digests()
        self.step("customer: where everything that runs came from, by the key of the own stack and without a network")
        self.show_lineage()
        self.step("the log of the job that ran last")
        workflows = json.loads(self.freehold("workflow", "list", INSTALL, "--json", quiet=True))
        shown = json.loads(self.freehold("workflow", "show", workflows[0]["workflow"], "--json", quiet=True))
        if shown["state"] != "succeeded":
            raise Failed(f"the deploy ended {shown['state']}")
        touched = sorted(node["name"] for node in shown["nodes"])
        expected = ["action:health-check", "settings"] if self.terraform else ["action:health-check", "storage"]
        if touched != expected:
            raise Failed(f"the deploy touched {touched} instead of {expected}")
        job = next(node["job"] for node in shown["nodes"] if node["name"] == "action:health-check")
        self.freehold("job", "logs", job)
        self.step("who may read the install's orders queue")
        self.show_access()

    def show_resources(self):
        stacks = self.client("cloudformation", CUSTOMER).describe_stacks()["Stacks"]
        for stack in sorted(stacks, key=lambda stack: stack["StackName"]):
            print(f"stack   {stack['StackName']}  {stack['StackStatus']}")
        for bucket in self.client("s3", CUSTOMER).list_buckets()["Buckets"]:
            print(f"bucket  {bucket['Name']}")
        queues = self.client("sqs", CUSTOMER).list_queues().get("QueueUrls", [])
        for queue in queues:
            print(f"queue   {queue.rsplit('/', 1)[1]}")
        if f"{INSTALL}-storage" not in [stack["StackName"] for stack in stacks] or not queues:
            raise Failed("the app's stack or its queue is missing")

    def show_digests(self):
        install = json.loads(self.freehold("install", "show", INSTALL, "--json", quiet=True))
        tenant, customer = self.digests(f"fh-{TENANT}", VENDOR), self.digests(f"fh-{INSTALL}", CUSTOMER)
        for component in install["components"]:
            digest = component["artifact"]
            both = "tenant and install" if digest in tenant & customer else "NOT in both"
            print(f"{component['component']:<12}{digest}  {both}")
            if digest not in tenant & customer:
                raise Failed(f"artifact `{digest}` is not in both registries")

    def show_lineage(self):
        stack = self.client("cloudformation", CUSTOMER).describe_stacks(StackName=f"freehold-{INSTALL}")["Stacks"][0]
        key = next(out["OutputValue"] for out in stack["Outputs"] if out["OutputKey"] == "TenantKey")
        install = json.loads(self.freehold("install", "show", INSTALL, "--json", quiet=True))
        links = 0
        for component in install["components"]:
            bundle = WORK / "files" / f"{component['component']}.lineage.json"
            self.freehold(
                "lineage", "--install", INSTALL, "--component", component["component"], "--bundle", bundle, quiet=True
            )
            done = subprocess.run(
                [str(BIN / "freehold"), "lineage", "verify", str(bundle), "--root-key", key, "--json"],
                env={},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
            )
            if done.returncode != 0:
                raise Failed(f"the lineage of `{component['component']}` does not hold: {done.stderr.strip()}")
            checked = json.loads(done.stdout)["checked"]["links"]
            if not checked or not all(link["ok"] for link in checked):
                raise Failed(f"the lineage of `{component['component']}` has a link that does not hold")
            print(f"{component['component']:<12}{component['artifact']}  {len(checked)} links hold")
            links += len(checked)
        print(f"{links} links of {len(install['components'])} artifacts, all standing on {key}")

    def digests(self, repository, account):
        pages = self.client("ecr", account).get_paginator("list_images").paginate(repositoryName=repository)
        return {image["imageDigest"] for page in pages for image in page["imageIds"]}

    def show_access(self):
        queue = self.client("sqs", VENDOR).get_queue_url(QueueName=f"fh-{TENANT}-{INSTALL}.fifo")["QueueUrl"]
        principals = [
            (f"{CUSTOMER} fh-{INSTALL}-runner", True, self.role(CUSTOMER, f"fh-{INSTALL}-runner")),
            (f"{VENDOR} fh-{TENANT}-build-runner", False, self.role(VENDOR, f"fh-{TENANT}-build-runner")),
            (f"{CUSTOMER} another role", False, self.other_role(queue)),
            ("333333333333 anybody", False, {"aws_access_key_id": "333333333333", "aws_secret_access_key": "x"}),
        ]
        for name, expected, credentials in principals:
            client = self.client("sqs", VENDOR, credentials)
            try:
                client.receive_message(QueueUrl=queue, WaitTimeSeconds=0, VisibilityTimeout=0)
                may = True
            except ClientError as error:
                if "AccessDenied" not in error.response["Error"]["Code"]:
                    raise
                may = False
            print(f"{name:<38}{'may' if may else 'may not'}")
            if may != expected:
                raise Failed(f"{name} {'may' if may else 'may not'} read the orders queue")

    def other_role(self, queue):
        iam, name = self.client("iam", CUSTOMER), "somebody"
        trust = {
            "Version": "2012-10-17",
            "Statement": [
                {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{CUSTOMER}:root"}, "Action": "sts:AssumeRole"}
            ],
        }
        everything = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "sqs:*", "Resource": "*"}]}
        try:
            iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(trust))
        except ClientError as error:
            if error.response["Error"]["Code"] != "EntityAlreadyExists":
                raise
        iam.put_role_policy(RoleName=name, PolicyName="everything", PolicyDocument=json.dumps(everything))
        return self.role(CUSTOMER, name)

    # ---- programs and clients -----------------------------------------------------------------------------------

    def step(self, text):
        self.steps += 1
        print(f"\n[{self.steps:>2}] {text}  ({time.monotonic() - self.started:.0f} s)", flush=True)

    def say_what_is_missing(self):
        if not self.terraform:
            print(
                "terraform: neither `terraform` nor `tofu` is on PATH: goes on without the Terraform components; "
                "install OpenTofu or Terraform 1.10 or newer from its publisher and run the demo again"
            )
        if self.sandbox == "none":
            print("bubblewrap: `bwrap` is not on PATH: jobs run without a sandbox; `apt-get install bubblewrap`")

    def environment(self, account):
        keep = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TERM") if name in os.environ}
        return {
            **keep,
            "AWS_ENDPOINT_URL": getattr(self, "endpoint", ""),
            "AWS_REGION": REGION,
            "AWS_ACCESS_KEY_ID": account,
            "AWS_SECRET_ACCESS_KEY": "local",
            "FREEHOLD_TENANT": TENANT,
        }

    def command(self, *arguments):
        return [BIN / "freehold", *arguments]

    def freehold(self, *arguments, account=VENDOR, quiet=False):
        if not quiet:
            print("$ freehold " + " ".join(_short(argument) for argument in arguments), flush=True)
        return self.program(self.command(*arguments), account, quiet).stdout

    def program(self, command, account=VENDOR, quiet=False, may_fail=False):
        pipe = subprocess.PIPE if quiet else None
        done = subprocess.run(
            [str(part) for part in command],
            env=self.environment(account),
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            text=True,
        )
        if done.returncode != 0 and not may_fail:
            why = (done.stderr or "").strip().splitlines()
            raise Failed(
                f"`{' '.join(_short(part) for part in command[:4])}` ended with {done.returncode}"
                + (f": {why[-1]}" if why else "")
            )
        return done

    def runner(self, role, config, account, role_name):
        """Starts a runner with the temporary credentials of its role, and waits until it has announced itself."""
        session = self.role(account, role_name)
        environment = {
            **self.environment(account),
            "AWS_ACCESS_KEY_ID": session["aws_access_key_id"],
            "AWS_SECRET_ACCESS_KEY": session["aws_secret_access_key"],
            "AWS_SESSION_TOKEN": session["aws_session_token"],
        }
        log = WORK / "files" / f"{role}-runner.log"
        with log.open("w") as file:
            process = subprocess.Popen(
                [BIN / "freehold-runner", "run", "--role", role, "--config", config],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
            )
        self.runners.append(process)
        install = "build" if role == "build" else INSTALL

        def announced():
            if process.poll() is not None:
                raise Failed(f"the {role} runner ended with {process.returncode}; see `{_short(log)}`")
            shown = self.program(self.command("install", "show", install, "--json"), VENDOR, quiet=True, may_fail=True)
            return shown.returncode == 0 and json.loads(shown.stdout).get("runner")

        self.until(f"the {role} runner announces itself", announced)
        print(f"{role} runner is up as {account} {role_name} (pid {process.pid}; log `{_short(log)}`)")

    def until(self, what, condition):
        deadline = time.monotonic() + RUNNER_SECS
        while not condition():
            if time.monotonic() > deadline:
                raise Failed(f"not within {RUNNER_SECS} s: {what}")
            time.sleep(0.2)

    def role(self, account, name):
        session = self.client("sts", account).assume_role(
            RoleArn=f"arn:aws:iam::{account}:role/{name}", RoleSessionName="demo"
        )["Credentials"]
        return {
            "aws_access_key_id": session["AccessKeyId"],
            "aws_secret_access_key": session["SecretAccessKey"],
            "aws_session_token": session["SessionToken"],
        }

    def client(self, service, account, credentials=None):
        credentials = credentials or {"aws_access_key_id": account, "aws_secret_access_key": "local"}
        return botocore.session.get_session().create_client(
            service, region_name=REGION, endpoint_url=self.endpoint, **credentials
        )

    def end(self):
        for process in self.runners:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.send_signal(signal.SIGINT)
        for process in self.runners:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
        if self.own_cloud:
            subprocess.run([CLOUD, "down", "--state", self.own_cloud], stdout=subprocess.DEVNULL)


def _short(argument):
    return str(argument).replace(f"{ROOT}/", "")


def main():
    demo = Demo()
    why = None
    try:
        demo.run()
    except Failed as failure:
        why = str(failure)
    except KeyboardInterrupt:
        why = "interrupted"
    except Exception as error:  # whatever it is, the last line says so
        why = f"{type(error).__name__}: {error}"
    finally:
        demo.end()
    print()
    if why:
        print(f"demo: failed: {why}")
        return 1
    print(f"done in {time.monotonic() - demo.started:.0f} s")
    print("demo: ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
