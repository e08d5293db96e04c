"""The part of the demo that needs a Kubernetes cluster: a Helm chart and a manifest.

It is in the demo where the programs of a cluster are on the machine; building them takes too long to begin a demo with.
"""

import json
import shutil
import subprocess
from pathlib import Path

from kubernetes.programs import folder, missing
from programs import CUSTOMER, INSTALL, REGION, ROOT, TENANT, Failed

FILES = ROOT / "examples" / "demo-cluster"
NAME, NAMESPACE, CHART = f"{TENANT}--{INSTALL}--demo", "demo", "greeter"
LEFT_OUT = (
    "the cluster with its Helm chart and its Kubernetes manifest: the programs of a cluster are not on this machine; "
    "`make cluster` builds them once, on Debian 12 and in some minutes, up to 40 on a busy machine; then run the demo "
    "again"
)
NO_HELM = "the Helm chart: there is no `helm` on PATH, and its wheel could not be installed; install Helm 3.17 or newer"


class Cluster:
    """Whether this machine can have the cluster of the demo, and its Helm chart."""

    def __init__(self):
        self.exists = missing() is None
        self.has_chart = self.exists and bool(shutil.which("helm"))

    def left_out(self):
        """Returns what the demo leaves out."""
        if not self.exists:
            return [LEFT_OUT]
        return [] if self.has_chart else [NO_HELM]

    def parts(self):
        """Returns the parts that it adds to the app, in words."""
        chart = ["a Helm chart"] if self.has_chart else []
        return ["a cluster", *chart, "a Kubernetes manifest"] if self.exists else []

    def add(self, config):
        """Adds its files to an app config."""
        if self.exists:
            shutil.copytree(FILES, config, dirs_exist_ok=True)
            if not self.has_chart:
                (config / "components" / f"{CHART}.toml").unlink()

    def show(self, programs, greeting):
        """Shows the objects that the deploys made in the cluster, and fails when one is missing or is not ready."""
        chart = ("configmaps", "deployments") if self.has_chart else ()
        self.show_objects(kubectl(programs, "get", ",".join(["resourcequotas", "networkpolicies", *chart])), greeting)

    def show_objects(self, objects, greeting):
        found = {(one["kind"], one["metadata"]["name"]): one for one in objects}
        wanted = {("ResourceQuota", "demo"): "", ("NetworkPolicy", "own-namespace-only"): ""}
        if self.has_chart:
            wanted |= {("ConfigMap", CHART): f"`{greeting}`", ("Deployment", CHART): "2 of 2 pods are ready"}
        for (kind, name), expected in wanted.items():
            if (kind, name) not in found:
                raise Failed(f"the cluster has no {kind} `{name}`")
            detail = _detail(found[kind, name])
            print(f"{kind:<14} {name:<20} {detail}".rstrip())
            if detail != expected:
                raise Failed(f"{kind} `{name}` has {detail} instead of {expected}")
        print(
            "the API server is a real one; it has no nodes, and a small fake kubelet makes its pods ready: nothing runs"
        )


def kubectl(programs, *words):
    """Returns the objects that `kubectl` prints in the app's namespace, as the administrator of the cluster."""
    state = programs.own_cloud or ROOT / "target" / "local"
    settings = next(Path(state).glob(f"tmp/eks/*-{CUSTOMER}-{REGION}-{NAME}/kubeconfig"), None)
    if settings is None:
        raise Failed(f"there is no cluster `{NAME}` in `{state}`")
    place = ("--kubeconfig", settings, "--namespace", NAMESPACE, "--output", "json")
    done = subprocess.run([Path(folder()) / "kubectl", *words, *place], capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"`kubectl {' '.join(words)}` ended with {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)["items"]


def _detail(one):
    """Returns the part of an object that the demo is about: its greeting, or how many pods are ready."""
    if one["kind"] == "ConfigMap":
        return f"`{one['data'].get('index.html')}`"
    if one["kind"] == "Deployment":
        return f"{one['status'].get('readyReplicas', 0)} of 2 pods are ready"
    return ""
