"""The commands of the customer's guide about GuardDuty, which the local cloud does not have.

The AWS CLI compares their parameters with AWS's model of the API, as before each call, and calls nobody.
"""

import os
import subprocess

from programs import REGION, Failed

COMMAND = "aws guardduty"
# Each command prints what the model says about its answer, in which `--query` finds nothing but the fields that exist.
SCRIPT = """set -euo pipefail
aws() { command aws "$@" --generate-cli-skeleton output; }
%s
if [[ $DETECTOR == None ]]; then
    echo "the answer does not have what --query asks for" >&2
    exit 1
fi
"""


def check(sections, tools):
    """Does the commands of the only block about GuardDuty, with the AWS CLI in the directory `tools`."""
    blocks = [block for found in sections.values() for block in found if COMMAND in block.text]
    if len(blocks) != 1:
        raise Failed(f"docs/guides/customer.md has {len(blocks)} blocks with `{COMMAND}` instead of one")
    [block] = blocks
    environment = {"PATH": f"{tools}:{os.environ['PATH']}", "AWS_DEFAULT_REGION": REGION, "AWS_PAGER": ""}
    done = subprocess.run(["bash", "-c", SCRIPT % block.text], env=environment, capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"{block.place}: AWS would refuse these commands: {done.stderr.strip()}")
