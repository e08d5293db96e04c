"""The local cloud for the live checks: an instance, its clients, and the queue policies that a function writes."""

import hashlib
import json
import os
import subprocess
import sys
import uuid
from pathlib import Path

import botocore.session
from botocore.config import Config

import bootstrap
import templates
import waiting
from templates import ACCOUNT, INSTALL, REGION, TENANT, TENANT_ACCOUNT

CLOUD = templates.ROOT / "localstack" / "cloud"
STATE = templates.ROOT / "target" / "infra-cloud"
STAND_IN = Path(__file__).with_name("stand_in.py")
# CloudFormation quotas, "Template body size in a request".
MOST_IN_A_REQUEST = 51_200
BUCKET = f"fh-{TENANT}--{TENANT_ACCOUNT}--{REGION}"
DEADLINE_SECS = 60


class Cloud:
    """One instance of the local cloud with the tenant stack and an install stack in it."""

    def __init__(self):
        subprocess.run(
            [sys.executable, CLOUD, "up", "--port", "0", "--detach", "--state", STATE, "--until-pid", str(os.getpid())],
            check=True,
        )
        self.endpoint = (STATE / "endpoint").read_text()
        self.session = botocore.session.Session()

    def stop(self):
        subprocess.run([sys.executable, CLOUD, "down", "--state", STATE], check=True)

    def client(self, service, account=TENANT_ACCOUNT, credentials=None):
        keys = {"aws_access_key_id": account, "aws_secret_access_key": "root"}
        if credentials:
            keys = {
                "aws_access_key_id": credentials["AccessKeyId"],
                "aws_secret_access_key": credentials["SecretAccessKey"],
                "aws_session_token": credentials["SessionToken"],
            }
        config = Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}, read_timeout=DEADLINE_SECS)
        return self.session.create_client(
            service, region_name=REGION, endpoint_url=self.endpoint, config=config, **keys
        )

    def upload(self):
        s3 = self.client("s3")
        s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": REGION})
        archive = bootstrap.packed(f"#!{sys.executable}\n{STAND_IN.read_text()}")
        code = f"functions/{hashlib.sha256(archive).hexdigest()}.zip"
        s3.put_object(Bucket=BUCKET, Key=code, Body=archive)
        parameters = {f"{logical}Code": code for logical in templates.FUNCTIONS.values()}
        for parameter, name in templates.DEFINITION_FILES.items():
            text = (templates.MACHINES / f"{name}.asl.json").read_bytes()
            parameters[parameter] = f"statemachines/{hashlib.sha256(text).hexdigest()}.json"
            s3.put_object(Bucket=BUCKET, Key=parameters[parameter], Body=text)
        # Too large for a request's body.
        s3.put_object(Bucket=BUCKET, Key="templates/tenant.yaml", Body=(templates.INFRA / "tenant.yaml").read_bytes())
        return parameters

    def stack(self, name, parameters, account, **template):
        """Makes a stack; returns its status and its outputs."""
        client = self.client("cloudformation", account)
        pairs = [{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()]
        if len(template.get("TemplateBody", "").encode()) > MOST_IN_A_REQUEST:
            template = {"TemplateURL": self.in_a_bucket(template["TemplateBody"], account)}
        client.create_stack(StackName=name, Parameters=pairs, Capabilities=["CAPABILITY_NAMED_IAM"], **template)
        stack = until(lambda: settled(client, name), f"stack {name}")
        return stack, {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}

    def in_a_bucket(self, text, account):
        """Puts a template into a bucket of its own in `account`; returns its address."""
        s3, bucket = self.client("s3", account), f"templates-{uuid.uuid4().hex}"
        s3.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
        key = f"{hashlib.sha256(text.encode()).hexdigest()}.yaml"
        s3.put_object(Bucket=bucket, Key=key, Body=text)
        return f"https://s3.{REGION}.amazonaws.com/{bucket}/{key}"

    def invoke(self, function, event):
        answer = self.client("lambda").invoke(FunctionName=f"fh-{TENANT}--{function}", Payload=json.dumps(event))
        return json.load(answer["Payload"])

    def assume(self, role, account=ACCOUNT, credentials=None):
        sts = self.client("sts", account, credentials)
        arn = f"arn:aws:iam::{account}:role/{role}"
        return sts.assume_role(RoleArn=arn, RoleSessionName="job_1")["Credentials"]


def until(condition, what):
    return waiting.until(condition, what, DEADLINE_SECS)


def settled(client, name):
    [stack] = client.describe_stacks(StackName=name)["Stacks"]
    return None if stack["StackStatus"].endswith("IN_PROGRESS") else stack


def orders_policy(arn, role):
    """Returns the policy that `register-install` writes for the orders queue `arn` of the runner role `role`."""
    tenant = role.removeprefix("fh-").partition("--")[0]
    return _queue_policy("orders", arn, tenant).replace(f"role/fh-{tenant}--{INSTALL}--runner", f"role/{role}")


def reports_policy(arn, tenant=TENANT, accounts=(ACCOUNT,)):
    """Returns the policy that `register-install` writes for the reports queue `arn`, with installs in `accounts`."""
    return _queue_policy("reports", arn, tenant).replace(json.dumps([ACCOUNT]), json.dumps(list(accounts)))


def _queue_policy(queue, arn, tenant):
    """Returns a policy that the code writes: it is made from the code's golden file, for another queue and tenant."""
    golden = json.loads((templates.ROOT / "crates/aws/golden/queue-policies.json").read_text())[queue]
    text = json.dumps(golden).replace(golden["Statement"][0]["Resource"], arn)
    return text.replace(f"role/fh-{TENANT}--", f"role/fh-{tenant}--")
