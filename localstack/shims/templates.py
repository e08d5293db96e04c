"""CloudFormation: boundaries of roles, buckets whose objects can be locked, and changes of outputs alone."""

import json
import re
import sys

import yaml
from ministack.services import iam, s3
from ministack.services.cloudformation import _stacks, changesets, engine, handlers, provisioners

from shims.replace import replace


def apply():
    # MiniStack parses YAML in Python, which takes 0.12 s for a template of ours. PyYAML has the same parser in C.
    replace(engine, "CfnLoader", _in_c)
    # MiniStack drops the boundary of a role in a template, although its IAM enforces boundaries.
    _after("AWS::IAM::Role", _bound)
    # It ignores `ObjectLockEnabled`, although its S3 keeps locked objects.
    _after("AWS::S3::Bucket", _enable_locks)
    # It refuses a change set that changes outputs and no resource. AWS makes one with 0 changes that can be executed
    # (github.com/aws/aws-cdk/pull/2029).
    actions = getattr(handlers, "_ACTION_HANDLERS", {})
    if "CreateChangeSet" not in actions or not callable(getattr(changesets, "_find_change_set", None)):
        sys.exit("shim: the change sets are gone; was MiniStack upgraded?")
    actions["CreateChangeSet"] = _with_outputs(actions["CreateChangeSet"])


def _in_c(slow):
    class CfnLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        yaml_constructors = slow.yaml_constructors
        yaml_implicit_resolvers = slow.yaml_implicit_resolvers

    return CfnLoader


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


def _with_outputs(create):
    def create_change_set(params):
        made = create(params)
        name, stack = (params.get(key, "") for key in ("ChangeSetName", "StackName"))
        name, stack = (one[0] if isinstance(one, list) else one for one in (name, stack))
        _, change_set = changesets._find_change_set(name, stack)
        if change_set and "didn't contain changes" in change_set["StatusReason"] and _changes_outputs(change_set):
            change_set.update(Status="CREATE_COMPLETE", ExecutionStatus="AVAILABLE", StatusReason="")
        return made

    return create_change_set


def _changes_outputs(change_set):
    """Returns whether an output is written otherwise, or refers to a parameter with another value."""
    stack = _stacks.get(change_set["StackName"]) or {}
    before, after = stack.get("_resolved_params", {}), change_set["_resolved_params"]
    outputs = change_set["_template"].get("Outputs", {})
    if outputs != stack.get("_template", {}).get("Outputs", {}):
        return True
    text = json.dumps(outputs)
    others = (name for name, value in after.items() if before.get(name, {}).get("Value") != value.get("Value"))
    return any(re.search(rf'"Ref": "{name}"|\$\{{{name}\}}', text) for name in others)
