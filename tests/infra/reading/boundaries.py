"""The largest boundaries of install stacks, and their size."""

import json
import re

from intrinsics import Evaluator
from templates import ACCOUNT, properties

# Every part of the boundary, as a policy of its own and beside a boundary of the company.
BOUNDARIES = [
    {"RevokeSessionsBefore": "2026-10-01T00:00:00Z", "EnableAppRoles": enabled, "PermissionsBoundaryArn": boundary}
    for boundary in ("", f"arn:aws-us-gov:iam::{ACCOUNT}:policy/{'b' * 128}")
    for enabled in ("true", "false")
]


def size_of_boundary(template, parameters):
    """Returns how many characters IAM counts in the boundary."""
    document = Evaluator(template, "s" * 128, ACCOUNT, parameters).resolve(properties(template, "Boundary"))
    return len(re.sub(r"\s", "", json.dumps(document["PolicyDocument"])))
