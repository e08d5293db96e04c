"""The install stack has the properties that a customer's security team looks for, beyond the rules of `install.guard`
(`test_guard.py` checks our templates against those) and beyond what is true in every combination of its switches
(`tests/stacks/invariants.py`)."""

import re
import unittest
from fnmatch import fnmatchcase

import linting
import templates
from boundaries import BOUNDARIES, size_of_boundary
from intrinsics import Evaluator, statements
from templates import ACCOUNT, APP, INSTALL, TENANT, TENANT_ACCOUNT, as_list, of_type, properties

USUAL_MODES = ("Provision", "Maintenance")
TYPES = {
    "AWS::AutoScaling::AutoScalingGroup",
    "AWS::EC2::InternetGateway",
    "AWS::EC2::LaunchTemplate",
    "AWS::EC2::Route",
    "AWS::EC2::RouteTable",
    "AWS::EC2::SecurityGroup",
    "AWS::EC2::Subnet",
    "AWS::EC2::SubnetRouteTableAssociation",
    "AWS::EC2::VPC",
    "AWS::EC2::VPCEndpoint",
    "AWS::EC2::VPCGatewayAttachment",
    "AWS::ECR::Repository",
    "AWS::IAM::InstanceProfile",
    "AWS::IAM::ManagedPolicy",
    "AWS::IAM::Role",
    "AWS::KMS::Alias",
    "AWS::KMS::Key",
    "AWS::Route53Resolver::FirewallDomainList",
    "AWS::Route53Resolver::FirewallRuleGroup",
    "AWS::Route53Resolver::FirewallRuleGroupAssociation",
    "AWS::S3::Bucket",
    "AWS::S3::BucketPolicy",
}


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.text = templates.install_text()
        cls.template = templates.parse(cls.text)

    def test_cfn_lint_finds_nothing(self):
        self.assertEqual(linting.lint(self.text), [])

    def test_cfn_lint_would_find_a_mistake(self):
        found = linting.lint(self.text.replace("ImageTagMutability", "ImageTagMutabilty"))

        self.assertEqual(len(found), 1)

    def test_its_boundary_fits_into_a_managed_policy_under_the_longest_names(self):
        """IAM quotas, "Managed policies": 6,144 characters without white space."""
        names = ("t" * 16, TENANT_ACCOUNT, "i" * 20, ACCOUNT)
        template = templates.install(*names)

        for parameters in BOUNDARIES:
            self.assertLessEqual(size_of_boundary(template, parameters), 6_144)

    def test_it_has_resources_of_these_types_only(self):
        self.assertEqual({resource["Type"] for resource in self.template["Resources"].values()}, TYPES)

    def test_only_the_two_queues_are_of_another_account(self):
        accounts = set(re.findall(r"\b\d{12}\b", str(self.template["Resources"])))

        # The ARNs of the two queues, which the runner uses, contain the tenant's account.
        queues = {templates.ORDERS_QUEUE, templates.REPORTS_QUEUE}
        named = {
            str(r)
            for role in of_type(self.template, "AWS::IAM::Role").values()
            for s in statements(role)
            for r in as_list(s["Resource"])
            if templates.TENANT_ACCOUNT in str(r)
        }
        self.assertEqual((accounts, named), ({templates.TENANT_ACCOUNT}, queues))

    def test_the_runner_names_all_resources_for_a_registry_token_alone(self):
        everywhere = [s["Action"] for s in statements(self.template["Resources"]["RunnerRole"]) if s["Resource"] == "*"]

        self.assertEqual(everywhere, ["ecr:GetAuthorizationToken"])

    def test_resources_are_listed_by_tag_for_the_mode_that_removes_them_alone(self):
        policies = {**of_type(self.template, "AWS::IAM::ManagedPolicy"), **of_type(self.template, "AWS::IAM::Role")}
        found = [
            (name, statement)
            for name, policy in policies.items()
            for statement in statements(policy)
            if statement["Effect"] == "Allow"
            and any(str(action).startswith("tag:") for action in as_list(statement.get("Action", [])))
        ]

        [(name, statement)] = found
        self.assertEqual((name, statement["Action"]), ("Base", "tag:GetResources"))
        role = {"Fn::GetAtt": ["DeprovisionRole", "Arn"]}
        self.assertEqual(statement["Condition"], {"ArnEquals": {"aws:PrincipalArn": role}})

    def test_the_runner_cannot_shorten_its_audit_log(self):
        allowed = [s for s in statements(self.template["Resources"]["RunnerRole"]) if s["Effect"] == "Allow"]
        actions = {a for s in allowed if s["Sid"] != "SensitiveOutputs" for a in as_list(s["Action"])}
        [outputs] = [s for s in allowed if s["Sid"] == "SensitiveOutputs"]

        self.assertEqual({a for a in actions if a.startswith("s3:")}, {"s3:GetObject", "s3:PutObject", "s3:ListBucket"})
        self.assertEqual(outputs["Resource"], {"Fn::Sub": "${Bucket.Arn}/locked/*"})

    def test_the_runner_may_lock_audit_records_if_the_customer_wants_that(self):
        """With this right, a lock can be made longer and not shorter."""
        [lock] = [s for s in statements(self.template["Resources"]["RunnerRole"]) if s["Sid"] == "LockRecords"]

        self.assertEqual(lock["Effect"], {"Fn::If": ["LocksAudit", "Allow", "Deny"]})
        self.assertEqual(lock["Action"], "s3:PutObjectRetention")
        self.assertEqual(lock["Resource"], {"Fn::Sub": "${Bucket.Arn}/audit/*"})

    def test_the_runner_alone_reaches_the_sensitive_outputs(self):
        """The boundary denies its part of the bucket to the modes and to every role that they make."""
        [denied] = [s for s in statements(self.template["Resources"]["Boundary"]) if s.get("Sid") == "SecretsLogsAudit"]
        patterns = [
            one["Fn::Sub"].removeprefix("arn:*:s3:::${Bucket}/") for one in denied["Resource"] if "Fn::Sub" in one
        ]
        reached = [
            key
            for key in ("locked/net/1.json", "logs/a", "audit/a", "plans/a", "terraform/a", "kubernetes/a")
            if any(fnmatchcase(key, pattern) for pattern in patterns)
        ]

        self.assertEqual(reached, ["locked/net/1.json", "logs/a", "audit/a"])
        self.assertIn("s3:*", denied["Action"])

    def test_the_usual_modes_are_on_by_default(self):
        defaults = {mode: self.template["Parameters"][f"Enable{mode}"]["Default"] for mode in USUAL_MODES}

        self.assertEqual(defaults, {"Provision": "true", "Maintenance": "true"})

    def test_the_vendors_policies_land_in_their_mode_alone(self):
        role = properties(self.template, "ProvisionRole")

        self.assertEqual([policy["PolicyName"] for policy in role["Policies"]], ["tables"])
        self.assertEqual(role["ManagedPolicyArns"][1:], ["arn:aws:iam::aws:policy/AmazonS3FullAccess"])
        for mode in ("Maintenance", "Deprovision"):
            self.assertEqual(properties(self.template, f"{mode}Role")["Policies"], [])

    def test_no_colon_in_a_path_makes_a_role_the_installs(self):
        """AWS IAM User Guide, "IAM JSON policy elements: Resource": a wildcard at the end of a segment can match beyond
        the colons, and a path of IAM may have colons (CreateRole, "Path").
        """
        own = f"{TENANT}--{INSTALL}"
        mode = f"role/fh-{own}--x"
        colons = [
            # A mode by its beginning, which the kill switch of the app's roles and the state would leave alone.
            f"arn:aws:iam::{ACCOUNT}:{mode}:role/{own}--y",
            f"arn:aws:iam::{ACCOUNT}:{mode}:iam::{ACCOUNT}:role/freehold/{own}/y",
            # A role of the vendor's own account.
            f"arn:aws:iam::{TENANT_ACCOUNT}:role/x:iam::{ACCOUNT}:role/{own}--y",
        ]
        users = [
            f"arn:aws:iam::{ACCOUNT}:user/{path}/{own}--y"
            for path in ("x:role", f"x:iam::{ACCOUNT}:role", "x:policy", f"x:instance-profile/freehold/{own}")
        ]
        plain = [f"arn:aws:iam::{ACCOUNT}:role/{own}--y", f"arn:aws:iam::{ACCOUNT}:role/freehold/{own}/team/y"]

        for action in ("iam:CreateRole", "iam:PassRole", "sts:AssumeRole"):
            for arn in colons:
                self.assertTrue(self._is_denied(action, arn), f"{action} {arn}")
            for arn in plain:
                self.assertFalse(self._is_denied(action, arn), f"{action} {arn}")
        for action in ("iam:CreateUser", "iam:CreateAccessKey", "iam:AttachUserPolicy", "iam:CreateLoginProfile"):
            for arn in users:
                self.assertTrue(self._is_denied(action, arn), f"{action} {arn}")

    def test_an_issuer_is_of_a_cluster_in_this_region(self):
        provider = f"arn:aws:iam::{ACCOUNT}:oidc-provider/oidc.eks."
        action = "iam:CreateOpenIDConnectProvider"

        self.assertFalse(self._is_denied(action, f"{provider}{templates.REGION}.amazonaws.com/id/A1"))
        for issuer in ("evil.example", "us-east-1.amazonaws.com/id/A1", f"{templates.REGION}.evil.example/id/A1"):
            self.assertTrue(self._is_denied(action, f"{provider}{issuer}"), issuer)

    def test_no_role_is_made_beside_the_companys_boundary_before_somebody_has_read_it(self):
        [carry] = [s for s in statements(self.template["Resources"]["Boundary"]) if s["Sid"] == "RolesCarryThis"]
        company = f"arn:aws:iam::{ACCOUNT}:policy/company"

        def needed(**parameters):
            condition = Evaluator(self.template, "freehold", ACCOUNT, parameters).resolve(carry["Condition"])
            return condition["StringNotEquals"]["iam:PermissionsBoundary"]

        ours = f"arn:aws:iam::{ACCOUNT}:policy/fh-{TENANT}--{INSTALL}--boundary"
        self.assertEqual(needed(PermissionsBoundaryHasOurs="true"), ours)
        self.assertEqual(needed(PermissionsBoundaryArn=company), "none")
        self.assertEqual(needed(PermissionsBoundaryArn=company, PermissionsBoundaryHasOurs="true"), company)

    def _is_denied(self, action, arn):
        """Returns whether the boundary denies an action by its resource alone; a wildcard matches any characters."""
        document = properties(self.template, "Boundary")["PolicyDocument"]
        document = Evaluator(self.template, "freehold", ACCOUNT, {}).resolve(document)

        def has(statement, key, text):
            return any(fnmatchcase(text, pattern) for pattern in as_list(statement.get(key, [])))

        return any(
            has(each, "Action", action)
            and has(each, "Resource", arn) ^ ("NotResource" in each and not has(each, "NotResource", arn))
            for each in document["Statement"]
            if each["Effect"] == "Deny" and "Condition" not in each
        )

    def test_the_bucket_is_versioned_has_a_key_of_its_own_and_keeps_the_audit_log(self):
        bucket = properties(self.template, "Bucket")
        encryption = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"][0]["ServerSideEncryptionByDefault"]
        expires = {
            rule.get("Prefix") for rule in bucket["LifecycleConfiguration"]["Rules"] if "ExpirationInDays" in rule
        }

        self.assertEqual(bucket["VersioningConfiguration"], {"Status": "Enabled"})
        self.assertEqual(encryption["SSEAlgorithm"], "aws:kms")
        self.assertEqual(expires, {"logs/", "plans/", "locked/_plans/"})

    def test_the_bucket_can_lock_and_locks_nothing_by_itself(self):
        bucket, parameters = properties(self.template, "Bucket"), self.template["Parameters"]

        self.assertEqual(bucket["ObjectLockEnabled"], True)
        self.assertNotIn("ObjectLockConfiguration", bucket)
        self.assertEqual(parameters["AuditLock"]["Default"], "none")

    def test_the_buckets_policy_grants_nothing_and_demands_new_records_of_everybody(self):
        statements = properties(self.template, "BucketRules")["PolicyDocument"]["Statement"]

        self.assertEqual({(each["Effect"], each["Principal"]) for each in statements}, {("Deny", "*")})
        [new] = [each for each in statements if each.get("Action") == "s3:PutObject"]
        self.assertEqual(new["Resource"], {"Fn::Sub": "${Bucket.Arn}/audit/*.json"})
        self.assertEqual(new["Condition"], {"Null": {"s3:if-none-match": "true"}})

    def test_one_rule_lets_out(self):
        group = properties(self.template, "SecurityGroup")
        [rule] = group["SecurityGroupEgress"]

        self.assertEqual(
            (rule["FromPort"], rule["ToPort"], rule["CidrIp"]),
            ({"Ref": "EgressPort"}, {"Ref": "EgressPort"}, {"Ref": "EgressCidr"}),
        )
        for name, endpoint in of_type(self.template, "AWS::EC2::VPCEndpoint").items():
            if name != "S3Endpoint":
                self.assertEqual(endpoint["Properties"]["SecurityGroupIds"], [{"Ref": "EndpointSecurityGroup"}])

    def test_endpoints_are_for_the_services_that_the_runner_calls(self):
        endpoints = of_type(self.template, "AWS::EC2::VPCEndpoint").values()
        services = [templates.endpoint_service(each) for each in endpoints]
        expected = [
            "autoscaling",
            "cloudformation",
            "ecr.api",
            "ecr.dkr",
            "iam",
            "kms",
            "logs",
            "s3",
            "secretsmanager",
            "sqs",
            "sts",
        ]

        self.assertEqual(sorted(services), expected)

    def test_the_endpoint_of_iam_leads_to_the_one_region_where_iam_is(self):
        endpoint = self.template["Resources"]["IamEndpoint"]

        self.assertEqual(endpoint["Properties"]["ServiceName"], "com.amazonaws.iam")
        self.assertEqual(endpoint["Properties"]["ServiceRegion"], "us-east-1")
        for partition, made in (("aws", True), ("aws-us-gov", False), ("aws-cn", False)):
            stack = Evaluator(self.template, "freehold", templates.ACCOUNT, {"PrivateEndpoints": "true"})
            stack.values["AWS::Partition"] = partition
            self.assertEqual(stack.holds(endpoint["Condition"]), made, partition)

    def test_an_endpoint_takes_requests_of_this_account_for_this_account_alone(self):
        own = {"Ref": "AWS::AccountId"}
        for name, endpoint in of_type(self.template, "AWS::EC2::VPCEndpoint").items():
            first, *more = endpoint["Properties"]["PolicyDocument"]["Statement"]
            condition = first["Condition"]
            resource = {"aws:ResourceAccount": own}
            if name in ("SqsEndpoint", "S3Endpoint"):
                self.assertEqual(condition, {"StringEquals": {"aws:PrincipalAccount": own, **resource}}, name)
                self.assertEqual([each["Effect"] for each in more], [*["Deny"] * (name == "S3Endpoint"), "Allow"], name)
            else:
                # Requests without a resource, such as sts:GetCallerIdentity, may have no account of a resource.
                self.assertEqual(
                    condition,
                    {"StringEquals": {"aws:PrincipalAccount": own}, "StringEqualsIfExists": resource},
                    name,
                )
                self.assertEqual(more, [], name)

    def test_beyond_this_account_the_endpoints_reach_two_queues_and_three_kinds_of_public_objects(self):
        def beyond(name):
            return properties(self.template, name)["PolicyDocument"]["Statement"][-1]

        queues, objects = beyond("SqsEndpoint"), beyond("S3Endpoint")
        self.assertEqual(queues["Resource"], [templates.ORDERS_QUEUE, templates.REPORTS_QUEUE])
        self.assertEqual(queues["Condition"], {"StringEquals": {"aws:PrincipalAccount": {"Ref": "AWS::AccountId"}}})
        self.assertEqual(objects["Action"], "s3:GetObject")
        stack = Evaluator(
            self.template,
            "freehold",
            templates.ACCOUNT,
            {"RunnerUrl": "https://dist.s3.eu-west-1.amazonaws.com/runners/1.2/freehold-runner"},
        )
        self.assertEqual(
            stack.resolve(objects["Resource"]),
            [
                "arn:aws:s3:::prod-eu-west-1-starport-layer-bucket/*",
                "arn:aws:s3:::dist/runners/1.2/freehold-runner",
                "arn:aws:s3:::al2023-repos-eu-west-1-de612dc2/*",
            ],
        )

    def test_no_access_point_of_s3_is_reached_by_its_endpoint_or_made(self):
        """Amazon S3 User Guide, "Configuring IAM policies for using access points": an access point may belong to an
        account other than its bucket's, and requests by its ARN or its alias have `s3:DataAccessPointAccount`.
        """
        denied = properties(self.template, "S3Endpoint")["PolicyDocument"]["Statement"][1]
        never = next(s for s in statements(self.template["Resources"]["Boundary"]) if s["Sid"] == "NeverAtAll")

        self.assertEqual(
            denied,
            {
                "Effect": "Deny",
                "Principal": "*",
                "Action": "s3:*",
                "Resource": "*",
                "Condition": {"Null": {"s3:DataAccessPointAccount": "false"}},
            },
        )
        for action in ("CreateAccessPoint", "CreateAccessPointForObjectLambda", "CreateMultiRegionAccessPoint"):
            self.assertTrue(any(fnmatchcase(f"s3:{action}", pattern) for pattern in never["Action"]), action)
        self.assertEqual((never["Resource"], "Condition" in never), ("*", False))

    def test_the_machine_can_read_its_metadata_and_names_its_volume(self):
        data = properties(self.template, "Machine")["LaunchTemplateData"]

        self.assertEqual(data["MetadataOptions"]["HttpEndpoint"], "enabled")
        # The rule about encryption judges the volumes that are named.
        self.assertIn("Ebs", data["BlockDeviceMappings"][0])

    def test_only_aws_and_the_customer_choose_the_image_of_the_machine(self):
        """A mode may write parameters of Systems Manager (IAM and Systems Manager: nobody but AWS below /aws)."""
        image = self.template["Parameters"]["ImageId"]

        for value in (image["Default"], "ami-0123456789abcdef0"):
            self.assertRegex(value, image["AllowedPattern"])
        for value in ("resolve:ssm:/images/runner", "resolve:ssm:images", "resolve:ssm:/aws/images", "x/aws/service/a"):
            self.assertNotRegex(value, image["AllowedPattern"])

    def test_what_changes_the_code_of_a_resource_looks_at_a_tag_that_others_keep(self):
        """Otherwise a mode would give the install's tag to a resource of somebody else, and then change it."""
        found = {each["Sid"]: each for each in statements(self.template["Resources"]["Boundary"])}

        def services(sid):
            return {action.split(":")[0] for action in found[sid]["Action"]}

        # Machines have the tags of EC2, and a project of CodeBuild or a product gets its tags with a change of itself.
        by_other_actions = {"codebuild", "ec2-instance-connect", "servicecatalog", "ssm"}
        kept = services("OwnTags") | services("OwnersStay")
        self.assertEqual(services("OwnCode") - kept, by_other_actions)
        self.assertIn("codebuild:UpdateP*", found["OwnCode"]["Action"])
        self.assertIn("servicecatalog:UpdatePr*", found["OwnCode"]["Action"])

    def test_it_is_bound_to_one_account_and_one_region(self):
        self.assertEqual(self.template["Mappings"], {"BoundTo": {templates.REGION: {templates.ACCOUNT: INSTALL}}})
        self.assertIn("Fn::FindInMap", str(properties(self.template, "RunnerRole")["Description"]))

    def test_the_vendor_gives_no_secret_to_it(self):
        given = [name for name, one in self.template["Parameters"].items() if one.get("NoEcho")]

        self.assertEqual([name for name in given if not name.startswith(("Input", "AppSecret"))], [])

    def test_launching_it_is_the_consent_to_the_contract_that_it_shows(self):
        parameter = self.template["Parameters"]["AcceptedContract"]
        output = self.template["Outputs"]["AcceptedContract"]["Value"]

        self.assertRegex(parameter["Default"], "^sha256:[0-9a-f]{64}$")
        self.assertEqual(output, {"Ref": "AcceptedContract"})
        self.assertIn(parameter["Default"], parameter["Description"])
        self.assertRegex(parameter["Default"], parameter["AllowedPattern"])
        for wrong in ("", "sha256:", "any", parameter["Default"].upper(), parameter["Default"] + "0"):
            self.assertNotRegex(wrong, parameter["AllowedPattern"])

    def test_it_takes_no_contract_but_its_own(self):
        rule = self.template["Rules"]["TheAcceptedContractIsThatOfThisTemplate"]

        [assertion] = rule["Assertions"]
        own = self.template["Parameters"]["AcceptedContract"]["Default"]
        self.assertNotIn("RuleCondition", rule)
        self.assertEqual(assertion["Assert"], {"Fn::Equals": [{"Ref": "AcceptedContract"}, own]})
        self.assertIn(own, assertion["AssertDescription"])

    def test_everything_taggable_carries_tenant_app_and_install(self):
        expected = {"freehold:tenant": TENANT, "freehold:app": APP, "freehold:install": INSTALL}

        self.assertEqual(linting.untagged(self.template, expected), [])

    def test_what_holds_data_outlives_the_stack(self):
        for name in ("Bucket", "Key", "Repository"):
            self.assertEqual(self.template["Resources"][name]["DeletionPolicy"], "RetainExceptOnCreate", name)

    def test_outputs_are_those_of_the_contract(self):
        outputs = self.template["Outputs"]

        self.assertEqual([name for name, output in outputs.items() if "Condition" in output], [])
        self.assertEqual(
            set(outputs),
            {
                "AcceptedContract",
                "Changes",
                "ClusterImages",
                "AuditLock",
                "AuditLockDays",
                "LoosenedPolicies",
                "MaintenanceComponents",
                "MaintenanceCreates",
                "RunnerReleaseKey",
                "RunnerRoleArn",
                "ProvisionRoleArn",
                "MaintenanceRoleArn",
                "DeprovisionRoleArn",
                "RepositoryName",
                "BucketName",
                "KeyArn",
                "BoundaryArn",
                "OrdersQueueUrl",
                "ReportsQueueUrl",
                "TenantKey",
                "TenantSecondKey",
                "TenantName",
                "InstallName",
            },
        )
