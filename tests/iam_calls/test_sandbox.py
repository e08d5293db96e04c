"""A public sandbox is made, planned again and destroyed by its own calls; what it made carries the install's mark."""

import os
import unittest

from botocore.exceptions import ClientError

from module import CALLS, Module
from world import BOUNDARY, MODES, PATH, TAGS, World, document, root_of_account


def tags(resource):
    return {tag["Key"]: tag["Value"] for tag in resource.get("Tags", [])}


class Sandbox(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = World()
        cls.addClassCleanup(cls.world.stop)

    def test_1_without_the_runners_iam_the_sandbox_cannot_be_made(self):
        with self.assertRaisesRegex(ClientError, "AccessDenied"):
            Module("sandbox", self.world.direct).apply()

    def test_2_its_own_calls_make_it(self):
        type(self).module = Module("sandbox", self.world.iam)

        self.module.apply()

        self.assertGreater(len(self.roles()), 6)

    def test_3_a_second_plan_finds_no_difference(self):
        self.assertEqual(self.module.plan(), [])

    def test_4_roles_carry_the_boundary_the_path_and_the_tags(self):
        for role in self.roles():
            name = role["RoleName"]
            with self.subTest(role=name):
                self.assertEqual(role["Path"], PATH)
                self.assertEqual(role["PermissionsBoundary"]["PermissionsBoundaryArn"], BOUNDARY)
                self.assertEqual(tags(role), CALLS["tags"] | TAGS)
                read = self.world.iam.get_role(RoleName=name)["Role"]
                self.assertEqual((read["Arn"], read["Path"]), (role["Arn"], "/"))
                self.assertEqual(tags({"Tags": self.world.iam.list_role_tags(RoleName=name)["Tags"]}), CALLS["tags"])

    def test_4_the_clusters_provider_also_carries_the_owner(self):
        provider = {"OpenIDConnectProviderArn": self.module.values["provider"]}
        owner = {"freehold:owner": "acme--globex", "freehold:added:freehold:owner": "true"}

        made = self.world.root.get_open_id_connect_provider(**provider)
        read = self.world.iam.get_open_id_connect_provider(**provider)

        self.assertEqual(tags(made), CALLS["tags"] | TAGS | owner)
        self.assertEqual(tags(read), CALLS["tags"])

    def test_5_no_read_shows_what_the_runner_added(self):
        iam = self.world.iam
        pages = [
            iam.list_roles(),
            iam.list_policies(Scope="Local"),
            iam.get_account_authorization_details(Filter=["Role", "LocalManagedPolicy"]),
        ]
        names = {role["RoleName"] for role in self.roles()}
        for page in pages:
            found = page.get("Roles", []) + page.get("RoleDetailList", [])
            own = [role for role in found if role["RoleName"] in names]
            self.assertEqual(len(own), len(names) if found else 0)
            for role in own:
                self.assertEqual(role["Path"], "/")
                self.assertNotIn("PermissionsBoundary", role)
                self.assertFalse(set(tags(role)) & set(TAGS))

    def test_6_roles_of_the_stack_are_read_as_attached_and_are_not(self):
        policy = self.module.ids["policy", "ecr_access"]
        for role in MODES.values():
            with self.subTest(role=role):
                self.assertEqual(self.world.root.list_attached_role_policies(RoleName=role)["AttachedPolicies"], [])
                read = self.world.iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]
                self.assertEqual([entry["PolicyArn"] for entry in read], [policy])
                held = self.world.records("AttachRolePolicy", role)
                self.assertEqual([record["stage"] for record in held], ["held"])
                self.assertIn("is not attached: the contract defines", held[0]["says"])

    def test_7_each_change_is_recorded_before_and_after(self):
        stages = [record["stage"] for record in self.world.records("CreateRole", "ebs-csi-inlabc")]

        self.assertEqual(stages, ["announced", "made"])

    def test_8_a_client_that_repeats_itself_gets_iams_own_answer(self):
        request = {"RoleName": "ebs-csi-inlabc", "AssumeRolePolicyDocument": document([root_of_account()])}

        with self.assertRaises(self.world.iam.exceptions.EntityAlreadyExistsException):
            self.world.iam.create_role(**request)

        failed = self.world.records("CreateRole", "ebs-csi-inlabc")[-1]
        self.assertEqual((failed["stage"], failed["says"]), ("failed", "EntityAlreadyExists"))

    @unittest.skipIf(os.environ.get("FREEHOLD_SHORT"), "the short form leaves Karpenter out; run `tests/iam_calls/run`")
    def test_8_karpenter_is_made_planned_and_destroyed(self):
        karpenter = Module("karpenter", self.world.iam, known=self.module.ids)

        karpenter.apply()

        self.assertEqual(karpenter.plan(), [])
        karpenter.destroy()

    def test_9_its_own_calls_destroy_it(self):
        self.module.destroy()

        self.assertEqual(self.roles(), [])
        self.assertEqual(self.world.root.list_policies(Scope="Local", PathPrefix=PATH)["Policies"], [])

    def roles(self):
        """The roles that the sandbox made, as IAM has them."""
        roles = self.world.root.list_roles(PathPrefix=PATH)["Roles"]
        return [self.world.root.get_role(RoleName=role["RoleName"])["Role"] for role in roles]
