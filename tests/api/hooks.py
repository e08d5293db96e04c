"""Loaded by schemathesis: signs each request as the tenant API wants it, and counts the cases."""

import atexit
import collections
import itertools
import json
import os
import re
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


class Signature(requests.auth.AuthBase):
    """AWS Signature Version 4 over the method, the path, the query, the body and the API's own host name."""

    def __call__(self, request):
        signed = AWSRequest(request.method, request.url, data=request.body or b"", headers={"Host": HOST})
        SIGNER.add_auth(signed)
        request.headers.update(dict(signed.headers.items()))
        return request


schemathesis.auth.set_from_requests(Signature())


# A drawn key is often as short as `0`, and then another request used it before. Every fifth key stays as it is drawn.
KEY, valid_key, REPEATED = "idempotency-key", re.compile("[!-~]{1,100}"), 5
cases = itertools.count(1)


@schemathesis.hook
def before_call(context, case, kwargs):
    number, key = next(cases), (case.headers or {}).get(KEY)
    if number % REPEATED and isinstance(key, str) and valid_key.fullmatch(key):
        # A key has at most 100 characters.
        case.headers[KEY] = f"{number}-{key}"[:100]


@schemathesis.hook
def after_call(context, case, response):
    statuses[response.status_code] += 1
    operations[case.operation.label] += 1
    succeeded[case.operation.label] += 200 <= response.status_code < 300


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
    }
    Path(os.environ["FREEHOLD_API_COUNTS"]).write_text(json.dumps(counts))
