"""Makes, reads and destroys what a module says (`calls.json`), with the calls of Terraform's AWS provider."""

import json
import urllib.parse
from pathlib import Path

from world import ACCOUNT, ISSUER, MODES, document

CALLS = json.loads(Path(__file__).with_name("calls.json").read_text())
TAGS = [{"Key": key, "Value": value} for key, value in CALLS["tags"].items()]


class Module:
    """The resources of one module, in the order in which Terraform makes them."""

    def __init__(self, name, iam, known=None):
        self.iam = iam
        self.ids = dict(known or {})
        self.values = {f"role.{mode}": role for mode, role in MODES.items()}
        self.values |= {
            "account": ACCOUNT,
            "issuer": ISSUER,
            "provider": f"arn:aws:iam::{ACCOUNT}:oidc-provider/{ISSUER}",
        }
        self.resources = CALLS[name]

    def apply(self):
        for resource in self.resources:
            self.each(resource, "make")

    def plan(self):
        """Returns what differs between the module and what is read: nothing when all is as it says."""
        differences = []
        for resource in self.resources:
            wanted, read = self.each(resource, "wanted"), self.each(resource, "read")
            differences += [
                (self.key(resource), name, wanted[name], read.get(name))
                for name in wanted
                if wanted[name] != read.get(name)
            ]
        return differences

    def destroy(self):
        for resource in reversed(self.resources):
            self.each(resource, "destroy")

    def each(self, resource, verb):
        kind = resource["resource"].removeprefix("aws_iam_")
        return getattr(self, f"{verb}_{kind}")(resource)

    def key(self, resource):
        return (resource["resource"], resource.get("id"), resource.get("role_id") or resource.get("role"))

    def fill(self, text, **more):
        for name, value in (self.values | more).items():
            text = text.replace(f"${{{name}}}", value)
        assert "${" not in text, text
        return text

    # ---- roles

    def trust(self, resource):
        statements = json.dumps(CALLS["trusts"][resource["trust"]])
        return document(json.loads(self.fill(statements, subject=resource.get("subject", ""))))

    def make_role(self, resource):
        name = resource["name"]
        given = {"Description": resource["description"]} if "description" in resource else {}
        made = self.iam.create_role(
            RoleName=name,
            Path=resource["path"],
            AssumeRolePolicyDocument=self.trust(resource),
            MaxSessionDuration=3600,
            Tags=TAGS,
            **given,
        )["Role"]
        self.ids["role", resource["id"]] = name
        self.values[resource["id"]] = made["Arn"]
        assert self.iam.get_role(RoleName=name)["Role"]["Arn"] == made["Arn"]

    def wanted_role(self, resource):
        return {
            "name": resource["name"],
            "path": resource["path"],
            "permissions_boundary": None,
            "assume_role_policy": json.loads(self.trust(resource)),
            "max_session_duration": 3600,
            "description": resource.get("description", ""),
            "tags": CALLS["tags"],
            "inline_policy": [],
        }

    def read_role(self, resource):
        role = self.iam.get_role(RoleName=resource["name"])["Role"]
        trust = role["AssumeRolePolicyDocument"]
        return {
            "name": role["RoleName"],
            "path": role["Path"],
            "permissions_boundary": role.get("PermissionsBoundary"),
            "assume_role_policy": trust if isinstance(trust, dict) else json.loads(urllib.parse.unquote(trust)),
            "max_session_duration": role["MaxSessionDuration"],
            "description": role.get("Description", ""),
            "tags": {tag["Key"]: tag["Value"] for tag in role.get("Tags", [])},
            "inline_policy": self.iam.list_role_policies(RoleName=resource["name"])["PolicyNames"],
        }

    def destroy_role(self, resource):
        name = resource["name"]
        for profile in self.iam.list_instance_profiles_for_role(RoleName=name)["InstanceProfiles"]:
            self.iam.remove_role_from_instance_profile(
                InstanceProfileName=profile["InstanceProfileName"], RoleName=name
            )
        for policy in self.iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"]:
            self.iam.detach_role_policy(RoleName=name, PolicyArn=policy["PolicyArn"])
        self.iam.delete_role(RoleName=name)

    # ---- policies

    def policy_document(self, resource):
        return document(json.loads(self.fill(json.dumps(resource["policy"]), node=self.node_arn())))

    def node_arn(self):
        name = self.ids.get(("role", "node"))
        return self.iam.get_role(RoleName=name)["Role"]["Arn"] if name else ""

    def make_policy(self, resource):
        given = {"Description": resource["description"]} if "description" in resource else {}
        policy = self.policy_document(resource)
        path, name = resource["path"], resource["name"]
        made = self.iam.create_policy(PolicyName=name, Path=path, PolicyDocument=policy, Tags=TAGS, **given)["Policy"]
        self.ids["policy", resource["id"]] = made["Arn"]

    def wanted_policy(self, resource):
        return {
            "path": resource["path"],
            "description": resource.get("description"),
            "tags": CALLS["tags"],
            "policy": json.loads(self.policy_document(resource)),
        }

    def read_policy(self, resource):
        arn = self.ids["policy", resource["id"]]
        policy = self.iam.get_policy(PolicyArn=arn)["Policy"]
        assert policy["Arn"] == arn
        version = self.iam.get_policy_version(PolicyArn=arn, VersionId=policy["DefaultVersionId"])["PolicyVersion"]
        text = version["Document"]
        return {
            "path": policy["Path"],
            "description": policy.get("Description"),
            "tags": {tag["Key"]: tag["Value"] for tag in policy.get("Tags", [])},
            "policy": text if isinstance(text, dict) else json.loads(urllib.parse.unquote(text)),
        }

    def destroy_policy(self, resource):
        arn = self.ids["policy", resource["id"]]
        for version in self.iam.list_policy_versions(PolicyArn=arn)["Versions"]:
            if not version["IsDefaultVersion"]:
                self.iam.delete_policy_version(PolicyArn=arn, VersionId=version["VersionId"])
        self.iam.delete_policy(PolicyArn=arn)

    # ---- attachments

    def pair(self, resource):
        role = self.fill(resource["role"]) if "role" in resource else self.ids["role", resource["role_id"]]
        policy = resource["policy"] if "policy" in resource else self.ids["policy", resource["policy_id"]]
        return {"RoleName": role, "PolicyArn": policy}

    def make_role_policy_attachment(self, resource):
        self.iam.attach_role_policy(**self.pair(resource))

    def wanted_role_policy_attachment(self, resource):
        return {"attached": True}

    def read_role_policy_attachment(self, resource):
        pair = self.pair(resource)
        pages = self.iam.get_paginator("list_attached_role_policies").paginate(RoleName=pair["RoleName"])
        arns = [policy["PolicyArn"] for page in pages for policy in page["AttachedPolicies"]]
        return {"attached": pair["PolicyArn"] in arns}

    def destroy_role_policy_attachment(self, resource):
        self.iam.detach_role_policy(**self.pair(resource))

    # ---- the cluster's identities

    def make_openid_connect_provider(self, resource):
        made = self.iam.create_open_id_connect_provider(
            Url=self.fill(resource["url"]),
            ClientIDList=resource["clients"],
            ThumbprintList=resource["thumbprints"],
            Tags=TAGS,
        )
        assert made["OpenIDConnectProviderArn"] == self.values["provider"], made

    def wanted_openid_connect_provider(self, resource):
        wanted = {name: resource[name] for name in ("clients", "thumbprints")}
        return wanted | {"url": self.fill(resource["url"]).removeprefix("https://"), "tags": CALLS["tags"]}

    def read_openid_connect_provider(self, resource):
        read = self.iam.get_open_id_connect_provider(OpenIDConnectProviderArn=self.values["provider"])
        return {
            "clients": read["ClientIDList"],
            "thumbprints": read["ThumbprintList"],
            "url": read["Url"].removeprefix("https://"),
            "tags": {tag["Key"]: tag["Value"] for tag in read.get("Tags", [])},
        }

    def destroy_openid_connect_provider(self, resource):
        self.iam.delete_open_id_connect_provider(OpenIDConnectProviderArn=self.values["provider"])

    # ---- instance profiles

    def make_instance_profile(self, resource):
        name = resource["name"]
        self.iam.create_instance_profile(InstanceProfileName=name, Path=resource["path"], Tags=TAGS)
        self.iam.get_instance_profile(InstanceProfileName=name)
        self.iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=self.ids["role", resource["role_id"]])

    def wanted_instance_profile(self, resource):
        role = self.ids["role", resource["role_id"]]
        return {"path": resource["path"], "roles": [(role, "/")], "tags": CALLS["tags"]}

    def read_instance_profile(self, resource):
        read = self.iam.get_instance_profile(InstanceProfileName=resource["name"])["InstanceProfile"]
        return {
            "path": read["Path"],
            "roles": [(role["RoleName"], role["Path"]) for role in read["Roles"]],
            "tags": {tag["Key"]: tag["Value"] for tag in read.get("Tags", [])},
        }

    def destroy_instance_profile(self, resource):
        name, role = resource["name"], self.ids["role", resource["role_id"]]
        self.iam.remove_role_from_instance_profile(InstanceProfileName=name, RoleName=role)
        self.iam.delete_instance_profile(InstanceProfileName=name)
