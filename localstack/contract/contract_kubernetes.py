"""What the contract tests of clusters need: the shared cluster, tokens of roles, and calls of an API server."""

import base64
import contextlib
import datetime
import functools
import http.client
import json
import os
import ssl
import subprocess
import tempfile
import unittest
import urllib.parse
from pathlib import Path
from unittest import mock

from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest

import waiting
from contract_cloud import REGION, shared
from kubernetes import credentials, programs

START_SECS = 90
POLICY = "arn:aws:eks::aws:cluster-access-policy/"
TOOL = Path(__file__).parents[2] / "tests/setup/tool"


def needs_clusters(test):
    """Skips a test or a class on a machine without the programs of a cluster."""
    missing = programs.missing()
    return unittest.skipIf(missing, missing)(test)


@functools.cache
def shared_cluster():
    """Returns the cluster that the tests of one run share, in an account of its own."""
    return make_cluster(shared().account(), "one")


def make_cluster(account, name):
    begin_cluster(account, name)
    return Cluster(account, name)


class Cluster:
    """A cluster that exists, in any state but CREATING."""

    def __init__(self, account, name):
        self.account, self.name = account, name
        self.eks = account.client("eks")
        view = waiting.until(self._settled, f"the cluster `{name}` settles", START_SECS)
        self.status, self.health = view["status"], view.get("health", {})
        self.endpoint, self.ca = view.get("endpoint"), view.get("certificateAuthority", {}).get("data")
        self.folder = folder(account, name)

    def _settled(self):
        view = self.eks.describe_cluster(name=self.name)["cluster"]
        return view["status"] != "CREATING" and view

    def admit(self, arn, policy=None, namespaces=()):
        """Gives a principal an access entry, and a policy for the cluster or for some namespaces."""
        self.eks.create_access_entry(clusterName=self.name, principalArn=arn)
        if policy:
            scope = {"type": "namespace", "namespaces": list(namespaces)} if namespaces else {"type": "cluster"}
            self.eks.associate_access_policy(
                clusterName=self.name, principalArn=arn, policyArn=POLICY + policy, accessScope=scope
            )

    def api(self, principal):
        return Api(self, token(principal, self.name))

    def until_answered(self, status, principal, path="/api/v1/namespaces"):
        """Waits until a fresh token gets this status: a change of entry or policy needs about a second."""
        waiting.until(lambda: self.api(principal)("GET", path)[0] == status, f"{path} answers {status}", START_SECS)

    def pids(self):
        return pids(self.folder)

    def administrator(self):
        """Returns the API with the token in the cluster's folder, which belongs to no principal of AWS."""
        config = json.loads((self.folder / "kubeconfig").read_text())
        return Api(self, config["users"][0]["user"]["token"])


def begin_cluster(account, name):
    """Calls CreateCluster, which wants a role that exists."""
    with contextlib.suppress(account.client("iam").exceptions.EntityAlreadyExistsException):
        account.role_arn("eks")
    account.client("eks").create_cluster(
        name=name,
        roleArn=f"arn:aws:iam::{account.id}:role/eks",
        resourcesVpcConfig={"subnetIds": ["subnet-1", "subnet-2"]},
    )


def folder(account, name):
    return account.instance.state / f"tmp/eks/ministack-eks-{account.id}-{REGION}-{name}"


def pids(folder):
    """Returns the processes of a cluster that run, by name."""
    found = {}
    for file in folder.glob("*.pid"):
        with contextlib.suppress(OSError, ValueError):
            found[file.stem] = int(file.read_text())
    return found


def token(principal, cluster, host=f"sts.{REGION}.amazonaws.com", age_secs=0, **other):
    """Returns the bearer token of `aws eks get-token`: a presigned GetCallerIdentity that names the cluster.

    The host is that of AWS, never that of AWS_ENDPOINT_URL: the verifier puts it into the signature.
    """
    url = f"https://{host}/?Action=GetCallerIdentity&Version=2011-06-15"
    request = AWSRequest("GET", url, headers={"x-k8s-aws-id": cluster})
    signed_at = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=age_secs)
    with mock.patch("botocore.auth.get_current_datetime", lambda: signed_at):
        SigV4QueryAuth(other.get("credentials", principal.credentials), "sts", REGION, expires=60).add_auth(request)
    return "k8s-aws-v1." + base64.urlsafe_b64encode(request.url.encode()).decode().rstrip("=")


class Api:
    """The API server of a cluster, as DescribeCluster shows it, with one bearer token or none."""

    def __init__(self, cluster, bearer):
        self.cluster, self.bearer = cluster, bearer
        self._host = urllib.parse.urlsplit(cluster.endpoint).netloc
        self._context = ssl.create_default_context(cadata=base64.b64decode(cluster.ca).decode())

    def __call__(self, method, path, body=None, kind="application/json"):
        """Returns the status, 0 when nobody answers, and the JSON of the answer."""
        headers = {"Content-Type": kind, **({"Authorization": f"Bearer {self.bearer}"} if self.bearer else {})}
        connection = http.client.HTTPSConnection(self._host, timeout=20, context=self._context)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read() or b"null")
        except OSError as error:
            return 0, str(error)
        finally:
            connection.close()

    def namespace(self, name):
        """Makes a namespace, and returns its path."""
        self("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        return f"/api/v1/namespaces/{name}"

    def tool(self, program):
        """Returns a function that runs helm or kubectl with this token; it returns exit code, stdout and stderr."""

        def run(*words, stdin=""):
            with tempfile.TemporaryDirectory(prefix="freehold-contract-") as home:
                config = Path(home, "kubeconfig")
                config.write_text(credentials.kubeconfig(self.cluster.endpoint, self.cluster.ca, self.bearer))
                config.chmod(0o600)
                env = {"PATH": os.environ["PATH"], "HOME": home, "KUBECONFIG": str(config)}
                ended = subprocess.run(
                    [program, *map(str, words)], env=env, input=stdin, text=True, capture_output=True, timeout=120
                )
            return ended.returncode, ended.stdout, ended.stderr

        return run


def helm():
    """Returns the path of helm, or nothing where it cannot be had."""
    found = subprocess.run([TOOL, "helm"], capture_output=True, text=True)
    return found.stdout.strip() if found.returncode == 0 else None


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def pod(name, **labels):
    container = {"name": "main", "image": "none"}
    return {"metadata": {"name": name, "labels": labels}, "spec": {"containers": [container]}}
