"""Runs app configs whole: from the vendor's sync to the last action, each on a local cloud of its own.

What cannot run here is left out, with the reason: what the product says that it cannot deploy, and private images. A
stand-in replaces a public image, a chart of a repository, a source that is not at hand, a module whose providers cannot
be had, a program of Pulumi with Pulumi itself, and a kind that the API server lacks. Jobs run their programs in a tool
image. No app is known by its name.
"""

import argparse
import datetime
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import collection
import install
import page
import sources
import vendor
from config import KINDS, Config
from job_image import Tools
from programs import ROOT, TENANT, VENDOR, Failed, Programs


def main():
    arguments = _arguments()
    folder = (arguments.sources or arguments.all / "sources").resolve()
    apps = [directory.resolve() for directory in arguments.apps] or collection.of_aws(arguments.all, folder)
    found, tools = [], Tools()
    for directory in apps:
        found.append(run(directory, folder, tools))
        if arguments.results:
            with arguments.results.open("a") as file:
                file.write(json.dumps(found[-1]) + "\n")
    if arguments.page:
        arguments.page.write_text(page.text(found, *_moment(), collection.clouds(arguments.all)))
    for figure in collection.figures(found) if arguments.figures else ():
        print(json.dumps(figure), flush=True)
    return 0 if all(result["reason"] is None for result in found) else 1


def _arguments():
    parser = argparse.ArgumentParser(prog="tests/apps/run", description=__doc__)
    parser.add_argument("apps", nargs="*", type=Path, metavar="DIR", help="an app config's directory")
    parser.add_argument("--all", type=Path, default=collection.FOLDER, metavar="FOLDER", help=collection.__doc__)
    parser.add_argument("--sources", type=Path, metavar="DIR", help="a folder of OWNER/NAME; otherwise FOLDER/sources")
    parser.add_argument(
        "--results", type=Path, metavar="FILE", help="add what was found to it, as a line of JSON an app"
    )
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the page of all apps")
    parser.add_argument("--figures", action="store_true", help="print how many apps got how far, as lines of JSON")
    return parser.parse_args()


def _moment():
    """Returns the date and the commit of this run."""
    git = ["git", "-C", str(ROOT), "rev-parse", "--short=7", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True).stdout.strip()
    return datetime.datetime.now(datetime.timezone.utc).date().isoformat(), commit or "unknown"


def run(directory, folder, tools):
    """Runs one app; returns what was found, with the reason why it failed, if it did."""
    with tempfile.TemporaryDirectory(prefix="freehold-apps-") as work:
        app = App(directory, folder, Path(work), tools)
        reason = None
        try:
            for name, step in STEPS:
                app.timed(name, step)
        except Failed as failure:
            reason = str(failure)
        except Exception as failure:  # whatever it is, the last line says so
            reason = f"{type(failure).__name__}: {str(failure)[:300]}"
        finally:
            app.programs.end()
        print(f"app {app.config.name}: {app.summary() if reason is None else f'failed: {reason}'}", flush=True)
    return app.result(reason)


def app_name(folder):
    """Returns a name that an app may have, which is that of its folder where that is one."""
    name = re.sub(r"[^a-z0-9]+", "-", folder.lower()).strip("-")
    return name if re.fullmatch(r"[a-z].{1,39}", name) else f"app-{name}"[:40].strip("-")


class App:
    """An app that is run: its config, what serves it, and what is known of it so far."""

    def __init__(self, directory, folder, work, tools):
        self.work, self.sources, self.tools = work, folder, tools
        self.config = Config(directory, work / "configs" / app_name(directory.name))
        (work / "files").mkdir()
        self.programs = Programs(work / "files")
        self.build_variables = {}
        self.created = {}
        self.cluster, self.repositories = None, None
        self.has_own_tools, self.has_tool_image, self.pulumi = False, False, None
        # How many components and actions the config has before anything is left out.
        self.whole = {kind: len(self.config.entries(kind)) for kind in KINDS}
        # What of which part is a stand-in, the hosts of images and charts that are, and kinds of the cluster.
        self.stand_ins, self.images, self.kinds = {}, [], []
        # What was changed in components, the actions that succeeded, and why others failed.
        self.changed, self.ran_actions, self.failed_actions = {}, set(), {}
        self.cut_short = {}  # job of an action that waited too long -> seconds
        self.steps = []
        self._told = set()

    def replace(self, name, what):
        """Notes that something of a component, or of the sandbox, is a stand-in."""
        self.stand_ins.setdefault(name, what)

    def fail_action(self, name, why):
        """Leaves out an action that ran and failed for a reason of this machine; returns whether it was there."""
        self.failed_actions[name] = why
        return self.config.leave_out("action", name, why)

    def timed(self, name, step):
        begun = time.monotonic()
        detail = step(self)
        self.tell_left_out()
        seconds = round(time.monotonic() - begun, 1)
        self.steps.append({"step": name, "seconds": seconds, "detail": detail or ""})
        print(f"{self.config.name}: {name}: {seconds} s{f'; {detail}' if detail else ''}", flush=True)

    def summary(self):
        """Returns the verdict with how much of the app it is about."""
        left_out = [kind for kind, _ in self.config.left_out]
        kept = (f"{count - left_out.count(kind)} of {count} {kind}s" for kind, count in self.whole.items())
        return f"ok: {', '.join(kept)}"

    def result(self, reason):
        """Returns what was found, as plain values."""
        return {
            "app": self.config.name,
            "reason": reason,
            "steps": self.steps,
            "whole": self.whole,
            "sandbox": bool(self.config.sandbox()),
            "cluster": self.cluster is not None,
            "stand_ins": sorted(self.stand_ins),
            "replaced": self.stand_ins,
            "kinds": [list(one) for one in self.kinds],
            "changed": {
                one: how for one, how in self.changed.items() if ("component", one) not in self.config.left_out
            },
            "images": self.images,
            "ran_actions": sorted(self.ran_actions - self.failed_actions.keys()),
            "failed_actions": sorted(self.failed_actions),
            "idle_actions": sorted(self.config.entries("action").keys() - self.ran_actions),
            "left_out": [
                [kind, name, why, self.config.types.get((kind, name))]
                for (kind, name), why in self.config.left_out.items()
            ],
        }

    def tell_left_out(self):
        for (kind, name), why in self.config.left_out.items():
            if (kind, name) not in self._told:
                self._told.add((kind, name))
                print(f"{self.config.name}: left out: {kind} `{name}`: {why}", flush=True)

    def ask(self, *words, account=VENDOR):
        """Returns the JSON of a command that has to succeed."""
        answer = self.programs.answer(*words, account=account)
        if answer.code:
            raise Failed(f"`freehold {' '.join(map(str, words[:3]))}` ended with {answer.code}: {answer.reason}")
        return answer.value


def start(app):
    app.programs.start_own_cloud()
    functions, principal = ROOT / "target/lambda/local", f"arn:aws:iam::{VENDOR}:root"
    app.ask("tenant", "deploy", "--name", TENANT, "--functions", functions, "--build-runner-principal", principal)


STEPS = (
    ("cloud and tenant", start),
    ("sources", sources.serve),
    ("sync", vendor.sync),
    ("create the install", install.create),
    ("build", vendor.build),
    ("launch the stack", install.launch),
    ("provision", install.provision),
    ("change an input", install.change),
    ("actions", install.act),
    ("tear down", install.tear_down),
)


if __name__ == "__main__":
    sys.exit(main())
