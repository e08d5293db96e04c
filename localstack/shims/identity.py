"""IAM: the condition keys `aws:PrincipalArn` and `iam:PermissionsBoundary`, and the action of a batch call."""

from ministack.core import iam_actions, iam_evaluator
from ministack.services import iam

from shims.replace import replace


def apply():
    # For a role session, this key is the role's ARN on AWS, and the session's ARN in MiniStack.
    replace(iam_evaluator, "_resolve_condition_key", _role_for_session)
    # For a batch call, AWS requires the permission of the single call; MiniStack requires one of the batch's name.
    replace(iam_actions, "extract_iam_action", _single_for_batch)
    # On AWS this key is the boundary in the request; MiniStack does not know the key.
    replace(iam_actions, "request_tag_context", _with_boundary)


def _with_boundary(original):
    def request_context(service, iam_action, body, params):
        context = original(service, iam_action, body, params)
        given = params.get("PermissionsBoundary") if service == "iam" else None
        if given:
            context["iam:permissionsboundary"] = given[0] if isinstance(given, list) else given
        return context

    return request_context


def _single_for_batch(original):
    def extract_iam_action(*args, **kwargs):
        action = original(*args, **kwargs)
        if isinstance(action, str) and action.startswith("sqs:") and action.endswith("Batch"):
            return action.removesuffix("Batch")
        return action

    return extract_iam_action


def _role_for_session(original):
    def resolve_condition_key(key, ctx):
        value = original(key, ctx)
        if key.lower() == "aws:principalarn" and ":assumed-role/" in str(value):
            return role_arn(value, ctx.principal_account)
        return value

    return resolve_condition_key


def role_arn(session_arn, account):
    """Returns the ARN of the role of a session. Its path is in the stored role only."""
    name = session_arn.split(":assumed-role/", 1)[1].split("/", 1)[0]
    role = iam._roles.get_scoped(account, None, name) or {}
    return role.get("Arn") or f"arn:aws:iam::{account}:role/{name}"
