"""A Lambda bootstrap in the place of every function: it makes the AWS call that its event names, with its own role.

It answers a state machine as the functions do; the id of the workflow selects the outcome.
"""

import json
import os
import urllib.error
import urllib.request

import botocore.session
from botocore.exceptions import ClientError

api = f"http://{os.environ['AWS_LAMBDA_RUNTIME_API']}/2018-06-01/runtime/invocation"


class Failure(Exception):
    """An error with the type that a state machine matches."""

    def __init__(self, word):
        super().__init__(word)
        self.word = word


def call(service, operation, parameters):
    client = botocore.session.Session().create_client(service, region_name=os.environ["AWS_REGION"])
    try:
        answer = client._make_api_call(operation, parameters)
    except ClientError as error:
        return {"error": error.response["Error"]["Code"], "message": error.response["Error"]["Message"]}
    answer.pop("ResponseMetadata", None)
    return {"answer": json.loads(json.dumps(answer, default=str))}


def plan(event):
    if event["phase"] == "plan":
        if "unplannable" in event["workflow"]:
            raise Failure("Invalid")
        return {
            "next": "strange" if "strange" in event["workflow"] else "finish" if "empty" in event["workflow"] else "run"
        }
    return call(
        "dynamodb",
        "UpdateItem",
        {
            "TableName": os.environ["FREEHOLD_TABLE"],
            "Key": {"pk": {"S": f"token#{event['workflow']}"}, "sk": {"S": event["phase"]}},
            "UpdateExpression": "SET body = :token",
            "ExpressionAttributeValues": {":token": {"S": event["token"]}},
        },
    )


def finish(event):
    if "unfinishable" in event["workflow"]:
        raise Failure("Internal")
    return {"state": "failed" if "error" in event or "bad" in event["workflow"] else "succeeded"}


def handle(event):
    if "call" in event:
        return call(*event["call"])
    if "requestContext" in event:
        return {"statusCode": 200, "body": event["rawPath"]}
    if event.get("phase") == "register":
        return {}
    if "phase" in event:
        return finish(event) if event["phase"] == "finish" else plan(event)
    return {"batchItemFailures": []}


while True:
    with urllib.request.urlopen(f"{api}/next") as following:
        request, event = following.headers["Lambda-Runtime-Aws-Request-Id"], json.load(following)
    try:
        path, answer = "response", handle(event)
    except Failure as failure:
        path, answer = "error", {"errorType": failure.word, "errorMessage": "asked for"}
    urllib.request.urlopen(f"{api}/{request}/{path}", json.dumps(answer).encode()).close()
