"""Runs every command of docs/guides on a local cloud, and compares what follows with what the guides promise. Does the
same with docs/api.md, the page about calls of the API without the command.

Blocks of a guide:

    ```sh              is run; has to end with exit code 0, or with N where the fence says `exit=N`; then the text
                       after the block before it has to say `exit code N`, because no reader sees the fence
    ```sh background   is started, and continues
    ```sh elsewhere: REASON
                       is not run here, and listed at the end with the reason
    ```keys            ctrl-c in the terminal of what was started last and still runs
    ```text            what the block before it prints; `...` is any text, `<NAME>` a word that is `$NAME` from then on
"""

import argparse
import os
import re
import subprocess
import sys
import time

import blocks
import downloads
import guard_duty
import leftovers
import skips
import tool_image
from journey import PEOPLE, Journey

from programs import BIN, CLOUD, ROOT, Failed

GUIDES = ROOT / "docs" / "guides"
PAGES = {guide: ROOT / "docs" / "api.md" if guide == "api" else GUIDES / f"{guide}.md" for guide in PEOPLE}
STATE = ROOT / "target" / "guides" / "cloud"
# Vendor, customer and the program that calls the API take turns: a guide, and its last heading in this turn.
TURNS = [
    ("vendor", "Write to the customer"),
    ("customer", "Launch"),
    ("vendor", None),
    ("customer", "Watch"),
    ("operations", "When a deploy fails"),
    ("api", None),
    ("customer", "Limit"),
    ("operations", "Continue after a failure"),
    ("customer", "Stop"),
    ("operations", "Take an artifact back"),
    ("customer", None),
    ("operations", None),
]


def turns():
    """Yields each guide and its sections of this turn; every section of every guide comes up once."""
    left = {guide: list(blocks.read(page).items()) for guide, page in PAGES.items()}
    for guide, last in TURNS:
        count, headings = len(left[guide]), [heading for heading, _ in left[guide]]
        if last is not None:
            if last not in headings:
                page = PAGES[guide].relative_to(ROOT)
                raise Failed(f"{page} has no heading `{last}`, after which the turn changes")
            count = headings.index(last) + 1
        yield guide, left[guide][:count]
        left[guide] = left[guide][count:]


def compare_with_help():
    """Fails when the help's way from nothing to a running install has a command that no guide has."""
    pages = " ".join(" ".join(path.read_text().split()) for path in GUIDES.glob("*.md"))
    text = subprocess.run([BIN / "freehold", "--help"], capture_output=True, text=True, check=True).stdout
    way = text.partition("From nothing to a running install")[2].partition("Exit codes:")[0]
    commands = re.findall(r"^ +(export .+|(?:make|freehold[a-z-]*)(?: [a-z][a-z-]*)+)", way, re.MULTILINE)
    absent = [command for command in commands if command not in pages]
    if absent or not commands:
        raise Failed(f"`freehold --help` and the guides differ: no guide has `{'`, `'.join(absent)}`")


def missing_programs():
    """Returns what the guides ask a person to install, and this machine has not."""
    wanted = {"Terraform or OpenTofu": "terraform|tofu", "bubblewrap": "bwrap", "curl": "curl", "jq": "jq"}
    reasons = {name: skips.lacking([programs]) for name, programs in wanted.items()}
    return [f"{name} ({reason})" for name, reason in reasons.items() if reason]


def run(arguments):
    start = [CLOUD, "up", "--detach", "--port", "0", "--state", STATE, "--until-pid", str(os.getpid())]
    subprocess.run(start, check=True, stdout=subprocess.DEVNULL)
    endpoint = (STATE / "endpoint").read_text().strip()
    journey = Journey(endpoint, arguments.tools, arguments.verbose)
    try:
        downloads.make_bucket(endpoint)
        for guide, sections in turns():
            journey.turn(guide, sections)
        downloads.remove_bucket(endpoint)
        leftovers.check(endpoint)
    finally:
        journey.end()
        subprocess.run([CLOUD, "down", "--state", STATE], stdout=subprocess.DEVNULL)
    return journey


def main():
    parser = argparse.ArgumentParser(prog="tests/guides/run", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--tools", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--verbose", action="store_true", help="print what every command prints")
    arguments = parser.parse_args()
    begun = time.monotonic()
    if missing := missing_programs():
        skips.skip("guides", f"the guides need {' and '.join(missing)}")
        return 0
    try:
        compare_with_help()
        tool_image.check(blocks.read(GUIDES / "vendor.md"))
        guard_duty.check(blocks.read(GUIDES / "customer.md"), arguments.tools)
        journey = run(arguments)
    except (Failed, blocks.Unreadable) as failure:
        print(f"guides: failed: {failure}")
        return 1
    for block in journey.elsewhere:
        print(f"not run: {block.place}: {block.reason}")
        print("".join(f"  {line}\n" for line in block.text.splitlines()), end="")
    print(f"guides: ok: {journey.done} blocks in {time.monotonic() - begun:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
