"""Guard rules for the install stack: the engine finds nothing in ours, and finds every change for the worse."""

import json

import guard
import templates
from guard_case import MACHINES, PARAMETERS, GuardCase, with_resources
from templates import ACCOUNT, properties

RULES = {
    "no_code",
    "no_outside_principal",
    "no_wildcard_assume_role",
    "boundary",
    "no_ingress",
    "instance_metadata",
    "encryption",
    "no_public_access",
    "switch_defaults",
}
ROOT = {"Fn::Sub": "arn:${AWS::Partition}:iam::${AWS::AccountId}:root"}


class Guard(GuardCase):
    def test_there_are_nine_rules_each_with_reasons_and_fixes(self):
        text = guard.RULES.read_text().partition(guard.COMPARISON)[0]

        for rule in RULES:
            self.assertIn(f"# ---- {rule.replace('_', '-')}: ", text)
        self.assertEqual(text.count("<<"), text.count(" Fix: "))

    def test_our_templates_keep_every_rule(self):
        self.assertEqual(guard.broken_rules(templates.install_text()), {})
        self.assertEqual(guard.broken_rules(templates.install_with_inputs_text()), {})
        self.assertEqual(guard.broken_rules(templates.install_with_network_text()), {})

    def test_short_and_long_forms_are_the_same(self):
        self.assertEqual(guard.broken_rules(json.dumps(templates.install())), {})
        self.assertEqual(guard.broken_rules(json.dumps(templates.install_with_inputs())), {})

    def test_machines_networks_and_more_modes_keep_every_rule(self):
        text = with_resources(MACHINES, PARAMETERS)

        self.assertEqual(guard.broken_rules(text), {})
        self.assertEqual(guard.broken_rules(json.dumps(templates.parse(text))), {})

    def test_code_is_found(self):
        for type_ in (
            "AWS::CloudFormation::Stack",
            "AWS::CloudFormation::CustomResource",
            "AWS::CloudFormation::Macro",
            "AWS::Lambda::Function",
            "AWS::Serverless::Function",
            "Custom::Anything",
        ):
            with self.subTest(type_):
                self.finds("no_code", "More", with_resources(f"  More: {{Type: '{type_}'}}"))
        include = {"Fn::Transform": {"Name": "AWS::Include", "Parameters": {"Location": "s3://b/more.yaml"}}}
        for change in (
            lambda t: t.update(Transform="AWS::Serverless-2016-10-31"),
            lambda t: t["Resources"].update(include),
            lambda t: t["Resources"]["Key"].update(include),
            lambda t: properties(t, "Key").update(include),
            lambda t: t.update(include),
            lambda t: t["Outputs"].update(include),
            lambda t: t["Mappings"]["BoundTo"].update(include),
            lambda t: properties(t, "Key")["KeyPolicy"].update(include),
            lambda t: properties(t, "Key").update(KeyPolicy=include),
            lambda t: properties(t, "Key")["KeyPolicy"]["Statement"][0].update(include),
            lambda t: properties(t, "Machine")["LaunchTemplateData"]["BlockDeviceMappings"][0]["Ebs"].update(include),
        ):
            template = templates.install()
            change(template)
            self.assertIn("no_code", guard.broken_rules(json.dumps(template)))

    def test_a_principal_from_outside_is_found_wherever_it_stands(self):
        strangers = [
            {"AWS": "*"},
            "*",
            {"AWS": "arn:aws:iam::999999999999:root"},
            {"AWS": "999999999999"},
            {"AWS": [ROOT, "*"]},
            {"AWS": {"Fn::Sub": "arn:aws:iam::${Other}:root"}},
            {"CanonicalUser": "79a5"},
            {"AWS": {"Fn::If": ["DeprovisionEnabled", ROOT, "*"]}},
            {"Federated": "accounts.google.com"},
            {"Service": "ec2.example.com"},
            {"Service": {"Fn::Sub": "*"}},
        ]

        def trust(template, name):
            return properties(template, name)["AssumeRolePolicyDocument"]["Statement"][0]

        for who in strangers:
            with self.subTest(who):
                self.worse(
                    "no_outside_principal",
                    "Key",
                    lambda t: properties(t, "Key")["KeyPolicy"]["Statement"][0].update(Principal=who),
                )
                self.worse(
                    "no_outside_principal", "ProvisionRole", lambda t: trust(t, "ProvisionRole").update(Principal=who)
                )
                for side in (1, 2):
                    self.worse(
                        "no_outside_principal",
                        "RunnerRole",
                        lambda t: trust(t, "RunnerRole")["Fn::If"][side].update(Principal=who),
                    )

    def test_own_principals_are_not_found(self):
        template = templates.install()
        trust = properties(template, "RunnerRole")["AssumeRolePolicyDocument"]["Statement"]
        own = [
            {"AWS": ROOT},
            {"AWS": {"Fn::Sub": "arn:aws-cn:iam::${AWS::AccountId}:role/x"}},
            {"AWS": {"Ref": "AWS::AccountId"}},
            {"AWS": {"Fn::GetAtt": ["ProvisionRole", "Arn"]}},
            {"Service": ["ec2.amazonaws.com", "ec2.amazonaws.com.cn"]},
            {"Federated": {"Fn::Sub": "arn:aws:iam::${AWS::AccountId}:oidc-provider/x"}},
        ]
        trust += [{"Effect": "Allow", "Principal": who, "Action": "sts:AssumeRole"} for who in own]
        trust.append(
            {
                "Effect": "Deny",
                "Principal": "*",
                "Action": "sts:AssumeRole",
                "Condition": {"Bool": {"aws:SecureTransport": "false"}},
            }
        )

        self.assertEqual(guard.broken_rules(json.dumps(template)), {})

    def test_a_stranger_that_a_condition_lets_in_is_found(self):
        open_ = "{Effect: Allow, Principal: '*', Action: 's3:*', Resource: '*'}"
        for statement in (
            open_,
            f"[{open_}]",
            f"!If [DeprovisionEnabled, {open_}, !Ref AWS::NoValue]",
            f"[!If [DeprovisionEnabled, {open_}, !Ref AWS::NoValue]]",
            f"!If [DeprovisionEnabled, [{open_}], []]",
            f"[!If [DeprovisionEnabled, !If [DeprovisionEnabled, {open_}, {open_}], !Ref AWS::NoValue]]",
            "{Effect: !Ref RouteTableIds, Principal: '*'}",
            "{Effect: !If [RunnerEnabled, Deny, Allow], Principal: '*'}",
            "{Effect: !If [RunnerEnabled, !Ref RouteTableIds, Deny], Principal: {AWS: x}}",
            "!If [RunnerEnabled, {Effect: !If [Private, Deny, Allow], Principal: '*'}, !Ref AWS::NoValue]",
            "{NotPrincipal: {AWS: x}, Effect: Allow}",
        ):
            with self.subTest(statement):
                self.finds(
                    "no_outside_principal",
                    "Open",
                    with_resources(
                        "  Open: {Type: AWS::S3::BucketPolicy, "
                        f"Properties: {{PolicyDocument: {{Statement: {statement}}}}}}}"
                    ),
                )

    def test_a_policy_that_cannot_be_read_is_found(self):
        text = json.dumps({"Statement": [{"Effect": "Allow", "Principal": "*", "Action": "kms:*", "Resource": "*"}]})
        for policy in (text, {"Fn::Sub": text}, {"Fn::If": ["DeprovisionEnabled", json.loads(text), json.loads(text)]}):
            with self.subTest(policy):
                self.worse("no_outside_principal", "Key", lambda t: properties(t, "Key").update(KeyPolicy=policy))
                self.worse(
                    "no_wildcard_assume_role",
                    "RunnerRole",
                    lambda t: properties(t, "RunnerRole")["Policies"].append(
                        {"PolicyName": "x", "PolicyDocument": policy}
                    ),
                )

    def test_a_stranger_in_any_kind_of_policy_is_found(self):
        everybody = "{Statement: [{Effect: Allow, Principal: '*', Action: '*', Resource: '*'}]}"
        for type_, key in {
            "AWS::SQS::QueuePolicy": "PolicyDocument",
            "AWS::SNS::TopicPolicy": "PolicyDocument",
            "AWS::ECR::Repository": "RepositoryPolicyText",
            "AWS::SecretsManager::ResourcePolicy": "ResourcePolicy",
            "AWS::KMS::Key": "KeyPolicy",
        }.items():
            with self.subTest(type_):
                self.finds(
                    "no_outside_principal",
                    "Open",
                    with_resources(f"  Open: {{Type: {type_}, Properties: {{{key}: {everybody}}}}}"),
                )

    def test_a_parameter_that_takes_strangers_and_a_user_are_found(self):
        for pattern in (
            None,
            "^arn:aws:iam::[0-9]{12}:root$",
            "^(arn:aws:iam::999999999999:root)?$",
            f"arn:aws:iam::{ACCOUNT}:root",
            f"^(arn:aws:iam::{ACCOUNT}:root|arn:aws:iam::999999999999:root)$",
            f"^(.*|arn:aws:iam::{ACCOUNT}:root)$",
            f"^(arn:aws:iam::{ACCOUNT}:root|.*)$",
            f"^arn:aws:iam::{ACCOUNT}:root|.*$",
            f"^(arn:aws:iam::{ACCOUNT}:(root))|.*$",
        ):
            for parameter, rule in (
                ("RunnerPrincipal", "no_outside_principal"),
                ("PermissionsBoundaryArn", "boundary"),
            ):
                template = templates.install()
                template["Parameters"][parameter]["AllowedPattern"] = pattern
                with self.subTest(pattern, parameter=parameter):
                    self.assertEqual(self.found(template)[0], rule)
        self.worse(
            "no_outside_principal",
            "RouteTableIds",
            lambda t: properties(t, "Key")["KeyPolicy"]["Statement"][0].update(
                Principal={"AWS": {"Ref": "RouteTableIds"}}
            ),
        )
        for type_ in ("AWS::IAM::User", "AWS::IAM::AccessKey"):
            self.finds("no_outside_principal", "Somebody", with_resources(f"  Somebody: {{Type: {type_}}}"))

    def test_what_listens_is_found(self):
        self.finds(
            "no_ingress",
            "Door",
            with_resources(
                "  Door: {Type: AWS::EC2::SecurityGroup, Properties: {SecurityGroupIngress: [{CidrIp: 0.0.0.0/0}]}}"
            ),
        )
        self.finds(
            "no_ingress",
            "Outwards",
            with_resources(MACHINES.replace("SecurityGroupEgress", "SecurityGroupIngress"), PARAMETERS),
        )
        self.finds("no_ingress", "Hole", with_resources("  Hole: {Type: AWS::EC2::SecurityGroupIngress}"))

    def test_an_endpoint_that_lets_in_more_than_the_runner_is_found(self):
        runner = {"Ref": "SecurityGroup"}

        def only(**rule):
            return lambda t: properties(t, "EndpointSecurityGroup").update(SecurityGroupIngress=[rule])

        tcp = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443}
        for rule in (
            {**tcp, "CidrIp": "10.0.0.0/8"},
            {**tcp, "CidrIp": "10.0.0.0/8", "SourceSecurityGroupId": runner},
            tcp,
            {**tcp, "SourceSecurityGroupId": {"Ref": "VpcId"}},
            {**tcp, "SourceSecurityGroupId": "sg-1"},
            # No template that CloudFormation accepts, so the engine must not end with an error of its own.
            {**tcp, "SourceSecurityGroupId": {"Ref": {"Ref": "VpcId"}}},
            {**tcp, "SourceSecurityGroupId": runner, "ToPort": 444},
            {**tcp, "SourceSecurityGroupId": runner, "FromPort": 442},
            {**tcp, "SourceSecurityGroupId": runner, "IpProtocol": "-1"},
            {**tcp, "SourceSecurityGroupId": {"Ref": "Vpc"}},
            {**tcp, "SourceSecurityGroupId": {"Ref": "EndpointSecurityGroup"}},
        ):
            with self.subTest(rule):
                self.worse("no_ingress", "EndpointSecurityGroup", only(**rule))

    def test_a_group_that_lets_in_is_given_to_endpoints_only(self):
        group = {"Ref": "EndpointSecurityGroup"}

        def machine(template):
            return properties(template, "Machine")["LaunchTemplateData"]

        for change in (
            lambda t: machine(t)["NetworkInterfaces"][0].update(Groups=[group]),
            lambda t: machine(t)["NetworkInterfaces"][0].update(
                Groups=[{"Fn::If": ["Private", {"Ref": "SecurityGroup"}, group]}]
            ),
            lambda t: machine(t)["NetworkInterfaces"][0].update(
                Groups=[{"Fn::GetAtt": ["EndpointSecurityGroup", "GroupId"]}]
            ),
            lambda t: machine(t)["NetworkInterfaces"][0].update(Groups=[group, {"Ref": {"Ref": "VpcId"}}]),
            lambda t: machine(t).update(SecurityGroupIds=[group]),
            lambda t: machine(t).update(SecurityGroupIds=group),
        ):
            self.worse("no_ingress", "EndpointSecurityGroup", change)

    def test_an_instance_whose_metadata_others_can_ask_is_found(self):
        good = "{HttpTokens: required, HttpPutResponseHopLimit: 1}"
        machines = with_resources(MACHINES, PARAMETERS)
        self.assertIn(good, machines)

        for bad in (
            "{HttpTokens: optional, HttpPutResponseHopLimit: 1}",
            "{HttpTokens: required, HttpPutResponseHopLimit: 2}",
            "{HttpTokens: required}",
            "{HttpPutResponseHopLimit: 1}",
            "{}",
        ):
            with self.subTest(bad):
                self.finds("instance_metadata", "Box", machines.replace(good, bad))
        self.finds("instance_metadata", "Box", machines.replace(f"        MetadataOptions: {good}\n", ""))
        self.finds(
            "instance_metadata",
            "Box",
            with_resources("  Box: {Type: AWS::EC2::Instance, Properties: {ImageId: ami-1}}"),
        )

    def test_what_is_not_encrypted_is_found(self):
        self.worse("encryption", "Bucket", lambda t: properties(t, "Bucket").pop("BucketEncryption"))
        for resource in (
            "{Type: AWS::SNS::Topic, Properties: {}}",
            "{Type: AWS::EC2::Volume, Properties: {Encrypted: false}}",
            "{Type: AWS::SQS::Queue, Properties: {SqsManagedSseEnabled: false}}",
            "{Type: AWS::SecretsManager::Secret}",
        ):
            with self.subTest(resource):
                self.finds("encryption", "Plain", with_resources(f"  Plain: {resource}"))
        disk = "Ebs: {VolumeSize: 30, Encrypted: true}"
        for worse in ("Ebs: {VolumeSize: 30, Encrypted: false}", "Ebs: {VolumeSize: 30}"):
            self.finds("encryption", "Box", with_resources(MACHINES.replace(disk, worse), PARAMETERS))
        self.worse(
            "encryption",
            "Machine",
            lambda t: properties(t, "Machine")["LaunchTemplateData"]["BlockDeviceMappings"][0]["Ebs"].pop("Encrypted"),
        )

    def test_a_bucket_that_can_be_made_public_is_found(self):
        for key in ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"):
            with self.subTest(key):
                self.worse(
                    "no_public_access",
                    "Bucket",
                    lambda t: properties(t, "Bucket")["PublicAccessBlockConfiguration"].pop(key),
                )
        self.worse(
            "no_public_access", "Bucket", lambda t: properties(t, "Bucket").pop("PublicAccessBlockConfiguration")
        )

    def test_a_dangerous_mode_that_is_on_by_default_is_found(self):
        self.worse(
            "switch_defaults",
            "EnableDeprovision",
            lambda t: t["Parameters"]["EnableDeprovision"].update(Default="true"),
        )
        self.worse(
            "switch_defaults", "EnableDeprovision", lambda t: t["Parameters"]["EnableDeprovision"].pop("Default")
        )
        self.worse(
            "switch_defaults",
            "EnableBreakGlass",
            lambda t: t["Parameters"].update(EnableBreakGlass={"Type": "String", "Default": "true"}),
        )
