"""The programs of the demo: the local cloud, the CLI and the runners; and AWS clients that speak to the local cloud.

The fuzzing of the API (`tests/api`) and whole runs of apps (`tests/apps`) start the same programs.
"""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import botocore.session

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/setup"))
from skips import lacking  # noqa: E402

FILES = ROOT / "target" / "demo" / "files"
CLOUD = ROOT / "localstack" / "cloud"
# The programs and functions of a release that `make dist` made, or those of the last build for development.
DIST = os.environ.get("FREEHOLD_DIST")
BIN = Path(DIST).resolve() if DIST else ROOT / "target" / "debug"
FUNCTIONS = BIN / "functions" if DIST else ROOT / "target" / "lambda" / "local"
VENDOR, CUSTOMER, REGION = "111111111111", "222222222222", "eu-west-1"
TENANT, INSTALL, APP = "acme", "globex", "demo"
# How long something may take that a runner does in seconds when nothing else uses the machine.
RUNNER_SECS = 180


class Failed(Exception):
    """Why the demo did not get to its end."""


class Answer(NamedTuple):
    """How a command ended: its exit code, the JSON on stdout, and why it failed."""

    code: int
    value: object
    reason: str


class Programs:
    def __init__(self, files=FILES):
        self.files = files
        self.started = time.monotonic()
        self.steps = 0
        self.endpoint = ""
        self.runners = []
        self.own_cloud = None
        # Of every program that is started here, beside those that all have.
        self.variables = {}
        self.terraform = shutil.which("terraform") or shutil.which("tofu")
        # Why jobs get no box on this machine, or nothing.
        self.no_box = lacking(["bwrap"])
        self.sandbox = "none" if self.no_box else "bubblewrap"

    def seconds(self):
        return time.monotonic() - self.started

    def step(self, text):
        self.steps += 1
        print(f"\n[{self.steps:>2}] {text}  ({self.seconds():.0f} s)", flush=True)

    # ---- commands

    def freehold(self, *arguments, account=VENDOR):
        """Runs `freehold`, showing the command and its output; fails when the command fails."""
        print("$ freehold " + shlex.join(_short(argument) for argument in arguments), flush=True)
        self._run(BIN / "freehold", *arguments, account=account)

    def freehold_quietly(self, *arguments, account=VENDOR):
        self._run(BIN / "freehold", *arguments, account=account, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def freehold_json(self, *arguments, account=VENDOR):
        """Returns what a command of `freehold` prints with `--json`."""
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return json.loads(self._run(BIN / "freehold", *arguments, "--json", account=account, **pipes).stdout)

    def answer(self, *arguments, account=VENDOR):
        """Runs a command of `freehold` with `--json`, which may fail."""
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        done = self._start((BIN / "freehold", *arguments, "--json"), account, **pipes)
        error = _json_of(done.stderr)
        reason = error.get("error", error) if isinstance(error, dict) else done.stderr.strip()
        message = reason.get("message", reason) if isinstance(reason, dict) else reason
        return Answer(done.returncode, _json_of(done.stdout), str(message))

    def output(self, *arguments):
        """Returns what a command of `freehold` prints for people, whether it succeeds or not."""
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        return self._start((BIN / "freehold", *arguments), VENDOR, **pipes).stdout

    def succeeds(self, *command):
        """Returns whether a command succeeds; its output is not shown."""
        return self._start(command, VENDOR, stdout=subprocess.PIPE, stderr=subprocess.PIPE).returncode == 0

    def _run(self, *command, account=VENDOR, **streams):
        done = self._start(command, account, **streams)
        if done.returncode != 0:
            reason = (done.stderr or "").strip().splitlines()
            words = " ".join(_short(part) for part in command[:4])
            raise Failed(f"`{words}` ended with {done.returncode}" + (f": {reason[-1]}" if reason else ""))
        return done

    def _start(self, command, account, **streams):
        command = [str(part) for part in command]
        env = self._environment(account)
        return subprocess.run(command, env=env, stdin=subprocess.DEVNULL, text=True, **streams)

    def _environment(self, account):
        keep = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TERM") if name in os.environ}
        return {
            **keep,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_REGION": REGION,
            "AWS_ACCESS_KEY_ID": account,
            "AWS_SECRET_ACCESS_KEY": "local",
            "FREEHOLD_TENANT": TENANT,
            **self.variables,
        }

    # ---- processes

    def start_cloud(self):
        """Uses the cloud of `make up` when that is up and has no tenant yet; otherwise starts one that ends with the
        demo."""
        if self.succeeds(CLOUD, "status"):
            self.endpoint = (ROOT / "target" / "local" / "endpoint").read_text().strip()
            if not self.succeeds(BIN / "freehold", "tenant", "status", "--name", TENANT):
                print("uses the cloud of `make up`")
                return
            print(
                f"uses a cloud of its own: that of `make up` has a tenant `{TENANT}` already, and keeps it; "
                "`make down up` empties it"
            )
        self.start_own_cloud()

    def start_own_cloud(self):
        state = self.own_cloud = self.files.parent / "cloud"
        self._run(CLOUD, "up", "--detach", "--port", "0", "--state", state, "--until-pid", os.getpid())
        self.endpoint = (state / "endpoint").read_text().strip()

    def start_runner(self, role, config, account, role_name, variables=None, quiet=False, install=INSTALL):
        """Starts a runner with the temporary credentials of its role, and waits until it has announced itself."""
        name = role if install == INSTALL else install
        credentials = self.assume(account, role_name)
        environment = {**self._environment(account), **(variables or {})}
        if self.sandbox == "none":
            # The demo runs its own app only.
            environment["FREEHOLD_JOBS_AS_ROOT"] = "1"
        environment.update({name.upper(): value for name, value in credentials.items()})
        log = self.files / f"{name}-runner.log"
        with log.open("w") as file:
            program = BIN / ("freehold-builder" if role == "build" else "freehold-runner")
            process = subprocess.Popen(
                [program, "run", "--config", config],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
            )
        self.runners.append(process)
        serves = "build" if role == "build" else install

        def has_announced_itself():
            if process.poll() is not None:
                raise Failed(f"the {name} runner ended with {process.returncode}; see `{_short(log)}`")
            try:
                return self.freehold_json("install", "show", serves).get("runner")
            except Failed:
                return False

        self.wait_until(f"the {name} runner announces itself", has_announced_itself)
        if not quiet:
            print(f"{name} runner is up as {account} {role_name} (pid {process.pid}; log `{_short(log)}`)")

    def wait_until(self, what, condition):
        deadline = time.monotonic() + RUNNER_SECS
        while not condition():
            if time.monotonic() > deadline:
                raise Failed(f"not within {RUNNER_SECS} s: {what}")
            time.sleep(0.2)

    def end_runners(self):
        for process in self.runners:
            if process.poll() is None:
                # The first signal drains the runner, the second stops it at once.
                process.send_signal(signal.SIGINT)
                process.send_signal(signal.SIGINT)
        for process in self.runners:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()

    def end(self):
        self.end_runners()
        if self.own_cloud:
            subprocess.run([CLOUD, "down", "--state", self.own_cloud], stdout=subprocess.DEVNULL)

    # ---- AWS

    def client(self, service, account, credentials=None):
        credentials = credentials or {"aws_access_key_id": account, "aws_secret_access_key": "local"}
        session = botocore.session.get_session()
        return session.create_client(service, region_name=REGION, endpoint_url=self.endpoint, **credentials)

    def assume(self, account, role):
        """Returns the temporary credentials of a role, as arguments of a client."""
        arn = f"arn:aws:iam::{account}:role/{role}"
        session = self.client("sts", account).assume_role(RoleArn=arn, RoleSessionName="demo")["Credentials"]
        return {
            "aws_access_key_id": session["AccessKeyId"],
            "aws_secret_access_key": session["SecretAccessKey"],
            "aws_session_token": session["SessionToken"],
        }


def _json_of(text):
    """Returns the JSON that a text is, or that its last line with JSON is; otherwise the text."""
    for part in (text, *reversed(text.splitlines())):
        try:
            return json.loads(part)
        except ValueError:
            continue
    return text


def _short(argument):
    return str(argument).replace(f"{ROOT}/", "")
