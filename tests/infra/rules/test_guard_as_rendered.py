"""The Guard rule `as_rendered` knows the template that Freehold renders, and finds whatever else a template holds."""

import json
import tempfile
import unittest
from pathlib import Path

import guard
import guard_rules
import policy_forms
import templates
from guard_case import with_resources
from templates import properties

VENDOR = templates.TENANT_ACCOUNT
# The changes hand the account over; none of them breaks one of the nine rules.
TAKE_OVERS = {
    "a trust anchor and a role for it": """
  Anchor:
    Type: AWS::RolesAnywhere::TrustAnchor
    Properties: {Name: a, Enabled: true, Source: {SourceType: CERTIFICATE_BUNDLE, SourceData: {X509CertificateData: x}}}
  AnchoredRole:
    Type: AWS::IAM::Role
    Properties:
      PermissionsBoundary: !Ref Boundary
      ManagedPolicyArns: [arn:aws:iam::aws:policy/AdministratorAccess]
      AssumeRolePolicyDocument:
        Statement: [{Effect: Allow, Principal: {Service: rolesanywhere.amazonaws.com}, Action: sts:AssumeRole}]
""",
    "a build project that a rule starts": f"""
  Builder:
    Type: AWS::CodeBuild::Project
    Properties:
      ServiceRole: !GetAtt ProvisionRole.Arn
      Environment: {{Image: {VENDOR}.dkr.ecr.eu-west-1.amazonaws.com/x, Type: LINUX_CONTAINER, ComputeType: SMALL}}
  Nightly:
    Type: AWS::Events::Rule
    Properties: {{ScheduleExpression: rate(1 hour), Targets: [{{Id: x, Arn: !GetAtt Builder.Arn}}]}}
""",
    "a share, a peering and a subscription": f"""
  Share: {{Type: AWS::RAM::ResourceShare, Properties: {{Name: s, Principals: ["{VENDOR}"]}}}}
  Peering:
    Type: AWS::EC2::VPCPeeringConnection
    Properties: {{PeerOwnerId: "{VENDOR}", PeerVpcId: vpc-1, VpcId: !Ref Vpc}}
  Logs:
    Type: AWS::Logs::SubscriptionFilter
    Properties: {{DestinationArn: "arn:aws:logs:eu-west-1:{VENDOR}:destination:x"}}
""",
    "a policy on roles of the customer's and an identity provider": """
  Mine:
    Type: AWS::IAM::ManagedPolicy
    Properties: {Roles: [admin], PolicyDocument: {Statement: [{Effect: Allow, Action: "s3:*", Resource: "*"}]}}
  Issuer: {Type: AWS::IAM::OIDCProvider, Properties: {Url: "https://example.com"}}
""",
}


def _statements(template, name):
    return properties(template, name)["PolicyDocument"]["Statement"]


def _runners(template):
    return properties(template, "RunnerRole")["Policies"][0]["PolicyDocument"]["Statement"]


def _groups(template):
    return template["Metadata"]["AWS::CloudFormation::Interface"]["ParameterGroups"]


def _replicate(template):
    rule = {"Status": "Enabled", "Destination": {"Account": VENDOR, "Bucket": "arn:aws:s3:::x"}}
    properties(template, "Bucket")["ReplicationConfiguration"] = {"Role": "x", "Rules": [rule]}


SMALL = {
    "a replication of the bucket": _replicate,
    "a boundary without a statement": lambda t: _statements(t, "Boundary").pop(),
    "a boundary whose statement has a condition": lambda t: _statements(t, "Boundary")[-1].update(
        Condition={"StringEquals": {"aws:PrincipalTag/x": "y"}}
    ),
    "a boundary with an allow": lambda t: _statements(t, "Boundary").append(
        {"Effect": "Allow", "Action": "x:y", "Resource": "*"}
    ),
    "a boundary for another install": lambda t: properties(t, "Boundary").update(ManagedPolicyName="fh-other-boundary"),
    "limits of fewer roles": lambda t: properties(t, "Limits")["Roles"].pop(),
    "limits of more roles": lambda t: properties(t, "Limits")["Roles"].append("admin"),
    "limits without a statement": lambda t: _statements(t, "Limits").pop(),
    "a script that does more": lambda t: properties(t, "Machine")["LaunchTemplateData"].update(UserData="x"),
    "a condition of a secret of the app that is missing": lambda t: t["Conditions"].pop("HasAppSecretApiKey"),
    "a condition of an input that is missing": lambda t: t["Conditions"].pop(
        next(name for name in t["Conditions"] if name.startswith("HasInput"))
    ),
    "an optional secret of the app without its condition": lambda t: t["Resources"]["SecretAppSecretApiKey"].pop(
        "Condition"
    ),
    "a secret of the app that became optional": lambda t: t["Parameters"].update(
        AppSecretAdminPassword={"Type": "String", "Description": "x", "NoEcho": True, "Default": ""}
    ),
    "a secret of the app that may no longer be empty": lambda t: t["Parameters"]["AppSecretApiKey"].pop("Default"),
    "a condition that is flipped": lambda t: t["Conditions"].update(RunnerEnabled={"Fn::Equals": ["true", "true"]}),
    "a default that is another": lambda t: t["Parameters"]["BreakGlassUntil"].update(Default="2999-01-01T00:00:00Z"),
    "values that are allowed": lambda t: t["Parameters"]["EnableRunner"]["AllowedValues"].append("maybe"),
    "a parameter of Systems Manager": lambda t: t["Parameters"]["InputZones"].update(
        Type="AWS::SSM::Parameter::Value<String>"
    ),
    "a machine with another processor": lambda t: t["Parameters"]["InstanceType"].update(Default="t3a.small"),
    "a parameter more": lambda t: t["Parameters"].update(More={"Type": "String"}),
    "an output more": lambda t: t["Outputs"].update(More={"Value": "x"}),
    "an export": lambda t: t["Outputs"]["KeyArn"].update(Export={"Name": "x"}),
    "a description that misleads": lambda t: t["Parameters"]["EnableProvision"].update(Description="Leave this on."),
    "a queue of another tenant": lambda t: t["Outputs"]["OrdersQueueUrl"].update(
        Value=f"https://sqs.eu-west-1.amazonaws.com/{VENDOR}/fh-other-globex.fifo"
    ),
    "a queue elsewhere": lambda t: t["Outputs"]["ReportsQueueUrl"].update(
        Value=f"https://example.com/{VENDOR}/fh-acme-reports"
    ),
    "another account's resource": lambda t: properties(t, "ProvisionRole")["Policies"][0]["PolicyDocument"][
        "Statement"
    ][0].update(Resource="arn:aws:iam::999999999999:role/x"),
    "another account's resource with an answer in it": lambda t: properties(t, "ProvisionRole")["Policies"][0][
        "PolicyDocument"
    ]["Statement"][0].update(Resource=["*", {"Fn::Sub": "arn:aws:iam::999999999999:role/${InputColour}"}]),
    "a managed policy with dots in its path": lambda t: properties(t, "ProvisionRole")["ManagedPolicyArns"].append(
        "arn:aws:iam::aws:policy/../x"
    ),
    "a managed policy with an empty part of its path": lambda t: properties(t, "ProvisionRole")[
        "ManagedPolicyArns"
    ].append("arn:aws:iam::aws:policy//x"),
    "a principal in a role's policy": lambda t: properties(t, "ProvisionRole")["Policies"][0]["PolicyDocument"][
        "Statement"
    ][0].update(Principal="*"),
    "a service that may take the runner's role": lambda t: properties(t, "RunnerRole")["AssumeRolePolicyDocument"][
        "Statement"
    ].append({"Effect": "Allow", "Principal": {"Service": "ecs-tasks.amazonaws.com"}, "Action": "sts:AssumeRole"}),
    "a statement of the runner's": lambda t: properties(t, "RunnerRole")["Policies"][0]["PolicyDocument"][
        "Statement"
    ].append({"Sid": "More", "Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}),
    "a role that is not of the app": lambda t: properties(t, "RunnerRole")["Policies"][0]["PolicyDocument"][
        "Statement"
    ][2]["Resource"].append({"Fn::Sub": "arn:${AWS::Partition}:iam::${AWS::AccountId}:role/admin"}),
    "a policy that is kept": lambda t: t["Resources"]["Boundary"].update(DeletionPolicy="Retain"),
    "an order of creation": lambda t: t["Resources"]["Limits"].update(DependsOn="Bucket"),
    "metadata of a resource": lambda t: t["Resources"]["Machine"].update(Metadata={"AWS::CloudFormation::Init": {}}),
    "hooks": lambda t: t.update(Hooks={}),
    "a default that is a reference": lambda t: t["Parameters"]["InputZones"].update(Default=policy_forms.SECRET),
    "a description that is a reference": lambda t: properties(t, "SecretInputApiToken").update(
        Description=f"Answer to {policy_forms.SECRET}"
    ),
    "an image of anybody's parameter": lambda t: t["Parameters"]["ImageId"].update(
        AllowedPattern="^(resolve:ssm:/[A-Za-z0-9/_.-]+|ami-[0-9a-f]+)$"
    ),
    "a secret of the app that is shown": lambda t: t["Parameters"]["AppSecretApiKey"].pop("NoEcho"),
    "a secret of the app as an output": lambda t: t["Outputs"].update(
        AppSecretApiKey={"Description": "The customer's answer", "Value": {"Ref": "AppSecretApiKey"}}
    ),
    "a secret of the app under another key": lambda t: properties(t, "SecretAppSecretApiKey").update(
        KmsKeyId="alias/theirs"
    ),
    "a secret of the app of another install": lambda t: properties(t, "SecretAppSecretApiKey").update(
        Name="fh-acme--other--secret/api_key"
    ),
    "a short secret of the app": lambda t: properties(t, "SecretAppSecretApiKey").update(
        GenerateSecretString={"PasswordLength": 4}
    ),
    "a secret of the app with a policy of its own": lambda t: t["Resources"].update(
        Shared={"Type": "AWS::SecretsManager::ResourcePolicy", "Properties": {"SecretId": "x", "ResourcePolicy": {}}}
    ),
    "a key of digests that roles read": lambda t: properties(t, "SecretsKey").update(
        Name="fh-acme--globex--secret/secrets-key"
    ),
    "a runner that reads every secret": lambda t: next(
        one
        for one in properties(t, "RunnerRole")["Policies"][0]["PolicyDocument"]["Statement"]
        if one["Sid"] == "ReadSecretsOfTheApp"
    ).update(Resource="*"),
    "a bound account more": lambda t: t["Mappings"]["BoundTo"]["eu-west-1"].update({"999999999999": "globex"}),
}


class AsRendered(unittest.TestCase):
    def test_the_section_is_what_the_golden_stacks_say(self):
        self.assertTrue(
            guard_rules.FILE.read_text() == guard_rules.file(), f"infra/install.guard is old; run {guard_rules.COMMAND}"
        )

    def test_rendered_stacks_keep_every_rule(self):
        network = templates.install_with_network_text()
        for text in (templates.install_text(), templates.install_with_inputs_text(), network):
            self.assertEqual(guard.broken_rules(text, whole=True), {})
            self.assertEqual(guard.broken_rules(json.dumps(templates.parse(text)), whole=True), {})
        other = templates.install_text("initech", "444444444444", "us-east-1-prod", "555555555555")
        self.assertEqual(guard.broken_rules(other, whole=True), {})

    def test_an_install_of_a_later_reports_queue_keeps_every_rule_and_no_other_queue_does(self):
        later = templates.install_text().replace("fh-acme--reports", "fh-acme--reports--12")
        other = templates.install_text().replace("fh-acme--reports", "fh-acme--reports--x")

        self.assertGreater(later.count("--reports--12"), 2)
        self.assertEqual(guard.broken_rules(later, whole=True), {})
        self.assertIn("as_rendered", guard.broken_rules(other, whole=True))

    def test_a_vendor_or_an_install_that_has_the_names_of_another_is_found(self):
        texts = {
            other: templates.install_text().replace(ours, other)
            for ours, other in (("acme", "fh-acme"), ("acme", "acme--globex"), ("globex-prod", "globex--prod"))
        }

        found = _found(texts, guard.differences_of_files)

        self.assertEqual(found, dict.fromkeys(texts, {"as_rendered"}))

    def test_a_stack_in_a_region_of_another_partition_keeps_every_rule(self):
        text = templates.install_with_inputs_text()
        for ours, theirs in (
            ("arn:aws:sqs:eu-west-1:", "arn:aws-cn:sqs:cn-north-1:"),
            ("sqs.eu-west-1.amazonaws.com/", "sqs.cn-north-1.amazonaws.com.cn/"),
            ("arn:aws:iam::aws:policy/", "arn:aws-cn:iam::aws:policy/"),
            ("eu-west-1", "cn-north-1"),
        ):
            self.assertIn(ours, text)
            text = text.replace(ours, theirs)

        self.assertEqual(guard.broken_rules(text, whole=True), {})

    def test_a_machine_of_any_type_with_a_graviton_processor_keeps_every_rule(self):
        larger = templates.install_text().replace("Default: t4g.small", "Default: m7gd.2xlarge")

        self.assertIn("m7gd.2xlarge", larger)
        self.assertEqual(guard.broken_rules(larger, whole=True), {})

    def test_every_reason_has_a_fix(self):
        section = guard_rules.FILE.read_text().partition(guard.COMPARISON)[2]

        reasons = [line.strip() for line in section.splitlines() if line.lstrip().startswith("<<")]
        self.assertGreater(len(reasons), 100)
        for reason in reasons:
            self.assertRegex(reason, r"\A<<[A-Z`][^\n]*\. Fix: [^\n]+\.>>\Z")

    def test_take_overs_that_no_other_rule_knows_are_found(self):
        taken = {name: with_resources(resources) for name, resources in TAKE_OVERS.items()}

        found = _found(taken, lambda place: guard.broken_rules_of_files(place, whole=True))

        self.assertEqual(found, {name: {"as_rendered"} for name in TAKE_OVERS})

    def test_small_changes_are_found(self):
        changed = {}
        for name, change in SMALL.items():
            template = templates.install_with_inputs()
            change(template)
            changed[name] = json.dumps(template)

        # Without the nine rules, which these changes are not about.
        found = _found(changed, guard.differences_of_files)

        missed = [name for name, rules in found.items() if "as_rendered" not in rules]

        self.assertEqual(missed, [])

    def test_a_list_in_a_list_to_which_an_app_adds_is_found(self):
        template = templates.install_with_inputs()
        [takes] = [one for one in _runners(template) if one["Sid"] == "TakeModeRoles"]
        lists = {
            "/Metadata/AWS::CloudFormation::Interface/ParameterGroups/0/Parameters": _groups(template)[0]["Parameters"],
            f"/Resources/RunnerRole/Properties/Policies/0/PolicyDocument/Statement/{_runners(template).index(takes)}"
            "/Resource": takes["Resource"],
            "/Resources/Limits/Properties/PolicyDocument/Statement": _statements(template, "Limits"),
            **{
                f"/Resources/{name}/Properties/Roles": properties(template, name)["Roles"]
                for name in ("Limits", "Base")
            },
            **{
                f"/Resources/{name}/Properties/ManagedPolicyArns": properties(template, name)["ManagedPolicyArns"]
                for name in ("ProvisionRole", "CustomSupportRole", "BreakGlassRole")
            },
        }
        for at, items in enumerate(lists.values()):
            items.append([items[-1]] if at % 2 else [])

        found = guard.broken_rules(json.dumps(template), whole=True)["as_rendered"]

        nested = {path for path, reason in found if reason.startswith("A list has a list in it")}
        self.assertEqual(nested, {f"{path}/{len(items) - 1}" for path, items in lists.items()})

    def test_policies_that_nobody_can_read_or_that_cloudformation_changes_are_found(self):
        for role in policy_forms.ROLES:
            template, places = policy_forms.hostile_together(templates.install_with_inputs(), role)

            found = guard.broken_rules(json.dumps(template), whole=True)["as_rendered"]

            self.assertEqual(policy_forms.without_finding(places, found), [], role)
            self.assertGreater(len(places), 50)

    def test_policies_as_an_app_may_write_them_keep_every_rule(self):
        harmless = policy_forms.harmless(templates.install_with_inputs())

        self.assertEqual(guard.broken_rules(json.dumps(harmless), whole=True), {})


def _found(texts, broken_of_files):
    """Returns the broken rules of each text; one run of the engine reads them all."""
    with tempfile.TemporaryDirectory() as place:
        for at, text in enumerate(texts.values()):
            (Path(place) / f"{at}.yaml").write_text(text)
        broken = broken_of_files(place)
    return {name: set(broken[f"{at}.yaml"]) for at, name in enumerate(texts)}
