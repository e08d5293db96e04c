"""Starts the local cloud for the contract tests, and makes the resources that several tests need."""

import atexit
import functools
import http.client
import itertools
import json
import os
import subprocess
import sys
import tempfile
import unittest
import urllib.parse
from pathlib import Path

import botocore.session
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

import bootstrap
import waiting

CLOUD = str(Path(__file__).parents[1] / "cloud")
REGION = "eu-west-1"
DEADLINE_SECS = 90
ENGINE = os.environ.get("FREEHOLD_ENGINE") or "ministack"
# What LocalStack 4.9 lacks without Docker and without an account at the vendor.
LACKS = {
    "dynamodb": "its DynamoDB is a program that it downloads",
    "lambda": "its functions need Docker",
    "templates": "our templates need services that it lacks",
    "http api": "API Gateway v2 is not in its free edition",
    "registry": "ECR is not in its free edition",
    "enforcement": "policies are not enforced in its free edition",
    "dead poll": "a poll whose client has died takes the next message at times only",
    "stop": "an execution that waits for a token ends at times only when it is stopped",
    "clusters": "EKS is not in its free edition",
    "ed25519": "its KMS has no Ed25519 keys",
}
# What differs on LocalStack, by test.
DIFFERENCES = {}
_accounts = itertools.count(100000000001)
_session = botocore.session.Session()

# A Lambda bootstrap whose event selects the answer.
BOOTSTRAP = f"""#!{sys.executable}
import json, os, urllib.request
api = "http://%s/2018-06-01/runtime/invocation/" % os.environ["AWS_LAMBDA_RUNTIME_API"]
def answer(event):
    if "Records" in event:
        return {{"batchItemFailures": [
            {{"itemIdentifier": r["messageId"]}} for r in event["Records"] if r["body"] == "bad"]}}
    if "requestContext" in event:
        return {{"statusCode": 200, "body": json.dumps(event["requestContext"].get("authorizer", {{}}))}}
    return {{"pid": os.getpid(), "env": dict(os.environ)}}
while True:
    with urllib.request.urlopen(api + "next") as next:
        request, event = next.headers["Lambda-Runtime-Aws-Request-Id"], json.load(next)
    if "lines" in event:
        print(*range(event["lines"]), sep="\\n", flush=True)
    if "fail" in event:
        urllib.request.urlopen(api + request + "/error", b'{{"errorType":"Broken","errorMessage":"asked to"}}').close()
        continue
    urllib.request.urlopen(api + request + "/response", json.dumps(answer(event)).encode()).close()
"""


def needs(*parts):
    """Skips a test or a class on an engine that lacks one of these parts of AWS."""
    # An unknown word fails on every engine.
    reasons = [LACKS[part] for part in parts]
    lacking = reasons if ENGINE == "localstack" else []
    return unittest.skipIf(lacking, f"LocalStack 4.9.2: {'; '.join(lacking)}")


def differs(how):
    """Says what LocalStack does instead. There the test has to fail, so that a version that does as AWS is noticed."""

    def mark(test):
        DIFFERENCES[test.__name__] = how
        return unittest.expectedFailure(test) if ENGINE == "localstack" else test

    return mark


def cloud(*arguments, env=None):
    return subprocess.run(
        [sys.executable, CLOUD, *map(str, arguments)], capture_output=True, text=True, env={**os.environ, **(env or {})}
    )


def until(condition, what):
    return waiting.until(condition, what, DEADLINE_SECS)


@functools.cache
def shared():
    """Returns the instance that the tests of one run share; each test has an account of its own."""
    instance = Instance()
    atexit.register(instance.close)
    return instance


class Instance:
    """One emulator process on a free port; it ends when this process ends."""

    def __init__(self, *arguments, env=None):
        self.directory = tempfile.TemporaryDirectory(prefix="freehold-contract-")
        self.state = Path(self.directory.name).resolve()
        started = cloud(
            "up", "--detach", "--port", 0, "--state", self.state, "--until-pid", os.getpid(), *arguments, env=env
        )
        if started.returncode:
            raise AssertionError(started.stdout + started.stderr)
        self.endpoint = (self.state / "endpoint").read_text()
        self.port = int(self.endpoint.rpartition(":")[2])

    def close(self):
        stopped = cloud("down", "--state", self.state)
        self.directory.cleanup()
        return stopped

    def account(self):
        return Account(self, str(next(_accounts)))

    def http(self, method, url, headers=None, body=None):
        """Asks loopback with the URL's host in the Host header, so that no resolver has to know `*.localhost`."""
        parts = urllib.parse.urlsplit(url)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_SECS)
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path or "/"
        connection.request(method, target, body=body, headers={"Host": parts.netloc, **(headers or {})})
        answer = connection.getresponse()
        try:
            return Answer(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def __repr__(self):
        return f"{self.status} {self.body[:300]!r}"


class Principal:
    """A principal with credentials: the root of an account, or the session of a role."""

    def __init__(self, instance, account, key, secret, token=None):
        self.instance, self.id = instance, account
        self.credentials = Credentials(key, secret, token)
        self._clients = {}

    def client(self, service):
        if service not in self._clients:
            self._clients[service] = _session.create_client(
                service,
                region_name=REGION,
                endpoint_url=self.instance.endpoint,
                aws_access_key_id=self.credentials.access_key,
                aws_secret_access_key=self.credentials.secret_key,
                aws_session_token=self.credentials.token,
                # By default botocore signs S3 URLs with signature version 2.
                config=Config(
                    retries={"max_attempts": 0},
                    inject_host_prefix=False,
                    read_timeout=DEADLINE_SECS,
                    signature_version="s3v4" if service == "s3" else None,
                ),
            )
        return self._clients[service]

    def signed(self, method, url, service="execute-api"):
        request = AWSRequest(method=method, url=url, headers={"Host": urllib.parse.urlsplit(url).netloc})
        SigV4Auth(self.credentials, service, REGION).add_auth(request)
        return self.instance.http(method, url, dict(request.headers))


class Account(Principal):
    def __init__(self, instance, account):
        super().__init__(instance, account, account, "any secret will do")

    def role(self, name, *statements):
        """Makes a role that every service and this account may assume, and returns a session of it."""
        self.role_arn(name, *statements)
        session = self.client("sts").assume_role(
            RoleArn=f"arn:aws:iam::{self.id}:role/{name}", RoleSessionName="contract"
        )["Credentials"]
        return Principal(
            self.instance, self.id, session["AccessKeyId"], session["SecretAccessKey"], session["SessionToken"]
        )

    def role_arn(self, name, *statements):
        trust = {
            "Version": "2012-10-17",
            "Statement": [
                {"Effect": "Allow", "Principal": {"AWS": self.id}, "Action": "sts:AssumeRole"},
                {
                    "Effect": "Allow",
                    "Action": "sts:AssumeRole",
                    "Principal": {"Service": ["lambda.amazonaws.com", "states.amazonaws.com"]},
                },
            ],
        }
        iam = self.client("iam")
        arn = iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(trust))["Role"]["Arn"]
        if statements:
            iam.put_role_policy(
                RoleName=name,
                PolicyName="may",
                PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": list(statements)}),
            )
        return arn

    def queue(self, name, **attributes):
        url = self.client("sqs").create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
        return url, f"arn:aws:sqs:{REGION}:{self.id}:{name}"

    def function(self, name, *statements, script=BOOTSTRAP):
        return self.client("lambda").create_function(
            FunctionName=name,
            Runtime="provided.al2023",
            Handler="bootstrap",
            Timeout=20,
            Role=self.role_arn(f"{name}-role", *statements),
            Code={"ZipFile": bootstrap.packed(script)},
        )["FunctionArn"]

    def call(self, name, event=None):
        answer = self.client("lambda").invoke(FunctionName=name, Payload=json.dumps(event or {}))
        return json.load(answer["Payload"])

    def machine(self, name, states, start):
        return self.client("stepfunctions").create_state_machine(
            name=name,
            roleArn=self.role_arn(f"{name}-role"),
            definition=json.dumps({"StartAt": start, "States": states}),
        )["stateMachineArn"]

    def ended(self, execution):
        """Waits for the end of an execution and returns its description."""

        def description():
            found = self.client("stepfunctions").describe_execution(executionArn=execution)
            return found["status"] != "RUNNING" and found

        return until(description, "the execution ends")

    def table(self):
        """Makes a table and returns its name."""
        self.client("dynamodb").create_table(
            TableName="things",
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        )
        return "things"

    def stack(self, name, **resources):
        cloudformation = self.client("cloudformation")
        cloudformation.create_stack(
            StackName=name,
            Capabilities=["CAPABILITY_NAMED_IAM"],
            TemplateBody=json.dumps(
                {
                    "Resources": resources,
                    "Outputs": {"Endpoint": {"Value": {"Fn::GetAtt": ["Api", "ApiEndpoint"]}}}
                    if "Api" in resources
                    else {},
                }
            ),
        )

        def settled():
            stack = cloudformation.describe_stacks(StackName=name)["Stacks"][0]
            return not stack["StackStatus"].endswith("IN_PROGRESS") and stack

        return until(settled, "the stack settles")


def allow(*actions, on="*", **more):
    return {"Effect": "Allow", "Action": list(actions), "Resource": on, **more}


def refusal(instance, url, headers):
    """Returns the body of a 403 answer; `None` for any other answer."""
    answer = instance.http("GET", url, headers)
    return answer.status == 403 and answer.body


class Contract(unittest.TestCase):
    def setUp(self):
        self.account = shared().account()

    def refused(self, code, call, **arguments):
        with self.assertRaises(ClientError) as caught:
            call(**arguments)
        self.assertIn(code, caught.exception.response["Error"]["Code"])
