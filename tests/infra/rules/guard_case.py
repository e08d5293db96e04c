"""What the checks of the Guard rules share: changes of the install stack, and how a test looks for the broken rule."""

import json
import unittest

import guard
import templates
from templates import properties

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


class GuardCase(unittest.TestCase):
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
