"""Two people and a program, and what they type: each block is done in a shell and compared with what is shown."""

import hashlib
import os
import shutil
import signal
import subprocess
import time

import promise
from shell import Shell, wait_for

from programs import BIN, CUSTOMER, REGION, ROOT, VENDOR, Failed

FOLDERS = ROOT / "target" / "guides" / "files"
FUNCTIONS = ROOT / "target" / "lambda" / "local"
# Who types the commands of a guide, and the profile and account of each of them.
PEOPLE = {"vendor": "vendor", "customer": "customer", "operations": "vendor", "api": "program"}
PROFILES = {"vendor": ("acme", VENDOR), "customer": ("globex", CUSTOMER), "program": ("acme", VENDOR)}
# What the vendor sends to the customer: files, and those of the release.
SENT = ("globex.yaml", "my-app.contract.json", "release-key.pub")
HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
# The queues of the guides are in AWS, and those of the journey in a cloud on this machine: the customer's guide says
# what to add there.
LOCAL = ("customer verify-template ", "customer verify-template --local ")
RELEASED = ("SHA256SUMS", "SHA256SUMS.sig", "x86_64/freehold")


class Journey:
    def __init__(self, endpoint, tools, verbose):
        self.verbose = verbose
        self.elsewhere, self.done, self.values = [], 0, {}
        path = f"{BIN}:{tools}:{os.environ['PATH']}"
        environment = {"PATH": path, "LANG": "C.UTF-8", "AWS_ENDPOINT_URL": endpoint, "AWS_PAGER": "", "COLUMNS": "100"}
        shutil.rmtree(FOLDERS, ignore_errors=True)
        self.shells = {person: Shell(FOLDERS / person, environment) for person in PROFILES}
        for person, (profile, account) in PROFILES.items():
            aws = self.shells[person].home / ".aws"
            keys = f"aws_access_key_id = {account}\naws_secret_access_key = local\n"
            (aws / "credentials").write_text(f"[{profile}]\n{keys}")
            (aws / "config").write_text(f"[profile {profile}]\nregion = {REGION}\n")
        self._make_what_is_built_elsewhere(self.shells["vendor"].folder)

    def _make_what_is_built_elsewhere(self, folder):
        for architecture in ("arm64", "x86_64"):
            release = folder / "target" / "dist" / architecture
            release.mkdir(parents=True)
            (release / "functions").symlink_to(FUNCTIONS)
            for program in ("freehold", "freehold-builder", "freehold-runner"):
                (release / program).symlink_to(BIN / program)
        # A private key and the key of an SSH server, as the vendor has them.
        key = ("openssl", "genpkey", "-algorithm", "ed25519", "-out", folder / "id_ed25519")
        subprocess.run(list(map(str, key)), check=True, capture_output=True)
        (folder / "keys.txt").write_text(f"git.acme.example {HOST_KEY}\n")

    def turn(self, guide, sections):
        """Does the blocks of some sections of a guide."""
        shell = self.shells[PEOPLE[guide]]
        if guide == "customer":
            self._send()
        for heading, found in sections:
            print(f"{guide}: {heading}", flush=True)
            before, printed = None, None
            for block in found:
                if block.kind == "text":
                    self._compare(block, before, printed)
                else:
                    before, printed = block, self._do(shell, block)

    def _do(self, shell, block):
        """Does what a block says, and returns a function that returns what it has printed until now."""
        if block.kind == "sh elsewhere":
            self.elsewhere.append(block)
            return lambda: ""
        self.done += 1
        if block.kind == "sh background":
            return shell.start(block.text).read_text
        begun = time.monotonic()
        code, printed = _interrupt(shell) if block.kind == "keys" else shell.run(as_typed(block.text))
        print(f"  {time.monotonic() - begun:5.1f} s  {block.text.splitlines()[0]}", flush=True)
        if self.verbose:
            print(printed)
        if code != block.exit:
            raise Failed(f"{block.place}: ended with {code} instead of {block.exit}:\n{block.text}\n{printed}")
        return lambda: printed

    def _compare(self, block, before, printed):
        if before is None:
            raise Failed(f"{block.place}: there is no command before this block")

        def compared():
            return promise.compare(block.text, printed(), self.values)

        if before.kind == "sh background":
            wait_for(lambda: compared()[0] is not None)
        values, missed = compared()
        if values is None:
            raise Failed(f"{block.place}: the guide promises `{missed}`; this was printed:\n{printed()}")
        self.values = values
        for shell in self.shells.values():
            shell.environment.update(values)

    def _send(self):
        for name in SENT:
            there = self.shells["customer"].folder / name
            if not there.exists():
                shutil.copy(self.shells["vendor"].folder / name, there)
        vendor = self.shells["vendor"].folder
        _sign(vendor / "target" / "dist", vendor / "release-key.pem")
        for name in RELEASED:
            there = self.shells["customer"].folder / name
            there.parent.mkdir(exist_ok=True)
            if not there.exists():
                there.symlink_to(vendor / "target" / "dist" / name)

    def end(self):
        for shell in self.shells.values():
            shell.end()


def as_typed(commands):
    """Returns the commands of a guide as they are typed in a trial with a local cloud."""
    return commands.replace(*LOCAL)


def _sign(release, key):
    """Writes the checksums of a release, and their signature by `key`, as `make dist KEY=FILE` does."""
    programs = sorted(release.glob("*/freehold*"))
    sums = release / "SHA256SUMS"
    digests = {program: hashlib.sha256(program.read_bytes()).hexdigest() for program in programs}
    sums.write_text("".join(f"{digest}  {program.relative_to(release)}\n" for program, digest in digests.items()))
    words = ("pkeyutl", "-sign", "-rawin", "-inkey", key, "-in", sums, "-out", f"{sums}.sig")
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)


def _interrupt(shell):
    """Presses ctrl-c in the terminal of what was started last and still runs.

    Returns its exit code and what it printed.
    """
    process, log = next((one, log) for one, log in reversed(shell.background) if one.poll() is None)
    os.killpg(process.pid, signal.SIGINT)
    wait_for(lambda: process.poll() is not None)
    return process.returncode, log.read_text()
