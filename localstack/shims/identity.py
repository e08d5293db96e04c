"""IAM: keys of conditions (the principal, a boundary, a conditional write to S3), batch calls, and keys by an alias."""

from ministack.core import iam_actions, iam_evaluator
from ministack.services import iam, kms

from shims.replace import replace

# Actions that change a role's policies, for which the key is the boundary that the role has.
POLICY_CHANGES = ("AttachRolePolicy", "DeleteRolePolicy", "DetachRolePolicy", "PutRolePolicy")


def apply():
    # For a role session, this key is the role's ARN on AWS, and the session's ARN in MiniStack.
    replace(iam_evaluator, "_resolve_condition_key", _role_for_session)
    # For a batch call, AWS requires the permission of the single call; MiniStack requires one of the batch's name.
    replace(iam_actions, "extract_iam_action", _single_for_batch)
    # On AWS this key is the boundary in the request, or of the role whose policies change; MiniStack does not know it.
    replace(iam_actions, "request_tag_context", _with_boundary)
    # For a request that names a key by its alias, AWS compares the key's ARN; MiniStack compares the alias's.
    replace(iam_actions, "extract_resource_arn", _key_of_alias)
    # On AWS these keys are the headers of a conditional write (Amazon S3 User Guide, "Enforce conditional writes on
    # Amazon S3 buckets"); MiniStack obeys the headers and does not know the keys.
    replace(iam_actions, "s3_service_context", _with_conditions_of_write)
    # On AWS, a write that locks its object needs `s3:PutObjectRetention` too (Amazon S3 API Reference, "PutObject").
    replace(iam_actions, "s3_additional_checks", _with_lock_of_write)


def _with_boundary(original):
    def request_context(service, iam_action, body, params):
        context = original(service, iam_action, body, params)
        if service != "iam":
            return context
        boundary = _first(params.get("PermissionsBoundary"))
        if iam_action.rpartition(":")[2] in POLICY_CHANGES:
            boundary = (iam._roles.get(_first(params.get("RoleName"))) or {}).get("PermissionsBoundary")
        if boundary:
            context["iam:permissionsboundary"] = boundary
        return context

    return request_context


def _with_conditions_of_write(original):
    def s3_service_context(iam_action, query_params, path="", headers=None):
        context = original(iam_action, query_params, path, headers)
        if iam_action == "s3:PutObject":
            given = {name: (headers or {}).get(name) for name in ("if-none-match", "if-match")}
            context.update({f"s3:{name}": value for name, value in given.items() if value})
        return context

    return s3_service_context


def _with_lock_of_write(original):
    def s3_additional_checks(method, path, headers, body, query_params):
        checks = original(method, path, headers, body, query_params)
        bucket, _, key = path.lstrip("/").partition("/")
        if method == "PUT" and key and headers.get("x-amz-object-lock-mode"):
            checks.append(("s3:PutObjectRetention", f"arn:aws:s3:::{bucket}/{key}"))
        return checks

    return s3_additional_checks


def _key_of_alias(original):
    def extract_resource_arn(service, *args, **kwargs):
        arn = original(service, *args, **kwargs)
        if service == "kms" and ":alias/" in str(arn):
            return (kms._resolve_key(arn) or {}).get("Arn", arn)
        return arn

    return extract_resource_arn


def _first(value):
    return value[0] if isinstance(value, list) else value


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
