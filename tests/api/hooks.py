"""Loaded by schemathesis: signs each request as the tenant API wants it, and counts the cases.

What no drawn case has, some of the valid cases get here: the document of an app that follows every rule, and the
signature of a webhook's key.
"""

import atexit
import base64
import collections
import itertools
import json
import os
import re
import subprocess
import tempfile
import time
from pathlib import Path

import requests
import schemathesis
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

HOST = os.environ["FREEHOLD_API_HOST"]
SIGNER = SigV4Auth(
    Credentials(os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]),
    "execute-api",
    os.environ["AWS_REGION"],
)
statuses, operations, succeeded = collections.Counter(), collections.Counter(), collections.Counter()
failed = set()
# The last refusal of each operation that a valid case got.
refusals = {}


class Signature(requests.auth.AuthBase):
    """AWS Signature Version 4 over the method, the path, the query, the body and the API's own host name."""

    def __call__(self, request):
        if request.headers.pop(UNSIGNED_CALL, None):
            request.headers.update(signature_of_call(request.headers["webhook-id"], request.body or b""))
        signed = AWSRequest(request.method, request.url, data=request.body or b"", headers={"Host": HOST})
        SIGNER.add_auth(signed)
        request.headers.update(dict(signed.headers.items()))
        return request


schemathesis.auth.set_from_requests(Signature())

SYNC_APP, CALL_WEBHOOK = "POST /v1/apps/{app}/versions", "POST /v1/webhooks/{webhook}/calls"
DOCUMENT = json.loads(Path(os.environ["FREEHOLD_API_DOCUMENT"]).read_text())
# Marks a request until its body is known, which the webhook's key signs; it is not sent.
UNSIGNED_CALL = "x-unsigned-call"


def signature_of_call(event, body):
    """Returns the headers of a call of a webhook that its key signs now."""
    at = str(int(time.time()))
    with tempfile.NamedTemporaryFile() as text:
        text.write(f"{event}.{at}.".encode() + (body if isinstance(body, bytes) else body.encode()))
        text.flush()
        words = ["openssl", "pkeyutl", "-sign", "-rawin", "-inkey", os.environ["FREEHOLD_API_WEBHOOK_KEY"]]
        signature = subprocess.run([*words, "-in", text.name], check=True, capture_output=True).stdout
    return {"webhook-timestamp": at, "webhook-signature": f"v1a,{base64.b64encode(signature).decode()}"}


def document_like(drawn, number):
    """Returns the document of an app as it is; or, for every second `number`, with one of its parts as drawn."""
    parts = sorted(drawn.keys() - {"app", "format"})
    if number % 2 == 0 or not parts:
        return DOCUMENT
    part = parts[number // 2 % len(parts)]
    return {**DOCUMENT, part: drawn[part]}


def complete(case):
    """Gives a valid case what the operation asks for beyond the API's document. Every third case stays as drawn."""
    label = case.operation.label
    number = operations[label]
    if number % 3 == 2 or not case.meta or not case.meta.generation.mode.is_positive:
        return
    if label == SYNC_APP and isinstance(case.body, dict):
        case.body = {"document": document_like(case.body["document"], number // 3)}
    elif label == CALL_WEBHOOK:
        case.headers[UNSIGNED_CALL] = "yes"


# A drawn key is often as short as `0`, and then another request used it before. Every fifth key stays as it is drawn.
KEY, valid_key, REPEATED = "idempotency-key", re.compile("[!-~]{1,100}"), 5
cases = itertools.count(1)
# How much of an answer is kept, in characters.
SHOWN = 400


@schemathesis.hook
def before_call(context, case, kwargs):
    number, key = next(cases), (case.headers or {}).get(KEY)
    if number % REPEATED and isinstance(key, str) and valid_key.fullmatch(key):
        # A key has at most 100 characters.
        case.headers[KEY] = f"{number}-{key}"[:100]
    complete(case)


@schemathesis.hook
def after_call(context, case, response):
    statuses[response.status_code] += 1
    operations[case.operation.label] += 1
    succeeded[case.operation.label] += 200 <= response.status_code < 300
    if response.status_code >= 400 and case.meta and case.meta.generation.mode.is_positive:
        refusals[case.operation.label] = f"{response.status_code} {response.text[:SHOWN]}"


@schemathesis.hook
def after_validate(context, case, response, results):
    if any(result.failure is not None for result in results):
        failed.add(case.id)


@atexit.register
def write_counts():
    counts = {
        "cases": statuses.total(),
        "failed": len(failed),
        "server_errors": sum(count for status, count in statuses.items() if status >= 500),
        "statuses": statuses,
        "operations": operations,
        "succeeded": succeeded,
        "refusals": refusals,
    }
    Path(os.environ["FREEHOLD_API_COUNTS"]).write_text(json.dumps(counts))
