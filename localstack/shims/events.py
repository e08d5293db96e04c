"""CloudTrail: every call that manages something is an event, with the session that made it, and lists have pages."""

import json
import os
import sys

from ministack import app
from ministack.services import cloudtrail, sts

from shims.replace import replace

# CloudTrail's event history has no data events (AWS CloudTrail user guide, "Viewing event history").
DATA = {
    "dynamodb": (
        "BatchGetItem",
        "BatchWriteItem",
        "DeleteItem",
        "GetItem",
        "PutItem",
        "Query",
        "Scan",
        "TransactGetItems",
        "TransactWriteItems",
        "UpdateItem",
    ),
    "lambda": ("Invoke",),
    "s3": (
        "CompleteMultipartUpload",
        "CreateMultipartUpload",
        "DeleteObject",
        "DeleteObjects",
        "GetObject",
        "HeadObject",
        "ListObjects",
        "ListObjectsV2",
        "PutObject",
        "UploadPart",
    ),
    "sqs": (
        "ChangeMessageVisibility",
        "ChangeMessageVisibilityBatch",
        "DeleteMessage",
        "DeleteMessageBatch",
        "ReceiveMessage",
        "SendMessage",
        "SendMessageBatch",
    ),
}
PAGE = 50


def apply():
    if "LookupEvents" not in cloudtrail._DISPATCH:
        sys.exit("shim: LookupEvents is gone; was MiniStack upgraded?")
    app._loaded_modules["cloudtrail"] = cloudtrail
    cloudtrail._recording_enabled = os.environ.get("CLOUDTRAIL_RECORDING", "1") == "1"
    # MiniStack records each caller as an IAM user whose name is the access key, and data events too.
    replace(cloudtrail, "record_event", _with_session)
    # MiniStack answers the newest events, at most 50, and has no further pages.
    cloudtrail._DISPATCH["LookupEvents"] = _lookup_events


def _with_session(original):
    def record_event(
        service, event_name, username, access_key_id, resources, region, request_id, user_agent, request_params, method
    ):
        # MiniStack looks for the action of a call in its address, and AWS's clients send it in the body of a form.
        event_name = request_params.get("Action", event_name)
        if event_name in DATA.get(service, ()):
            return
        params = {key[:1].lower() + key[1:]: value for key, value in request_params.items()}
        original(
            service, event_name, username, access_key_id, resources, region, request_id, user_agent, params, method
        )
        arn = (sts._sessions.get(access_key_id) or {}).get("Arn", "")
        if ":assumed-role/" not in arn:
            return
        record = cloudtrail._get_event_queue()[-1]
        event = json.loads(record["CloudTrailEvent"])
        _, role, session = arn.rsplit(":", 1)[1].split("/", 2)
        issuer = {"type": "Role", "userName": role, "accountId": event["recipientAccountId"]}
        event["userIdentity"] = {
            "type": "AssumedRole",
            "arn": arn,
            "accountId": event["recipientAccountId"],
            "accessKeyId": access_key_id,
            "sessionContext": {"sessionIssuer": issuer},
        }
        record["CloudTrailEvent"] = json.dumps(event)
        record["Username"] = session

    return record_event


def _lookup_events(body):
    attributes = {one["AttributeKey"]: one["AttributeValue"] for one in body.get("LookupAttributes", [])}
    since, until = float(body.get("StartTime") or 0), float(body.get("EndTime") or "inf")
    wanted = [
        event
        for event in reversed(cloudtrail._get_event_queue())
        if since <= event["EventTime"] <= until
        and all(str(event.get(key, "")) == value for key, value in attributes.items())
    ]
    begin = int(body.get("NextToken") or 0)
    end = begin + min(int(body.get("MaxResults", PAGE)), PAGE)
    answer = {"Events": wanted[begin:end]}
    if end < len(wanted):
        answer["NextToken"] = str(end)
    return cloudtrail._ok(answer)
