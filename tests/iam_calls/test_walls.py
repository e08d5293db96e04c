"""What no job may do through the runner's IAM: let strangers in, take the boundary off, change what others made."""

import json
import unittest

from botocore.exceptions import ClientError

from world import ACCOUNT, BOUNDARY, ISSUER, MODES, PATH, PREFIX, World, document, root_of_account

STRANGERS = {
    "another account": {"AWS": "arn:aws:iam::333333333333:root"},
    "one of two": {"AWS": [f"arn:aws:iam::{ACCOUNT}:root", "333333333333"]},
    "everybody": "*",
    "another cluster": {"Federated": f"arn:aws:iam::{ACCOUNT}:oidc-provider/{ISSUER[:-1]}0"},
    "another issuer": {"Federated": f"arn:aws:iam::{ACCOUNT}:oidc-provider/token.actions.githubusercontent.com"},
    "SAML": {"Federated": f"arn:aws:iam::{ACCOUNT}:saml-provider/okta"},
    "certificates": {"Service": "rolesanywhere.amazonaws.com"},
}


def trust(principal):
    return document([{"Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole"}])


class Walls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = World()
        cls.addClassCleanup(cls.world.stop)
        cls.iam, cls.root = cls.world.iam, cls.world.root
        own = document([root_of_account()])
        cls.iam.create_role(RoleName="own", AssumeRolePolicyDocument=own)
        cls.root.create_role(RoleName="customers", AssumeRolePolicyDocument=own)
        cls.root.create_role(RoleName="unbounded", Path=PATH, AssumeRolePolicyDocument=own)
        cls.root.create_policy(PolicyName="customers", PolicyDocument=cls.harmless())
        cls.root.create_instance_profile(InstanceProfileName="customers")
        provider = {"Url": "https://token.actions.githubusercontent.com", "ThumbprintList": ["0" * 40]}
        cls.provider = cls.root.create_open_id_connect_provider(**provider)["OpenIDConnectProviderArn"]

    @staticmethod
    def harmless():
        return document([{"Effect": "Allow", "Action": "s3:ListAllMyBuckets", "Resource": "*"}])

    def refused(self, words, method, **parameters):
        """Checks that a call is refused with these words, that it is recorded, and that it changed no role."""
        before = self.roles()
        with self.assertRaises(ClientError) as caught:
            getattr(self.iam, method)(**parameters)
        error = caught.exception.response["Error"]
        self.assertEqual(error["Code"], "AccessDenied", error)
        self.assertRegex(error["Message"], words)
        self.assertEqual(self.roles(), before)

    def roles(self):
        found = [self.root.get_role(RoleName=role["RoleName"])["Role"] for role in self.root.list_roles()["Roles"]]
        for role in found:
            role["policies"] = self.root.list_attached_role_policies(RoleName=role["RoleName"])["AttachedPolicies"]
            role["inline"] = self.root.list_role_policies(RoleName=role["RoleName"])["PolicyNames"]
            role.pop("RoleLastUsed", None)
        return found

    def test_no_role_trusts_a_stranger(self):
        for who, principal in STRANGERS.items():
            with self.subTest(stranger=who):
                self.refused(
                    "outside of the account",
                    "create_role",
                    RoleName="stranger",
                    AssumeRolePolicyDocument=trust(principal),
                )
                changed = {"RoleName": "own", "PolicyDocument": trust(principal)}
                self.refused("outside of the account", "update_assume_role_policy", **changed)

    def test_no_issuer_of_elsewhere_becomes_a_provider(self):
        for url in ["https://token.actions.githubusercontent.com", f"https://{ISSUER[:-1]}0", f"http://{ISSUER}"]:
            with self.subTest(url=url):
                request = {"Url": url, "ThumbprintList": ["0" * 40]}
                self.refused("outside of the account", "create_open_id_connect_provider", **request)

    def test_the_boundary_stays_and_no_other_comes(self):
        other = f"arn:aws:iam::{ACCOUNT}:policy/customers"
        new = {"RoleName": "wide", "AssumeRolePolicyDocument": document([root_of_account()])}

        self.refused("must have the boundary", "create_role", **new, PermissionsBoundary=other)
        self.refused(
            "must have the boundary", "put_role_permissions_boundary", RoleName="own", PermissionsBoundary=other
        )
        self.refused("as long as it exists", "delete_role_permissions_boundary", RoleName="own")

    def test_a_module_that_names_the_boundary_reads_it_until_it_names_it_no_more(self):
        own = document([root_of_account()])
        self.iam.create_role(RoleName="named", AssumeRolePolicyDocument=own, PermissionsBoundary=BOUNDARY)
        read = self.iam.get_role(RoleName="named")["Role"]
        self.assertEqual(read["PermissionsBoundary"]["PermissionsBoundaryArn"], BOUNDARY)
        self.assertEqual(read.get("Tags", []), [])

        self.iam.delete_role_permissions_boundary(RoleName="named")
        self.assertNotIn("PermissionsBoundary", self.iam.get_role(RoleName="named")["Role"])
        self.assertIn("PermissionsBoundary", self.root.get_role(RoleName="named")["Role"])
        self.iam.put_role_permissions_boundary(RoleName="named", PermissionsBoundary=BOUNDARY)
        self.assertIn("PermissionsBoundary", self.iam.get_role(RoleName="named")["Role"])
        self.iam.delete_role(RoleName="named")

    def test_the_boundary_itself_is_out_of_reach(self):
        self.refused("not made by a job", "delete_policy", PolicyArn=BOUNDARY)
        request = {"PolicyArn": BOUNDARY, "PolicyDocument": self.harmless(), "SetAsDefault": True}
        self.refused("not made by a job", "create_policy_version", **request)

    def test_nothing_of_others_is_changed(self):
        admin = "arn:aws:iam::aws:policy/AdministratorAccess"
        customers = f"arn:aws:iam::{ACCOUNT}:policy/customers"
        calls = [
            ("attach_role_policy", {"RoleName": "customers", "PolicyArn": admin}),
            ("put_role_policy", {"RoleName": "customers", "PolicyName": "p", "PolicyDocument": self.harmless()}),
            ("update_assume_role_policy", {"RoleName": "customers", "PolicyDocument": document([root_of_account()])}),
            ("tag_role", {"RoleName": "customers", "Tags": [{"Key": "team", "Value": "core"}]}),
            ("delete_role", {"RoleName": "customers"}),
            ("put_role_policy", {"RoleName": MODES["provision"], "PolicyName": "p", "PolicyDocument": self.harmless()}),
            ("delete_policy", {"PolicyArn": customers}),
            ("delete_instance_profile", {"InstanceProfileName": "customers"}),
            ("add_role_to_instance_profile", {"InstanceProfileName": "customers", "RoleName": "own"}),
            ("delete_open_id_connect_provider", {"OpenIDConnectProviderArn": self.provider}),
        ]
        for method, parameters in calls:
            with self.subTest(call=method, about=parameters):
                self.refused("was not made by a job of this install", method, **parameters)

    def test_a_role_of_the_stack_gets_no_policy_of_anybody(self):
        admin = "arn:aws:iam::aws:policy/AdministratorAccess"

        self.refused("the customer agreed", "attach_role_policy", RoleName=MODES["provision"], PolicyArn=admin)

    def test_a_role_that_lost_its_boundary_is_not_changed(self):
        admin = "arn:aws:iam::aws:policy/AdministratorAccess"

        self.refused("does not carry", "attach_role_policy", RoleName="unbounded", PolicyArn=admin)

    def test_the_runners_tags_are_its_own(self):
        tag = {"Key": "Freehold:install", "Value": "other"}
        owner = {"Key": "freehold:owner", "Value": "acme--globex-2"}
        new = {"RoleName": "tagged", "AssumeRolePolicyDocument": document([root_of_account()])}

        self.refused("is reserved for the runner", "create_role", **new, Tags=[tag])
        self.refused("is reserved for the runner", "create_role", **new, Tags=[owner])
        self.refused("is reserved for the runner", "tag_role", RoleName="own", Tags=[tag])
        self.refused("is reserved for the runner", "untag_role", RoleName="own", TagKeys=["freehold:install"])

    def test_a_tag_of_the_install_that_a_job_sets_is_shown_and_the_others_are_not(self):
        install = {"Key": "freehold:install", "Value": "globex"}

        self.iam.create_role(RoleName="marked", AssumeRolePolicyDocument=document([root_of_account()]), Tags=[install])

        self.assertEqual(self.iam.get_role(RoleName="marked")["Role"]["Tags"], [install])
        self.assertEqual(self.iam.list_role_tags(RoleName="marked")["Tags"], [install])
        self.assertEqual(self.iam.get_role(RoleName="own")["Role"].get("Tags", []), [])

    def test_nobody_gets_long_lived_keys(self):
        for method, parameters in [
            ("create_user", {"UserName": "robot"}),
            ("create_access_key", {}),
            ("create_login_profile", {"UserName": "robot", "Password": "correct horse"}),
            ("create_service_specific_credential", {"UserName": "robot", "ServiceName": "codecommit.amazonaws.com"}),
            ("create_saml_provider", {"Name": "okta", "SAMLMetadataDocument": "x" * 1000}),
            ("create_account_alias", {"AccountAlias": "acme"}),
            ("create_service_linked_role", {"AWSServiceName": "sso.amazonaws.com"}),
        ]:
            with self.subTest(call=method):
                self.refused("Freehold: ", method, **parameters)

    def test_a_refusal_is_recorded_with_its_reason(self):
        self.refused("a job must not make users", "create_user", UserName="recorded")

        record = self.world.records("CreateUser", "recorded")
        self.assertEqual([entry["stage"] for entry in record], ["refused"])
        self.assertIn("let the program assume a role", record[0]["says"])

    def test_what_is_not_there_is_answered_by_iam(self):
        with self.assertRaises(self.iam.exceptions.NoSuchEntityException):
            self.iam.delete_role(RoleName="absent")

    def test_a_path_of_the_modules_own_is_read_as_given(self):
        own = document([root_of_account()])
        made = self.iam.create_role(RoleName="team", Path="/team/", AssumeRolePolicyDocument=own)["Role"]

        self.assertEqual((made["Path"], made["Arn"]), ("/team/", f"arn:aws:iam::{ACCOUNT}:role{PATH}team/team"))
        roles = self.iam.list_roles(PathPrefix="/team/")["Roles"]
        self.assertEqual([role["RoleName"] for role in roles], ["team"])
        self.iam.delete_role(RoleName="team")

    def test_a_name_with_the_installs_prefix_needs_no_path(self):
        own, name = document([root_of_account()]), f"{PREFIX}reader"
        arn = self.iam.create_role(RoleName=name, AssumeRolePolicyDocument=own)["Role"]["Arn"]
        self.assertEqual(arn, f"arn:aws:iam::{ACCOUNT}:role/{name}")

        self.assertNotIn("PermissionsBoundary", self.iam.get_role(RoleName=name)["Role"])
        real = self.root.get_role(RoleName=name)["Role"]
        self.assertEqual(real["PermissionsBoundary"]["PermissionsBoundaryArn"], BOUNDARY)
        self.iam.delete_role(RoleName=name)


class Usage(unittest.TestCase):
    def test_what_was_used_is_counted(self):
        world = World()
        self.addCleanup(world.stop)
        world.iam.list_roles()
        with self.assertRaises(ClientError):
            world.iam.create_user(UserName="robot")

        used = world.used()

        expected = {"CreateUser": {"answered": 0, "refused": 1}, "ListRoles": {"answered": 1, "refused": 0}}
        self.assertEqual(used, expected, json.dumps(used))
