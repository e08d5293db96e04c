"""Guard rules for the install stack: the engine finds nothing in ours, and finds every change for the worse."""

import json
import unittest

import guard
import templates
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
ANY_ROLE = {"Fn::Sub": "arn:${AWS::Partition}:iam::${AWS::AccountId}:role/fh-*"}

# Another machine, network and mode in other notations than ours; each keeps every rule.
MACHINES = """
  Network: {Type: AWS::EC2::VPC, Properties: {CidrBlock: 10.0.0.0/24}}
  MoreSubnet: {Type: AWS::EC2::Subnet, Properties: {VpcId: !Ref Network, CidrBlock: 10.0.0.0/25}}
  Outwards:
    Type: AWS::EC2::SecurityGroup
    Properties:
      GroupDescription: The runner asks and is never asked
      VpcId: !Ref Network
      SecurityGroupEgress: [{IpProtocol: tcp, FromPort: 443, ToPort: 443, CidrIp: 0.0.0.0/0, Description: HTTPS}]
  Queues:
    Type: AWS::EC2::VPCEndpoint
    Properties:
      ServiceName: !Sub com.amazonaws.${AWS::Region}.sqs
      VpcId: !Ref Network
      PolicyDocument: {Statement: [{Effect: Allow, Principal: "*", Action: "sqs:*", Resource: "*"}]}
  Box:
    Type: AWS::EC2::LaunchTemplate
    Properties:
      LaunchTemplateData:
        IamInstanceProfile: {Arn: !GetAtt RunnerProfile.Arn}
        MetadataOptions: {HttpTokens: required, HttpPutResponseHopLimit: 1}
        BlockDeviceMappings: [{DeviceName: /dev/xvda, Ebs: {VolumeSize: 30, Encrypted: true}}]
  Machines:
    Type: AWS::AutoScaling::AutoScalingGroup
    Properties:
      MinSize: "1"
      MaxSize: "1"
      VPCZoneIdentifier: [!Ref MoreSubnet]
      LaunchTemplate: {LaunchTemplateId: !Ref Box, Version: !GetAtt Box.LatestVersionNumber}
  BreakGlassRole:
    Type: AWS::IAM::Role
    Properties:
      PermissionsBoundary: !Ref Boundary
      AssumeRolePolicyDocument:
        Statement:
          - Effect: Allow
            Principal: {AWS: !Sub "arn:${AWS::Partition}:iam::${AWS::AccountId}:root"}
            Action: sts:AssumeRole
            Condition:
              ArnEquals: {aws:PrincipalArn: !GetAtt RunnerRole.Arn}
              DateLessThan: {aws:CurrentTime: !Ref BreakGlassUntil}
      ManagedPolicyArns: !If [DeprovisionEnabled, [arn:aws:iam::aws:policy/AdministratorAccess], []]
      Policies:
        - !If
          - DeprovisionEnabled
          - PolicyName: all
            PolicyDocument: {Statement: [{Effect: Allow, Action: "*", Resource: "*"}]}
          - !Ref AWS::NoValue
        - PolicyName: cut-off
          PolicyDocument:
            Statement: [!If [DeprovisionEnabled, !Ref AWS::NoValue, {Effect: Deny, Action: "*", Resource: "*"}]]
"""
PARAMETERS = """
  EnableBreakGlass: {Type: String, Default: "false"}
  BreakGlassUntil: {Type: String, Default: ""}
"""


def with_resources(text, parameters=""):
    """Returns our template with more resources and parameters, as somebody would write them by hand."""
    template = templates.install_text().replace("\nOutputs:\n", f"\n{text}\n\nOutputs:\n", 1)
    return template.replace("\nParameters:\n", f"\nParameters:{parameters}\n", 1)


def runners(template):
    return properties(template, "RunnerRole")["Policies"][0]["PolicyDocument"]["Statement"]


def base(template):
    return properties(template, "Base")["PolicyDocument"]["Statement"]


class Guard(unittest.TestCase):
    def found(self, template):
        """Returns the only rule that a template breaks, the resources or parameters that break it, and the reasons."""
        broken = guard.broken_rules(template if isinstance(template, str) else json.dumps(template))
        self.assertEqual(len(broken), 1, broken)
        [(rule, reasons)] = broken.items()
        return (
            rule,
            {place.split("/")[2] for place, _ in reasons if place.count("/") > 1},
            {message for _, message in reasons},
        )

    def finds(self, rule, of, template):
        found, places, reasons = self.found(template)
        self.assertEqual((found, places), (rule, {of}))
        for reason in reasons:
            self.assertRegex(reason, r"\A[A-Z][^\n]*\. Fix: [^\n]+\.\Z")

    def worse(self, rule, of, change):
        """Checks that exactly one rule finds a change of our template, in one place."""
        template = templates.install()
        change(template)
        self.finds(rule, of, template)

    def loosened(self, change):
        """Checks that the boundary rule finds a weaker boundary; it may also find the roles under that boundary."""
        template = templates.install()
        change(template)
        rule, places, _ = self.found(template)
        self.assertEqual((rule, "Boundary" in places), ("boundary", True), places)

    def test_there_are_nine_rules_each_with_reasons_and_fixes(self):
        text = guard.RULES.read_text()

        for rule in RULES:
            self.assertIn(f"# ---- {rule.replace('_', '-')}: ", text)
        self.assertEqual(text.count("<<"), text.count(" Fix: "))

    def test_our_templates_keep_every_rule(self):
        self.assertEqual(guard.broken_rules(templates.install_text()), {})
        self.assertEqual(guard.broken_rules(templates.install_with_inputs_text()), {})

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
            "{Effect: !Ref EnrolmentSecret, Principal: '*'}",
            "{Effect: !If [RunnerEnabled, Deny, Allow], Principal: '*'}",
            "{Effect: !If [RunnerEnabled, !Ref EnrolmentSecret, Deny], Principal: {AWS: x}}",
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
            "EnrolmentSecret",
            lambda t: properties(t, "Key")["KeyPolicy"]["Statement"][0].update(
                Principal={"AWS": {"Ref": "EnrolmentSecret"}}
            ),
        )
        for type_ in ("AWS::IAM::User", "AWS::IAM::AccessKey"):
            self.finds("no_outside_principal", "Somebody", with_resources(f"  Somebody: {{Type: {type_}}}"))

    def test_a_wildcard_for_the_roles_that_may_be_taken_is_found(self):
        def takes(action, resource):
            return {"Effect": "Allow", "Action": action, **resource}

        for statement in (
            takes("sts:AssumeRole", {"Resource": ANY_ROLE}),
            takes(["s3:GetObject", "STS:assumerole"], {"Resource": "*"}),
            takes("sts:AssumeRole", {"Resource": ["arn:aws:iam::1:role/a", "arn:aws:iam::1:role/?"]}),
            takes("sts:AssumeRole", {"NotResource": "arn:aws:iam::1:role/a"}),
            takes("sts:AssumeRole", {"Resource": {"Fn::Join": ["", ["*"]]}}),
        ):
            with self.subTest(statement):
                self.worse("no_wildcard_assume_role", "RunnerRole", lambda t: runners(t).append(statement))
                self.worse(
                    "no_wildcard_assume_role",
                    "RunnerRole",
                    lambda t: runners(t).append({"Fn::If": ["DeprovisionEnabled", statement, {"Ref": "AWS::NoValue"}]}),
                )
                self.worse("no_wildcard_assume_role", "Base", lambda t: base(t).append(statement))
        for action in ("*", "sts:*", "s*", "sts:Assume*", "sts:AssumeRol?"):
            with self.subTest(action):
                self.worse(
                    "no_wildcard_assume_role", "Base", lambda t: base(t).append(takes(action, {"Resource": "*"}))
                )

    def test_a_policy_counts_however_it_is_attached(self):
        policy = {
            "Type": "AWS::IAM::ManagedPolicy",
            "Properties": {
                "PolicyDocument": {"Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": "*"}]}
            },
        }

        def listed(arn):
            return lambda t: (
                t["Resources"].update(More=policy) or properties(t, "ProvisionRole")["ManagedPolicyArns"].append(arn)
            )

        def chosen(template):
            template["Resources"]["More"] = policy
            boundary = properties(template, "ProvisionRole")["ManagedPolicyArns"][0]["Fn::If"][1]
            properties(template, "ProvisionRole")["ManagedPolicyArns"] = {
                "Fn::If": ["OwnBoundary", [boundary, more], []]
            }

        more, nothing = {"Ref": "More"}, {"Ref": "AWS::NoValue"}
        for arn in (
            more,
            {"Fn::If": ["DeprovisionEnabled", more, nothing]},
            {"Fn::If": ["OwnBoundary", nothing, more]},
        ):
            with self.subTest(arn):
                self.worse("no_wildcard_assume_role", "More", listed(arn))
        self.worse("no_wildcard_assume_role", "More", chosen)
        for key in ("Roles", "Users", "Groups"):
            attached = {**policy, "Properties": {**policy["Properties"], key: ["x"]}}
            with self.subTest(key):
                self.worse("no_wildcard_assume_role", "More", lambda t: t["Resources"].update(More=attached))
        self.worse(
            "no_wildcard_assume_role",
            "Boundary",
            lambda t: properties(t, "Boundary").update(Roles=[{"Ref": "RunnerRole"}]),
        )

    def test_a_boundary_that_is_attached_while_it_allows_is_found(self):
        nothing, boundary = {"Ref": "AWS::NoValue"}, {"Ref": "Boundary"}
        allow = {"Effect": "Allow", "Action": "*", "Resource": "*"}

        def first(template, value):
            properties(template, "ProvisionRole")["ManagedPolicyArns"][0] = value

        for value in (
            boundary,
            {"Fn::If": ["OwnBoundary", nothing, boundary]},
            {"Fn::If": ["Private", boundary, nothing]},
        ):
            with self.subTest(value):
                self.worse("no_wildcard_assume_role", "Boundary", lambda t: first(t, value))
        for value in (
            allow,
            {"Fn::If": ["Private", allow, nothing]},
            {"Fn::If": ["OwnBoundary", allow, nothing]},
            {"Effect": {"Fn::If": ["OwnBoundary", "Allow", "Deny"]}, "Action": "*", "Resource": "*"},
        ):
            with self.subTest(value):
                self.worse(
                    "no_wildcard_assume_role",
                    "Boundary",
                    lambda t: properties(t, "Boundary")["PolicyDocument"]["Statement"].append(value),
                )

    def test_a_mode_may_say_so_only_while_its_boundary_names_roles(self):
        def everything(template):
            properties(template, "ProvisionRole")["Policies"] = [
                {
                    "PolicyName": "all",
                    "PolicyDocument": {"Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]},
                }
            ]

        def loose(template):
            everything(template)
            denials = properties(template, "Boundary")["PolicyDocument"]["Statement"]
            denials[:] = [s for s in denials if not ("NotResource" in s and "sts:AssumeRole" in s["Action"])]

        def left_to_the_customers(template):
            """Lets a mode do everything, with the customer's own boundary as its only limit when there is one."""
            everything(template)
            properties(template, "ProvisionRole")["ManagedPolicyArns"] = [
                {"Fn::If": ["OwnBoundary", {"Ref": "Limits"}, {"Ref": "AWS::NoValue"}]}
            ]

        template = templates.install()
        everything(template)
        self.assertEqual(guard.broken_rules(json.dumps(template)), {})
        self.worse("no_wildcard_assume_role", "ProvisionRole", loose)
        template = templates.install()
        left_to_the_customers(template)
        broken = guard.broken_rules(json.dumps(template))
        self.assertEqual(set(broken), {"no_wildcard_assume_role", "boundary"})
        self.assertNotIn("/Resources/MaintenanceRole", str(broken))

    def test_a_role_without_its_boundary_is_found(self):
        template = templates.install()
        del properties(template, "ProvisionRole")["PermissionsBoundary"]

        self.assertIn("/Resources/ProvisionRole/", str(guard.broken_rules(json.dumps(template))["boundary"]))
        for fields in (
            {"Action": "s3:*"},
            {"Action": "iam:GetRole"},
            {"Action": ["sqs:SendMessage", "Iam:passrole"]},
            {"NotAction": "iam:*"},
        ):
            statement = {"Effect": "Allow", "Resource": "arn:x", **fields}
            with self.subTest(fields):
                self.worse("boundary", "RunnerRole", lambda t: runners(t).append(statement))
        self.worse(
            "boundary",
            "RunnerRole",
            lambda t: properties(t, "RunnerRole").update(ManagedPolicyArns=["arn:aws:iam::aws:policy/ReadOnlyAccess"]),
        )

    def test_a_boundary_that_cannot_be_read_or_holds_nothing_is_found(self):
        def denial(template, action):
            [found] = [
                s
                for s in properties(template, "Boundary")["PolicyDocument"]["Statement"]
                if s.get("Effect") == "Deny" and action in templates.as_list(s.get("Action"))
            ]
            return found

        def of(boundary):
            return lambda t: properties(t, "MaintenanceRole").update(PermissionsBoundary=boundary)

        self.worse("boundary", "MaintenanceRole", of("arn:aws:iam::aws:policy/ReadOnlyAccess"))
        self.worse(
            "boundary",
            "MaintenanceRole",
            of({"Fn::If": ["DeprovisionEnabled", {"Ref": "Boundary"}, {"Ref": "AWS::NoValue"}]}),
        )
        self.worse("boundary", "Base", of({"Ref": "Base"}))
        own, parameter, nothing = {"Ref": "Boundary"}, {"Ref": "PermissionsBoundaryArn"}, {"Ref": "AWS::NoValue"}
        for value in (
            {"Fn::If": ["OwnBoundary", nothing, own]},
            {"Fn::If": ["OwnBoundary", "arn:aws:iam::aws:policy/X", own]},
            {"Fn::If": ["OwnBoundary", own, "arn:aws:iam::aws:policy/X"]},
            nothing,
        ):
            with self.subTest(value):
                self.worse("boundary", "MaintenanceRole", of(value))
        self.worse("boundary", "EnrolmentSecret", of({"Fn::If": ["OwnBoundary", {"Ref": "EnrolmentSecret"}, own]}))
        self.worse(
            "boundary",
            "ProvisionRole",
            lambda t: properties(t, "ProvisionRole").update(
                ManagedPolicyArns=["arn:aws:iam::aws:policy/ReadOnlyAccess"], PermissionsBoundary=parameter
            ),
        )
        template = templates.install()
        template["Parameters"]["PermissionsBoundaryArn"]["AllowedPattern"] = (
            "^(arn:aws[a-z-]*:iam::999999999999:policy/.+)?$"
        )
        self.assertEqual(self.found(template)[0], "boundary")

        keep = "iam:DeleteRolePermissionsBoundary"
        for change in (
            lambda s: s.update(Action="iam:DeleteUserPermissionsBoundary"),
            lambda s: s.update(Effect="Allow"),
            lambda s: s.update(Resource="arn:aws:iam::1:role/a"),
            lambda s: s.update(Condition={"Bool": {"a": "b"}}),
        ):
            self.loosened(lambda t: change(denial(t, keep)))
        for change in (
            lambda s: s.update(Action="iam:CreateRole"),
            lambda s: s.pop("Condition"),
            lambda s: s.update(Condition={"StringNotEquals": {"aws:RequestedRegion": "x"}}),
            lambda s: s.update(Resource="arn:aws:iam::1:role/a"),
        ):
            self.loosened(lambda t: change(denial(t, "iam:CreateRole")))

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
        self.worse("encryption", "Enrolment", lambda t: properties(t, "Enrolment").pop("KmsKeyId"))
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
