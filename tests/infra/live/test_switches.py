"""Launches an install stack with named roles on the local cloud, uses each switch, rolls it back and deletes it."""

import datetime
import unittest

from botocore.exceptions import ClientError

import templates
from cloud import Cloud, orders_policy, reports_policy, settled, until
from templates import ACCOUNT, REGION, TENANT

INSTALL, STACK = "globex", "freehold-acme--globex"
GIVEN = {
    "RunnerPrincipal": f"arn:aws:iam::{ACCOUNT}:root",
    "InputApiToken": "t0ken",
    "InputDebug": "true",
    "InputReplicas": "3",
}
# The role of each switch, and whether the switch is on by default.
SWITCHES = {
    "EnableProvision": ("provision", True),
    "EnableMaintenance": ("maintenance", True),
    "EnableDeprovision": ("deprovision", False),
    "EnableBreakGlass": ("break-glass", False),
    "EnableCustomSupport": ("custom-support", True),
}


def moment(**ahead):
    return (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(**ahead)).strftime("%Y-%m-%dT%H:%M:%SZ")


class Launched(unittest.TestCase):
    """Launches the stack for a test, and deletes it afterwards."""

    @classmethod
    def setUpClass(cls):
        cls.cloud = Cloud()
        cls.addClassCleanup(cls.cloud.stop)
        cls.formation = cls.cloud.client("cloudformation", ACCOUNT)
        cls.cloud.client("s3", ACCOUNT).create_bucket(
            Bucket="templates-of-a-test", CreateBucketConfiguration={"LocationConstraint": REGION}
        )

    def by_address(self, template):
        """Uploads a template that is too large for a request, and returns the argument that names it."""
        self.cloud.client("s3", ACCOUNT).put_object(
            Bucket="templates-of-a-test", Key="install.yaml", Body=template.encode()
        )
        return {"TemplateURL": f"https://s3.{REGION}.amazonaws.com/templates-of-a-test/install.yaml"}

    def launch(self, **changes):
        asked = templates.install_with_inputs()["Parameters"]
        needed = {name: "x" for name, parameter in asked.items() if "Default" not in parameter}
        self.stack, self.out = self.cloud.stack(
            STACK, {**needed, **GIVEN, **changes}, ACCOUNT, **self.by_address(templates.install_with_inputs_text())
        )
        self.assertEqual(self.stack["StackStatus"], "CREATE_COMPLETE", self.stack.get("StackStatusReason"))
        self.addCleanup(self.remove)

    def remove(self):
        self.formation.delete_stack(StackName=STACK)
        until(lambda: not self.kept(), "the stack is gone")
        s3 = self.cloud.client("s3", ACCOUNT)
        bucket = self.out["BucketName"]
        for version in s3.list_object_versions(Bucket=bucket).get("Versions", []):
            s3.delete_object(Bucket=bucket, Key=version["Key"], VersionId=version["VersionId"])
        s3.delete_bucket(Bucket=bucket)
        self.cloud.client("ecr", ACCOUNT).delete_repository(repositoryName=self.out["RepositoryName"], force=True)

    def kept(self):
        try:
            [stack] = self.formation.describe_stacks(StackName=STACK)["Stacks"]
        except ClientError:
            return False
        return stack["StackStatus"] != "DELETE_COMPLETE"

    def update(self, template=None, **changes):
        body = self.by_address(template) if template else {"UsePreviousTemplate": True}
        keep = [
            {"ParameterKey": p["ParameterKey"], "UsePreviousValue": True}
            for p in self.stack["Parameters"]
            if p["ParameterKey"] not in changes
        ]
        changed = [{"ParameterKey": key, "ParameterValue": value} for key, value in changes.items()]
        self.formation.update_stack(
            StackName=STACK, Parameters=keep + changed, Capabilities=["CAPABILITY_NAMED_IAM"], **body
        )
        return until(lambda: settled(self.formation, STACK), f"update of {STACK}")["StackStatus"]


class Switches(Launched):
    """The switches of the modes, the break-glass moment, rollback and deletion."""

    def setUp(self):
        self.launch()
        self.runner = self.cloud.assume(f"fh-{TENANT}--{INSTALL}--runner")

    def takes(self, role, runner=None):
        try:
            return self.cloud.assume(f"fh-{TENANT}--{INSTALL}--{role}", credentials=runner or self.runner)
        except ClientError as error:
            self.assertIn("AccessDenied", error.response["Error"]["Code"])
            return None

    def works(self, session):
        """Returns whether a session may do what every mode may."""
        s3 = self.cloud.client("s3", credentials=session)
        try:
            s3.put_object(Bucket=self.out["BucketName"], Key="terraform/x", Body=b"x")
        except ClientError as error:
            self.assertRegex(error.response["Error"]["Code"], "AccessDenied|^403$|Forbidden")
            return False
        return True

    def ids(self):
        iam = self.cloud.client("iam", ACCOUNT)
        return {
            role: iam.get_role(RoleName=f"fh-{TENANT}--{INSTALL}--{role}")["Role"]["RoleId"]
            for role, _ in SWITCHES.values()
        }

    def test_each_switch_takes_its_role_from_live_sessions_too_and_leaves_the_others(self):
        ids, far = self.ids(), {"BreakGlassUntil": moment(hours=1)}
        self.update(**far, **dict.fromkeys(SWITCHES, "true"))
        sessions = {role: self.takes(role) for role, _ in SWITCHES.values()}

        for switch, (role, _) in SWITCHES.items():
            with self.subTest(switch):
                self.assertEqual(
                    self.update(**far, **{**dict.fromkeys(SWITCHES, "true"), switch: "false"}), "UPDATE_COMPLETE"
                )

                self.assertEqual({other for other, session in sessions.items() if not self.works(session)}, {role})
                self.assertIsNone(self.takes(role))
        self.assertEqual(self.ids(), ids, "no role was made again")

    def test_the_kill_switch_holds_for_a_live_runner_and_every_mode_and_is_undone_by_itself(self):
        on = dict.fromkeys(SWITCHES, "true") | {"BreakGlassUntil": moment(hours=1)}
        self.update(**on)
        sessions = [self.takes(role) for role, _ in SWITCHES.values()]
        orders, reports = self.queues()
        runner = self.cloud.client("sqs", credentials=self.runner)
        runner.receive_message(QueueUrl=orders)

        self.assertEqual(self.update(EnableRunner="false"), "UPDATE_COMPLETE")

        self.assertFalse(any(self.works(session) for session in sessions))
        self.assertEqual([self.takes(role) for role, _ in SWITCHES.values()], [None] * len(SWITCHES))
        for refused in (
            lambda: runner.receive_message(QueueUrl=orders),
            lambda: self.cloud.client("ecr", credentials=self.runner).get_authorization_token(),
            lambda: self.cloud.client("secretsmanager", credentials=self.runner).get_secret_value(
                SecretId=f"fh-{TENANT}--{INSTALL}/input/api_token"
            ),
            lambda: self.cloud.assume(f"fh-{TENANT}--{INSTALL}--runner"),
        ):
            with self.assertRaisesRegex(ClientError, "AccessDenied"):
                refused()
        # What it did is still told, and why it stands still is read from the stack.
        runner.send_message(QueueUrl=reports, MessageBody="x")
        # The next record needs the one before it, and nothing else of the bucket.
        s3, bucket = self.cloud.client("s3", credentials=self.runner), self.out["BucketName"]
        s3.put_object(Bucket=bucket, Key="audit/1.json", Body=b"x", IfNoneMatch="*")
        self.assertEqual(s3.get_object(Bucket=bucket, Key="audit/1.json")["Body"].read(), b"x")
        self.assertEqual(s3.list_objects_v2(Bucket=bucket, Prefix="audit/")["KeyCount"], 1)
        for refused in (
            lambda: s3.get_object(Bucket=bucket, Key="terraform/x"),
            lambda: s3.list_objects_v2(Bucket=bucket, Prefix="logs/"),
            lambda: s3.list_objects_v2(Bucket=bucket),
        ):
            with self.assertRaisesRegex(ClientError, "AccessDenied"):
                refused()
        formation = self.cloud.client("cloudformation", credentials=self.runner)
        [stack] = formation.describe_stacks(StackName=STACK)["Stacks"]
        self.assertIn({"ParameterKey": "EnableRunner", "ParameterValue": "false"}, stack["Parameters"])

        self.update(EnableRunner="true")

        self.assertTrue(all(self.works(session) for session in sessions))
        runner.receive_message(QueueUrl=orders)

    def test_the_runner_writes_no_audit_record_twice(self):
        s3 = self.cloud.client("s3", credentials=self.runner)
        record = {"Bucket": self.out["BucketName"], "Key": "audit/000000000001.json"}

        s3.put_object(**record, Body=b"first", IfNoneMatch="*")

        for condition, code in (({"IfNoneMatch": "*"}, "PreconditionFailed"), ({}, "AccessDenied")):
            with self.assertRaisesRegex(ClientError, code):
                s3.put_object(**record, Body=b"second", **condition)
        self.assertEqual(s3.get_object(**record)["Body"].read(), b"first")

    def queues(self):
        """Makes the vendor's two queues of this install, open to its runner as `register-install` does."""
        sqs, name = self.cloud.client("sqs"), f"fh-{TENANT}--{INSTALL}--runner"
        made = []
        for queue, policy, attributes in (
            (self.out["OrdersQueueUrl"], lambda arn: orders_policy(arn, name), {"FifoQueue": "true"}),
            (self.out["ReportsQueueUrl"], reports_policy, {}),
        ):
            url = sqs.create_queue(QueueName=queue.rsplit("/", 1)[1], Attributes=attributes)["QueueUrl"]
            self.addCleanup(sqs.delete_queue, QueueUrl=url)
            arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
            sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy(arn)})
            made.append(url)
        return made

    def test_what_is_on_is_what_the_defaults_say(self):
        self.assertEqual({role: bool(self.takes(role)) for role, _ in SWITCHES.values()}, dict(SWITCHES.values()))

    def test_sessions_of_before_are_worth_nothing_and_those_of_after_are(self):
        before = self.takes("provision")
        self.assertTrue(self.works(before))

        self.update(RevokeSessionsBefore=moment(minutes=10))
        self.assertFalse(self.works(before))
        self.assertIsNone(self.takes("maintenance"), "the runner's session is as old")
        self.assertIsNone(self.takes("maintenance", self.cloud.assume(f"fh-{TENANT}--{INSTALL}--runner")))

        self.update(RevokeSessionsBefore=moment(minutes=-10))
        self.assertTrue(self.works(self.takes("provision")))

    def test_break_glass_opens_until_its_moment_and_closes_by_itself(self):
        with self.assertRaisesRegex(ClientError, "BreakGlassUntil has to say when"):
            self.update(EnableBreakGlass="true")
        self.update(EnableBreakGlass="true", BreakGlassUntil=moment(minutes=-1))
        self.assertIsNone(self.takes("break-glass"), "a moment that is past")

        self.update(EnableBreakGlass="true", BreakGlassUntil=moment(seconds=20))
        session = self.takes("break-glass")
        self.assertTrue(self.works(session))

        until(lambda: not self.works(session), "nobody changes anything, and it is over")
        self.assertIsNone(self.takes("break-glass"))

    def test_a_template_that_cannot_be_made_is_rolled_back_and_everything_works_as_before(self):
        broken = templates.install_with_inputs_text().replace(
            "RepositoryName: fh-acme/globex\n", "RepositoryName: fh-acme/globex\n      Nonsense: !GetAtt Key.Nothing\n"
        )
        self.assertNotEqual(broken, templates.install_with_inputs_text())

        try:
            status = self.update(template=broken)
        except ClientError as refused:
            self.assertRegex(str(refused), "Nonsense|Nothing|ValidationError")
            status = "refused"

        self.assertIn(status, ("UPDATE_ROLLBACK_COMPLETE", "refused"))
        self.assertTrue(self.works(self.takes("provision")))

    def test_after_deletion_only_what_keeps_data_is_left(self):
        self.formation.delete_stack(StackName=STACK)
        until(lambda: not self.kept(), "the stack is gone")

        tagging = self.cloud.client("resourcegroupstaggingapi", ACCOUNT)
        found = tagging.get_resources(TagFilters=[{"Key": "freehold:install", "Values": [INSTALL]}])[
            "ResourceTagMappingList"
        ]
        # The local cloud does not tag the buckets of a stack; the keys of other tests remain.
        kinds = {tagged["ResourceARN"].split(":")[2] for tagged in found} - {"s3"}
        self.cloud.client("s3", ACCOUNT).head_bucket(Bucket=self.out["BucketName"])
        iam = self.cloud.client("iam", ACCOUNT)
        named = [role["RoleName"] for role in iam.list_roles()["Roles"] if INSTALL in role["RoleName"]]
        named += [
            policy["PolicyName"]
            for policy in iam.list_policies(Scope="Local")["Policies"]
            if INSTALL in policy["PolicyName"]
        ]
        secrets = [
            s["Name"]
            for s in self.cloud.client("secretsmanager", ACCOUNT).list_secrets()["SecretList"]
            if INSTALL in s["Name"]
        ]

        retained = [
            name
            for name, resource in templates.install_with_inputs()["Resources"].items()
            if resource.get("DeletionPolicy") == "RetainExceptOnCreate"
        ]
        self.assertEqual((sorted(retained), kinds), (["Bucket", "Key", "Repository"], {"ecr", "kms"}))
        self.assertEqual((named, secrets), ([], []))


class Machine(Launched):
    """The runner's own machine and network; the local cloud keeps the resources but does not start a machine."""

    PROGRAM = {"RunnerPrincipal": "", "RunnerUrl": "https://releases.example/freehold-runner", "RunnerSha256": "0" * 64}

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.ec2, cls.scaling = (cls.cloud.client(service, ACCOUNT) for service in ("ec2", "autoscaling"))

    def group(self):
        [group] = self.scaling.describe_auto_scaling_groups(AutoScalingGroupNames=[f"fh-{TENANT}--{INSTALL}--runner"])[
            "AutoScalingGroups"
        ]
        return group

    def ours(self, what, key):
        filters = [{"Name": "tag:freehold:part", "Values": ["runner"]}]
        return getattr(self.ec2, f"describe_{what}")(Filters=filters)[key]

    def trusts(self):
        """Returns the effect of each role's trust by the name of the role."""
        roles = self.cloud.client("iam", ACCOUNT).list_roles()["Roles"]
        return {role["RoleName"]: role["AssumeRolePolicyDocument"]["Statement"][0]["Effect"] for role in roles}

    def test_one_machine_works_in_a_network_of_its_own_until_the_kill_switch(self):
        self.launch(**self.PROGRAM)
        [network], [subnet] = self.ours("vpcs", "Vpcs"), self.ours("subnets", "Subnets")

        self.assertEqual((self.group()["MinSize"], self.group()["MaxSize"], self.group()["DesiredCapacity"]), (0, 1, 1))
        self.assertEqual(self.group()["VPCZoneIdentifier"], subnet["SubnetId"])
        self.assertEqual((subnet["VpcId"], self.ours("vpc_endpoints", "VpcEndpoints")), (network["VpcId"], []))
        roles = self.trusts()

        self.assertEqual(self.update(EnableRunner="false"), "UPDATE_COMPLETE")

        self.assertEqual(self.group()["DesiredCapacity"], 0)
        nobody = {name: "Allow" if name.endswith("--runner") else "Deny" for name in roles}
        self.assertEqual(self.trusts(), nobody, "the same roles, of which the modes trust nobody")

    def test_in_a_network_of_the_customers_it_makes_none(self):
        vpc = self.ec2.create_vpc(CidrBlock="10.9.0.0/24")["Vpc"]["VpcId"]
        subnets = [self.ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.9.0.{n}/28")["Subnet"]["SubnetId"] for n in (0, 16)]

        self.launch(**self.PROGRAM, VpcId=vpc, SubnetIds=",".join(subnets))

        self.assertEqual(self.ours("vpcs", "Vpcs"), [])
        self.assertEqual(self.group()["VPCZoneIdentifier"], ",".join(subnets))
        [guard] = self.ours("security_groups", "SecurityGroups")
        self.assertEqual((guard["VpcId"], guard["IpPermissions"], len(guard["IpPermissionsEgress"])), (vpc, [], 1))

    def test_a_machine_without_its_program_or_a_network_without_its_subnets_is_refused(self):
        for changes, message in (
            ({"RunnerPrincipal": ""}, "RunnerSha256"),
            ({"VpcId": "vpc-0123456789abcdef0"}, "SubnetIds"),
        ):
            with self.assertRaisesRegex(ClientError, message):
                self.launch(**changes)

    def test_with_endpoints_no_route_leads_to_the_internet(self):
        self.launch(**self.PROGRAM, PrivateEndpoints="true")

        self.assertEqual(self.ours("internet_gateways", "InternetGateways"), [])
        [routes] = self.ours("route_tables", "RouteTables")
        self.assertNotIn("0.0.0.0/0", [route.get("DestinationCidrBlock") for route in routes["Routes"]])

    def test_after_deletion_nothing_of_the_machine_is_left(self):
        self.launch(**self.PROGRAM, PrivateEndpoints="true")
        self.formation.delete_stack(StackName=STACK)
        until(lambda: not self.kept(), "the stack is gone")

        left = [
            self.ours(what, key)
            for what, key in (
                ("vpcs", "Vpcs"),
                ("subnets", "Subnets"),
                ("route_tables", "RouteTables"),
                ("security_groups", "SecurityGroups"),
                ("vpc_endpoints", "VpcEndpoints"),
                ("internet_gateways", "InternetGateways"),
            )
        ]
        self.assertEqual(left, [[]] * 6)
        self.assertEqual(self.scaling.describe_auto_scaling_groups()["AutoScalingGroups"], [])
