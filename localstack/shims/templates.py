"""CloudFormation: the permissions boundary of a role."""

import sys

from ministack.services import iam
from ministack.services.cloudformation import provisioners


def apply():
    # MiniStack drops the boundary of a role in a template, although its IAM enforces boundaries.
    handlers = getattr(provisioners, "_RESOURCE_HANDLERS", {}).get("AWS::IAM::Role", {})
    if not {"create", "update"} <= handlers.keys():
        sys.exit("shim: the handlers of `AWS::IAM::Role` are gone; was MiniStack upgraded?")
    create, update = handlers["create"], handlers["update"]

    def create_bounded(logical_id, props, stack_name):
        made = create(logical_id, props, stack_name)
        _bound(made[0] if isinstance(made, tuple) else made, props)
        return made

    def update_bounded(physical_id, old, new, *args, **kwargs):
        made = update(physical_id, old, new, *args, **kwargs)
        _bound(made[0] if isinstance(made, tuple) else physical_id, new)
        return made

    handlers["create"], handlers["update"] = create_bounded, update_bounded


def _bound(name, props):
    role = iam._roles.get(name)
    if role is not None:
        role["PermissionsBoundary"] = props.get("PermissionsBoundary")
