"""CloudFormation: a stack waits for its cluster, and `AWS::EKS::AccessEntry`."""

import json
import sys
import time

from ministack.services import eks
from ministack.services.cloudformation import provisioners

from kubernetes.control_plane import READY_SECS


def apply():
    handlers = getattr(provisioners, "_RESOURCE_HANDLERS", {})
    cluster = handlers.get("AWS::EKS::Cluster", {})
    if "create" not in cluster or "AWS::EKS::AccessEntry" in handlers:
        sys.exit("shim: the handlers of `AWS::EKS::*` have changed; was MiniStack upgraded?")
    # MiniStack ends the resource before the cluster is there, and its `CertificateAuthorityData` is empty for ever.
    cluster["create"] = _created_and_active(cluster["create"])
    handlers["AWS::EKS::AccessEntry"] = {"create": _create, "update": _update, "delete": _delete}


def _created_and_active(create):
    def create_and_wait(logical_id, props, stack_name):
        name, _ = create(logical_id, props, stack_name)
        deadline = time.monotonic() + READY_SECS + 30
        while eks._clusters[name]["status"] == "CREATING" and time.monotonic() < deadline:
            time.sleep(0.1)
        view = eks._sanitize(eks._clusters[name])
        if view["status"] != "ACTIVE":
            reason = view.get("health", {}).get("issues", [{}])[0].get("message", view["status"])
            eks._delete_cluster(name)
            raise ValueError(f"AWS::EKS::Cluster create failed: {reason}")
        return name, provisioners._eks_cluster_attrs(eks._clusters[name])

    return create_and_wait


def _create(logical_id, props, stack_name):
    cluster, principal = props["ClusterName"], props["PrincipalArn"]
    entry = {
        "principalArn": principal,
        "kubernetesGroups": props.get("KubernetesGroups") or [],
        "username": props.get("Username") or "",
        "type": props.get("Type") or "STANDARD",
        "tags": {tag["Key"]: tag["Value"] for tag in props.get("Tags") or []},
    }
    _checked(eks._create_access_entry(cluster, entry))
    _associate(cluster, principal, props)
    return f"{principal}|{cluster}", _attributes(cluster, principal)


def _associate(cluster, principal, props):
    """Gives the entry exactly the policies of the template."""
    wanted = {policy["PolicyArn"]: policy["AccessScope"] for policy in props.get("AccessPolicies") or []}
    _, _, answer = eks._list_associated_access_policies(cluster, principal, {})
    for policy in json.loads(answer)["associatedAccessPolicies"]:
        if policy["policyArn"] not in wanted:
            _checked(eks._disassociate_access_policy(cluster, principal, policy["policyArn"]))
    for arn, scope in wanted.items():
        scope = {"type": scope["Type"], "namespaces": scope.get("Namespaces") or []}
        _checked(eks._associate_access_policy(cluster, principal, {"policyArn": arn, "accessScope": scope}))


def _update(physical_id, old, new, stack_name):
    if any(old.get(key) != new.get(key) for key in ("ClusterName", "PrincipalArn", "Type")):
        made = _create(None, new, stack_name)
        _delete(physical_id, old)
        return made
    cluster, principal = new["ClusterName"], new["PrincipalArn"]
    entry = {"kubernetesGroups": new.get("KubernetesGroups") or []}
    if new.get("Username"):
        entry["username"] = new["Username"]
    _checked(eks._update_access_entry(cluster, principal, entry))
    _associate(cluster, principal, new)
    return physical_id, _attributes(cluster, principal)


def _delete(physical_id, props):
    principal, _, cluster = physical_id.rpartition("|")
    eks._delete_access_entry(cluster, principal)


def _attributes(cluster, principal):
    return {"AccessEntryArn": eks._access_entries[eks._ae_key(cluster, principal)]["accessEntryArn"]}


def _checked(answer):
    if answer[0] >= 400:
        raise ValueError(json.loads(answer[2]).get("message", "refused"))
