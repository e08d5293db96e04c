"""CloudFormation: the permissions boundary of a role, and buckets whose objects can be locked."""

import sys

from ministack.services import iam, s3
from ministack.services.cloudformation import provisioners


def apply():
    # MiniStack drops the boundary of a role in a template, although its IAM enforces boundaries.
    _after("AWS::IAM::Role", _bound)
    # It ignores `ObjectLockEnabled`, although its S3 keeps locked objects.
    _after("AWS::S3::Bucket", _enable_locks)


def _after(kind, finish):
    """Lets the handlers of a resource end with `finish`, which gets the name and the properties of what they made."""
    handlers = getattr(provisioners, "_RESOURCE_HANDLERS", {}).get(kind, {})
    if not {"create", "update"} <= handlers.keys():
        sys.exit(f"shim: the handlers of `{kind}` are gone; was MiniStack upgraded?")
    create, update = handlers["create"], handlers["update"]

    def create_whole(logical_id, props, stack_name):
        made = create(logical_id, props, stack_name)
        finish(made[0] if isinstance(made, tuple) else made, props)
        return made

    def update_whole(physical_id, old, new, *args, **kwargs):
        made = update(physical_id, old, new, *args, **kwargs)
        finish(made[0] if isinstance(made, tuple) else physical_id, new)
        return made

    handlers["create"], handlers["update"] = create_whole, update_whole


def _bound(name, props):
    role = iam._roles.get(name)
    if role is not None:
        role["PermissionsBoundary"] = props.get("PermissionsBoundary")


def _enable_locks(name, props):
    if str(props.get("ObjectLockEnabled")).lower() == "true" and not s3._bucket_object_lock.get(name):
        s3._bucket_object_lock[name] = {"enabled": True, "default_retention": None}
