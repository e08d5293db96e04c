"""Runs app configs whole: from the vendor's sync to the last action, each on a local cloud of its own.

What cannot run here is left out, with the reason: what the product says that it cannot deploy, charts of repositories,
and private images. A stand-in replaces a public image, and a module whose providers cannot be had. No app is known by
its name.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import install
import vendor
from config import KINDS, Config
from programs import ROOT, TENANT, VENDOR, Failed, Programs


def main():
    parser = argparse.ArgumentParser(prog="tests/apps/run", description=__doc__)
    parser.add_argument("apps", nargs="+", type=Path, metavar="DIR", help="an app config's directory")
    parser.add_argument("--sources", type=Path, default=ROOT / "../shared/sources", help="a folder of OWNER/NAME")
    arguments = parser.parse_args()
    failed = [app for app in arguments.apps if not run(app.resolve(), arguments.sources.resolve())]
    return 1 if failed else 0


def run(directory, sources):
    """Runs one app; returns whether everything that was tried went well."""
    with tempfile.TemporaryDirectory(prefix="freehold-apps-") as work:
        app = App(directory, sources, Path(work))
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
    return reason is None


class App:
    """An app that is run: its config, what serves it, and what is known of it so far."""

    def __init__(self, directory, sources, work):
        self.work, self.sources = work, sources
        self.config = Config(directory, work / "configs" / directory.name)
        (work / "files").mkdir()
        self.programs = Programs(work / "files")
        self.build_variables = {}
        self.created = {}
        self.cluster = None
        # How many components and actions the config has before anything is left out.
        self.whole = {kind: len(self.config.entries(kind)) for kind in KINDS}
        self._told = set()

    def timed(self, name, step):
        begun = time.monotonic()
        detail = step(self)
        self.tell_left_out()
        print(
            f"{self.config.name}: {name}: {time.monotonic() - begun:.1f} s{f'; {detail}' if detail else ''}", flush=True
        )

    def summary(self):
        """Returns the verdict with how much of the app it is about."""
        left_out = [kind for kind, _ in self.config.left_out]
        kept = (f"{count - left_out.count(kind)} of {count} {kind}s" for kind, count in self.whole.items())
        return f"ok: {', '.join(kept)}"

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
    ("sources", vendor.serve),
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
