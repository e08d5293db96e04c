"""A cluster in the customer's account, for apps whose sandbox would make one, with its namespaces."""

import json
import re
import subprocess
from pathlib import Path

from kubernetes.programs import folder, missing
from programs import CUSTOMER, INSTALL, REGION, Failed

__all__ = ["admit", "apply", "kubectl", "make", "make_namespaces", "missing", "program"]
# How the variables of a module that makes a cluster name the namespaces in it beside the install's own.
NAMESPACES = re.compile(r"\b(?:additional_)?namespaces\s*=\s*\[([^\]]*)\]")
# The class that every cluster of EKS is made with.
STORAGE = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "gp2"},
    "provisioner": "kubernetes.io/aws-ebs",
    "parameters": {"type": "gp2", "fsType": "ext4"},
    "volumeBindingMode": "WaitForFirstConsumer",
}
POLICY = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"


def make(programs):
    """Makes a cluster, and returns what a sandbox hands out of it."""
    trust = {"Effect": "Allow", "Principal": {"Service": "eks.amazonaws.com"}, "Action": "sts:AssumeRole"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    role = programs.client("iam", CUSTOMER).create_role(RoleName="cluster", AssumeRolePolicyDocument=document)["Role"]
    eks = programs.client("eks", CUSTOMER)
    eks.create_cluster(name=INSTALL, roleArn=role["Arn"], resourcesVpcConfig={"subnetIds": ["subnet-1", "subnet-2"]})

    def settled():
        view = eks.describe_cluster(name=INSTALL)["cluster"]
        return view["status"] != "CREATING" and view

    programs.wait_until("the cluster is made", settled)
    view = settled()
    if view["status"] != "ACTIVE":
        raise Failed(f"the cluster did not start: {view.get('health')}")
    return {
        "name": INSTALL,
        "arn": f"arn:aws:eks:{REGION}:{CUSTOMER}:cluster/{INSTALL}",
        "endpoint": view["endpoint"],
        "certificate_authority_data": view["certificateAuthority"]["data"],
    }


def make_namespaces(programs, config):
    """Makes the namespaces that the variables of the sandbox name, and what EKS brings."""
    names_text = ",".join(NAMESPACES.findall(config.text()))
    names = dict.fromkeys([INSTALL, *re.findall(r'"([a-z0-9-]+)"', names_text)])
    documents = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names] + [STORAGE]
    made = apply(programs, documents)
    if made.returncode:
        raise Failed(f"the namespaces of the sandbox could not be made: {made.stderr}")


def apply(programs, documents):
    """Applies documents as the administrator of the cluster; returns how that ended."""
    return kubectl(
        programs, "apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})
    )


def program():
    """Returns the `kubectl` of the cluster's own version."""
    return Path(folder()) / "kubectl"


def kubectl(programs, *words, **streams):
    """Runs `kubectl` as the administrator of the cluster."""
    [settings] = Path(programs.own_cloud).glob(f"tmp/eks/*-{CUSTOMER}-{REGION}-{INSTALL}/kubeconfig")
    command = [program(), "--kubeconfig", settings, *words]
    return subprocess.run(command, capture_output=True, text=True, **streams)


def admit(programs, cluster, prefix):
    """Gives every role of the install an access entry, as its sandbox would."""
    eks = programs.client("eks", CUSTOMER)
    roles = programs.client("iam", CUSTOMER).list_roles()["Roles"]
    for role in roles:
        if role["RoleName"].startswith(prefix):
            eks.create_access_entry(clusterName=cluster, principalArn=role["Arn"])
            scope = {"type": "cluster"}
            eks.associate_access_policy(
                clusterName=cluster, principalArn=role["Arn"], policyArn=POLICY, accessScope=scope
            )
