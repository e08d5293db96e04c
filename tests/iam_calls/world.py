"""The world of the checks: a local cloud with IAM enforced, a mode's role under the boundary, the runner's IAM."""

import itertools
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import boto3
from botocore.config import Config

ROOT = Path(__file__).resolve().parents[2]
CLOUD = ROOT / "localstack" / "cloud"
STATE = ROOT / "target" / "iam-calls-cloud"
SERVE = ROOT / "target" / "debug" / "examples" / "serve"
ACCOUNT, REGION = "222222222222", "eu-west-1"
PATH, PREFIX = "/freehold/acme--globex/", "acme--globex--"
BOUNDARY = f"arn:aws:iam::{ACCOUNT}:policy/fh-acme--globex--boundary"
TAGS = {"freehold:tenant": "acme", "freehold:install": "globex"}
MODES = {mode: f"fh-acme--globex--{mode}" for mode in ("provision", "maintenance", "deprovision")}
ISSUER = f"oidc.eks.{REGION}.amazonaws.com/id/0123456789ABCDEF0123456789ABCDEF"
SECONDS = 60


def document(statements):
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


def root_of_account():
    return {"Effect": "Allow", "Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}, "Action": "sts:AssumeRole"}


# The part of the install's boundary that a sandbox runs into without the runner's IAM.
CEILING = [
    {"Effect": "Allow", "Action": "*", "Resource": "*"},
    {
        "Effect": "Deny",
        "Action": ["iam:CreateRole", "iam:PutRolePermissionsBoundary"],
        "Resource": "*",
        "Condition": {"StringNotEquals": {"iam:PermissionsBoundary": BOUNDARY}},
    },
    {"Effect": "Deny", "Action": "iam:DeleteRolePermissionsBoundary", "Resource": "*"},
]


class Eks(BaseHTTPRequestHandler):
    """EKS with the one cluster of the sandbox. The local cloud gives its clusters issuers of another form than AWS."""

    def do_GET(self):
        clusters = {"/clusters": {"clusters": ["inlabc"], "nextToken": None}}
        clusters["/clusters/inlabc"] = {"cluster": {"identity": {"oidc": {"issuer": f"https://{ISSUER}"}}}}
        answer = clusters.get(self.path)
        body = json.dumps(answer or {"message": "no such cluster"}).encode()
        self.send_response(200 if answer else 404)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class World:
    def __init__(self):
        own = ["--port", "0", "--detach", "--state", STATE, "--until-pid", str(os.getpid())]
        subprocess.run([sys.executable, CLOUD, "up", *own], check=True)
        self.endpoint = (STATE / "endpoint").read_text().strip()
        self.eks = ThreadingHTTPServer(("127.0.0.1", 0), Eks)
        threading.Thread(target=self.eks.serve_forever, daemon=True).start()
        self.root = self.client(self.endpoint, {"AccessKeyId": ACCOUNT, "SecretAccessKey": "root"})
        self.root.create_policy(PolicyName=BOUNDARY.rpartition("/")[2], PolicyDocument=document(CEILING))
        for name in MODES.values():
            self.mode_role(name)
        self.credentials = self.assume(MODES["provision"])
        self.direct = self.client(self.endpoint, self.credentials)
        self.lines = []
        self.marks = itertools.count()
        self.came = threading.Condition()
        self.proxy, self.address = self.start()
        self.iam = self.client(self.address, self.credentials)

    def mode_role(self, name):
        trust = document([root_of_account()])
        self.root.create_role(RoleName=name, AssumeRolePolicyDocument=trust, PermissionsBoundary=BOUNDARY)
        everything = document([{"Effect": "Allow", "Action": "*", "Resource": "*"}])
        self.root.put_role_policy(RoleName=name, PolicyName="vendor", PolicyDocument=everything)

    def assume(self, name):
        keys = {"aws_access_key_id": ACCOUNT, "aws_secret_access_key": "root", "region_name": REGION}
        sts = boto3.client("sts", endpoint_url=self.endpoint, **keys)
        arn = f"arn:aws:iam::{ACCOUNT}:role/{name}"
        return sts.assume_role(RoleArn=arn, RoleSessionName="job")["Credentials"]

    def client(self, endpoint, credentials):
        """An IAM client that finds its endpoint as a module's provider does, by the environment."""
        os.environ["AWS_ENDPOINT_URL_IAM"] = endpoint
        return boto3.client(
            "iam",
            region_name=REGION,
            aws_access_key_id=credentials["AccessKeyId"],
            aws_secret_access_key=credentials["SecretAccessKey"],
            aws_session_token=credentials.get("SessionToken"),
            config=Config(retries={"total_max_attempts": 1}, read_timeout=SECONDS),
        )

    def environment(self):
        """The environment of a program of the job."""
        keys = self.credentials
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(STATE),
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ACCESS_KEY_ID": keys["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": keys["SecretAccessKey"],
            "AWS_SESSION_TOKEN": keys["SessionToken"],
        }

    def start(self):
        install = {
            "iam": self.endpoint,
            "eks": f"http://127.0.0.1:{self.eks.server_port}",
            "account": ACCOUNT,
            "region": REGION,
            "path": PATH,
            "prefix": PREFIX,
            "boundary": BOUNDARY,
            "tags": TAGS,
            "stack_roles": list(MODES.values()),
        }
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        proxy = subprocess.Popen([SERVE, json.dumps(install)], env=self.environment(), **pipes)
        address = proxy.stdout.readline().strip()
        self.reader = threading.Thread(target=self.read, args=(proxy.stdout,), daemon=True)
        self.reader.start()
        return proxy, address

    def read(self, output):
        for line in output:
            with self.came:
                self.lines.append(json.loads(line))
                self.came.notify_all()

    def records(self, action, resource):
        """What was recorded of an action on a resource until now."""
        self.wait_for_records()
        return [line for line in self.lines if (line.get("action"), line.get("resource")) == (action, resource)]

    def wait_for_records(self):
        """Waits until every record of the answers given until now is read: a record is printed before its answer."""
        mark = {"until": str(next(self.marks))}
        self.proxy.stdin.write(mark["until"] + "\n")
        self.proxy.stdin.flush()
        with self.came:
            if not self.came.wait_for(lambda: mark in self.lines, SECONDS):
                raise TimeoutError("the proxy does not repeat a line of its standard input")

    def used(self):
        """Ends the runner's IAM and returns how often each action was used."""
        self.proxy.stdin.close()
        self.proxy.wait(SECONDS)
        self.reader.join(SECONDS)
        return self.lines[-1]["used"]

    def stop(self):
        if self.proxy.poll() is None:
            self.proxy.stdin.close()
            self.proxy.wait(SECONDS)
        self.proxy.stdout.close()
        self.eks.shutdown()
        self.eks.server_close()
        subprocess.run([sys.executable, CLOUD, "down", "--state", STATE], check=True)
