"""The AWS command makes, reads and deletes a role through the runner's IAM, by `AWS_ENDPOINT_URL_IAM` alone."""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

from world import BOUNDARY, PATH, World, document, root_of_account

AWS = Path(sys.executable).with_name("aws")


@unittest.skipIf(
    os.environ.get("FREEHOLD_SHORT"), "the short form leaves the AWS command out; run `tests/iam_calls/run`"
)
class Command(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = World()
        cls.addClassCleanup(cls.world.stop)

    def aws(self, *arguments):
        environment = self.world.environment() | {"AWS_ENDPOINT_URL_IAM": self.world.address, "AWS_MAX_ATTEMPTS": "1"}
        command = [sys.executable, AWS, "iam", *arguments, "--output", "json"]
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    def json(self, *arguments):
        done = self.aws(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout or "{}")

    def test_a_role_is_made_read_tagged_and_deleted(self):
        trust = document([root_of_account()])
        made = self.json(
            "create-role", "--role-name", "ci", "--assume-role-policy-document", trust, "--tags", "Key=a,Value=b"
        )
        self.json("tag-role", "--role-name", "ci", "--tags", "Key=c,Value=d e+f")

        read = self.json("get-role", "--role-name", "ci")["Role"]
        real = self.world.root.get_role(RoleName="ci")["Role"]

        self.assertEqual((read["Path"], read["Arn"]), ("/", made["Role"]["Arn"]))
        self.assertEqual(read["Tags"], [{"Key": "a", "Value": "b"}, {"Key": "c", "Value": "d e+f"}])
        self.assertNotIn("PermissionsBoundary", read)
        self.assertEqual((real["Path"], real["PermissionsBoundary"]["PermissionsBoundaryArn"]), (PATH, BOUNDARY))
        self.json("delete-role", "--role-name", "ci")

    def test_a_refusal_is_shown_with_its_way_out(self):
        done = self.aws("create-user", "--user-name", "robot")

        self.assertNotEqual(done.returncode, 0)
        self.assertIn("(AccessDenied)", done.stderr)
        self.assertIn("let the program assume a role", done.stderr)
