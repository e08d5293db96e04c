"""The largest boundaries of install stacks, and their size."""

import json
import re

from intrinsics import Evaluator
from templates import ACCOUNT, REGION, properties

# Every part of the boundary, as a policy of its own and beside a boundary of the company.
BOUNDARIES = [
    {
        "RevokeSessionsBefore": "2026-10-01T00:00:00Z",
        "EnableAppRoles": enabled,
        "PermissionsBoundaryArn": boundary,
        "PermissionsBoundaryHasOurs": "true",
    }
    for boundary in ("", f"arn:aws-us-gov:iam::{ACCOUNT}:policy/{'b' * 128}")
    for enabled in ("true", "false")
]
# The partition and the region with the longest names together, which the boundary has in its ARNs.
PARTITION, LONG_REGION = "aws-us-gov", "us-gov-west-1"
# The stack's name, of the longest, and how long the id of a key is.
STACK, KEY_ID = "s" * 128, "0" * 36


def size_of_boundary(template, parameters):
    """Returns how many characters IAM counts in the boundary."""
    evaluator = Evaluator(template, STACK, ACCOUNT, parameters)
    evaluator.values |= {"AWS::Partition": PARTITION, "AWS::Region": LONG_REGION}
    text = json.dumps(evaluator.resolve(properties(template, "Boundary"))["PolicyDocument"])
    # The ARNs of resources, which the evaluator has for one partition and region, and for a key without an id.
    for short, long in (
        ("arn:aws:", f"arn:{PARTITION}:"),
        (f":{REGION}:", f":{LONG_REGION}:"),
        (f"Key-{STACK}", KEY_ID),
    ):
        text = text.replace(short, long)
    return len(re.sub(r"\s", "", text))
