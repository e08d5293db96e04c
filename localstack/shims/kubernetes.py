"""EKS: a cluster is a real API server on loopback, where MiniStack would start a k3s container.

`_get_docker` answers with a client whose containers are folders with processes. Everything else stays MiniStack's own:
the EKS API, access entries, the token webhook, and the RBAC objects that stand for access policies.
"""

import os
import shutil
import tempfile
from pathlib import Path

from ministack.core.responses import get_account_id, get_region
from ministack.services import eks

from kubernetes.containers import Client
from kubernetes.ports import free_port
from shims.replace import replace


def apply():
    # MiniStack passes its whole environment on to every function.
    programs = Path(os.environ.pop("FREEHOLD_KUBERNETES", "") or "bin").resolve()
    state = Path(tempfile.gettempdir()).resolve() / "eks"
    shutil.rmtree(state, ignore_errors=True)  # of an earlier emulator
    state.mkdir(mode=0o700, parents=True)
    client = Client(state, programs)
    replace(eks, "_get_docker", lambda original: lambda: client)
    # A process on this machine reaches the gateway on loopback; a container would need a name for its host.
    replace(eks, "_k3s_gateway_host", lambda original: lambda *args: "127.0.0.1")
    # MiniStack counts ports up from 16443 whether they are free or not.
    replace(eks, "_next_port", lambda original: free_port)
    # For MiniStack a cluster that did not start is ACTIVE, with a made-up certificate.
    replace(eks, "_sanitize", lambda original: _with_failure(original, client))
    # A cluster that is deleted while it starts would leave its processes behind.
    replace(eks, "_delete_cluster", lambda original: _with_its_processes(original, client))


def _container_name(account, region, name):
    return f"ministack-eks-{account}-{region}-{name}"


def _with_failure(original, client):
    def sanitize(cluster):
        answer = original(cluster)
        _, _, _, region, account, resource = cluster["arn"].split(":", 5)
        reason = client.failed.get(_container_name(account, region, resource.partition("/")[2]))
        if reason:
            answer["status"] = "FAILED"
            answer["certificateAuthority"] = {}
            answer["health"] = {"issues": [{"code": "InternalFailure", "message": reason, "resourceIds": []}]}
        return answer

    return sanitize


def _with_its_processes(original, client):
    def delete_cluster(name):
        answer = original(name)
        if answer[0] < 300:
            client.discard(_container_name(get_account_id(), get_region(), name))
        return answer

    return delete_cluster
