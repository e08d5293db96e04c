"""A cluster in the customer's account, for apps whose sandbox would make one."""

import json

from kubernetes.programs import missing
from programs import CUSTOMER, INSTALL, REGION, Failed

__all__ = ["admit", "make", "missing"]
POLICY = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"


def make(programs):
    """Makes a cluster, and returns what a sandbox hands out of it."""
    trust = {"Effect": "Allow", "Principal": {"Service": "eks.amazonaws.com"}, "Action": "sts:AssumeRole"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    role = programs.client("iam", CUSTOMER).create_role(RoleName="cluster", AssumeRolePolicyDocument=document)["Role"]
    eks = programs.client("eks", CUSTOMER)
    eks.create_cluster(name=INSTALL, roleArn=role["Arn"], resourcesVpcConfig={"subnetIds": ["subnet-1", "subnet-2"]})

    def settled():
        shown = eks.describe_cluster(name=INSTALL)["cluster"]
        return shown["status"] != "CREATING" and shown

    programs.wait_until("the cluster is made", settled)
    shown = settled()
    if shown["status"] != "ACTIVE":
        raise Failed(f"the cluster did not start: {shown.get('health')}")
    return {
        "name": INSTALL,
        "arn": f"arn:aws:eks:{REGION}:{CUSTOMER}:cluster/{INSTALL}",
        "endpoint": shown["endpoint"],
        "certificate_authority_data": shown["certificateAuthority"]["data"],
    }


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
