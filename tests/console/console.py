"""Walks every page of the console in Chromium, on a local cloud with real functions.

A tenant with an app and two installs is made by the command. Five people sign in on the user pool's page, with a
browser each: a stranger, the owner, a developer, a data scientist and a customer's user. They accept invitations,
approve a plan, deploy, watch, retry, resume, and are refused what they may not do. Each page is checked in its light
and its dark form: axe-core finds nothing serious, a window of 360 px shows all of it, a keyboard reaches every
control and shows where it is, it says the same without a script, has at most 50 kB, and violates no content security
policy. No request leaves the console, except to the issuer while somebody signs in.

The pictures of the pages are in target/console/pages. Ends with one JSON line per figure.
"""

import argparse
import json
import shutil
import sys

from playwright.sync_api import Error as BrowserError
from playwright.sync_api import sync_playwright

import browser
import tenant
from programs import ROOT, Failed, Programs
from walk import SCHEMES, Walk

WORK = ROOT / "target" / "console"
PAGES = WORK / "pages"


def main():
    parser = argparse.ArgumentParser(
        prog="tests/console/run", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.parse_args()
    shutil.rmtree(WORK, ignore_errors=True)
    PAGES.mkdir(parents=True)
    (WORK / "files").mkdir()
    programs, failure, walk = Steps(WORK / "files"), None, None
    try:
        made = tenant.make(programs)
        with sync_playwright() as playwright:
            walk = Walk(browser.start(playwright), programs, made, PAGES)
            try:
                walk.run()
            except (Failed, BrowserError):
                walk.show_where()
                raise
    except (Failed, BrowserError) as error:
        failure = error
    finally:
        programs.end()
    faults = faults_of(walk) if walk else []
    print("".join(f"console: {fault}\n" for fault in [*faults, *filter(None, [failure])]), file=sys.stderr, end="")
    if walk and not failure:
        for figure in figures(walk):
            print(json.dumps(figure))
    return 1 if failure or faults else 0


class Steps(Programs):
    """The programs, with the steps on stderr: stdout is for the figures."""

    def step(self, text):
        self.steps += 1
        print(f"[{self.steps:>2}] {text}  ({self.seconds():.0f} s)", file=sys.stderr, flush=True)


def faults_of(walk):
    """Returns what is wrong, in words."""
    pages = [f"page `{name}`: {fault}" for name, faults in walk.checked.items() for fault in faults]
    return pages + [f"foreign request: {who}: {what}" for who, one in walk.browsers.items() for what in one.foreign]


def figures(walk):
    """Returns the figures: pages that were checked, what axe-core found in their two forms, and foreign requests."""
    pages = len(walk.checked)
    good = sum(not faults for faults in walk.checked.values())
    # Each with its page and the scheme in which it was found.
    serious = [
        (name, fault.partition(":")[0])
        for name, faults in walk.checked.items()
        for fault in faults
        if ": axe: " in fault
    ]
    requests = sum(one.requests for one in walk.browsers.values())
    foreign = sum(len(one.foreign) for one in walk.browsers.values())
    return (
        figure("console.pages", pages, pages, good),
        figure("console.axe", len(serious), pages * len(SCHEMES), pages * len(SCHEMES) - len(set(serious))),
        figure("console.foreign_requests", foreign, requests, requests - foreign),
    )


def figure(name, value, attempted, passed):
    return {"name": name, "value": value, "attempted": attempted, "passed": passed, "seed": 0}


if __name__ == "__main__":
    sys.exit(main())
