"""The contract of CloudFormation: what a template makes, and where that differs from AWS. Run by `cloud test`."""

import json
import unittest
from datetime import UTC, datetime, timedelta

from botocore.exceptions import ClientError

from contract_cloud import REGION, Contract, Principal, allow, needs, until

# A date without quotes is a string, and so is the text of a literal block.
SHORT_FORMS = """
AWSTemplateFormatVersion: 2010-09-09
Parameters:
  Answer: {Type: String, Default: "yes"}
Mappings:
  Table: {row: {column: found}}
Conditions:
  Agreed: !And [!Equals [!Ref Answer, "yes"], !Not [!Equals [!Ref Answer, "no"]]]
Resources:
  Queue:
    Type: AWS::SQS::Queue
    Properties: {QueueName: !Sub "${AWS::Region}-b"}
Outputs:
  Join: {Value: !Join ["-", [!Ref AWS::Region, 2010-09-09, !If [Agreed, !Ref Answer, !Ref AWS::NoValue]]]}
  Attribute: {Value: !GetAtt Queue.Arn}
  Pick:
    Value: !Select [1, !Split [",", "a,b"]]
  Found: {Condition: Agreed, Value: !FindInMap [Table, row, column]}
"""


@needs("templates")
class Templates(Contract):
    def test_role_of_a_template_has_its_boundary(self):
        limit = {"Version": "2012-10-17", "Statement": [allow("sqs:ListQueues")]}
        trust = {
            "Version": "2012-10-17",
            "Statement": [{"Effect": "Allow", "Principal": {"AWS": self.account.id}, "Action": "sts:AssumeRole"}],
        }
        wide = {"PolicyName": "wide", "PolicyDocument": {"Version": "2012-10-17", "Statement": [allow("*")]}}
        self.account.stack(
            "bounded",
            Limit={"Type": "AWS::IAM::ManagedPolicy", "Properties": {"PolicyDocument": limit}},
            Role={
                "Type": "AWS::IAM::Role",
                "Properties": {
                    "RoleName": "bounded",
                    "AssumeRolePolicyDocument": trust,
                    "Policies": [wide],
                    "PermissionsBoundary": {"Ref": "Limit"},
                },
            },
        )
        session = self.account.client("sts").assume_role(
            RoleArn=f"arn:aws:iam::{self.account.id}:role/bounded", RoleSessionName="contract"
        )["Credentials"]
        role = Principal(
            self.account.instance,
            self.account.id,
            session["AccessKeyId"],
            session["SecretAccessKey"],
            session["SessionToken"],
        )

        role.client("sqs").list_queues()

        self.refused("AccessDenied", role.client("sqs").create_queue, QueueName="more")

    def test_short_forms_of_a_template_in_yaml_are_what_their_long_forms_are(self):
        cloudformation = self.account.client("cloudformation")
        cloudformation.create_stack(StackName="short", TemplateBody=SHORT_FORMS)

        stack = until(lambda: self.settled("short"), "the stack settles")

        outputs = {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
        expected = {
            "Join": f"{REGION}-2010-09-09-yes",
            "Attribute": f"arn:aws:sqs:{REGION}:{self.account.id}:{REGION}-b",
            "Pick": "b",
            "Found": "found",
        }
        self.assertEqual(expected, outputs)

    def settled(self, name):
        [stack] = self.account.client("cloudformation").describe_stacks(StackName=name)["Stacks"]
        return not stack["StackStatus"].endswith("IN_PROGRESS") and stack

    def test_bucket_of_a_template_keeps_locked_objects_and_its_policy_holds_for_everybody(self):
        bucket, until = f"locked-{self.account.id}", datetime.now(UTC) + timedelta(days=1)
        new = {
            "Effect": "Deny",
            "Principal": "*",
            "Action": "s3:PutObject",
            "Resource": f"arn:aws:s3:::{bucket}/once/*",
            "Condition": {"Null": {"s3:if-none-match": "true"}},
        }
        self.account.stack(
            "locked",
            Bucket={
                "Type": "AWS::S3::Bucket",
                "Properties": {
                    "BucketName": bucket,
                    "ObjectLockEnabled": True,
                    "VersioningConfiguration": {"Status": "Enabled"},
                },
            },
            Rules={
                "Type": "AWS::S3::BucketPolicy",
                "Properties": {
                    "Bucket": {"Ref": "Bucket"},
                    "PolicyDocument": {"Version": "2012-10-17", "Statement": [new]},
                },
            },
        )
        s3 = self.account.role("admin", allow("*")).client("s3")
        put = {"Bucket": bucket, "Key": "once/1", "Body": b"a", "IfNoneMatch": "*"}

        made = s3.put_object(**put, ObjectLockMode="COMPLIANCE", ObjectLockRetainUntilDate=until)
        s3.put_object(Bucket=bucket, Key="often/1", Body=b"a")

        self.refused("AccessDenied", s3.put_object, Bucket=bucket, Key="once/2", Body=b"b")
        self.refused("PreconditionFailed", s3.put_object, **put)
        self.refused("AccessDenied", s3.delete_object, Bucket=bucket, Key="once/1", VersionId=made["VersionId"])
        s3.delete_object(Bucket=bucket, Key="once/1")
        self.assertEqual(s3.get_object(Bucket=bucket, Key="once/1", VersionId=made["VersionId"])["Body"].read(), b"a")

    def test_change_of_an_output_alone_is_stored_and_no_change_at_all_is_refused(self):
        cloudformation = self.account.client("cloudformation")
        template = {
            "Parameters": {"Shown": {"Type": "String", "Default": "a"}, "Other": {"Type": "String", "Default": "a"}},
            "Resources": {"Queue": {"Type": "AWS::SQS::Queue"}},
            "Outputs": {"Shown": {"Value": {"Fn::Sub": "it is ${Shown}"}}},
        }
        cloudformation.create_stack(StackName="outputs", TemplateBody=json.dumps(template))
        cloudformation.get_waiter("stack_create_complete").wait(StackName="outputs")

        def change(number, **parameters):
            cloudformation.create_change_set(
                StackName="outputs",
                ChangeSetName=f"change-{number}",
                UsePreviousTemplate=True,
                Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()],
            )
            return cloudformation.describe_change_set(StackName="outputs", ChangeSetName=f"change-{number}")

        nothing = change(1, Shown="a", Other="b")
        output = change(2, Shown="b", Other="a")
        cloudformation.execute_change_set(StackName="outputs", ChangeSetName="change-2")
        cloudformation.get_waiter("stack_update_complete").wait(StackName="outputs")

        [stack] = cloudformation.describe_stacks(StackName="outputs")["Stacks"]
        self.assertEqual(("FAILED", "CREATE_COMPLETE"), (nothing["Status"], output["Status"]))
        self.assertEqual("it is b", stack["Outputs"][0]["OutputValue"])
        self.assertIn({"ParameterKey": "Shown", "ParameterValue": "b"}, stack["Parameters"])

    def test_write_that_locks_its_object_needs_the_permission_to_do_so(self):
        bucket, until = f"locks-{self.account.id}", datetime.now(UTC) + timedelta(days=1)
        self.account.client("s3").create_bucket(
            Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION}, ObjectLockEnabledForBucket=True
        )
        put = {"Bucket": bucket, "Key": "a", "Body": b"a"}
        locked = {**put, "ObjectLockMode": "COMPLIANCE", "ObjectLockRetainUntilDate": until}
        writer = self.account.role("writer", allow("s3:PutObject")).client("s3")
        locker = self.account.role("locker", allow("s3:PutObject", "s3:PutObjectRetention")).client("s3")

        writer.put_object(**put)
        locker.put_object(**locked)

        self.refused("AccessDenied", writer.put_object, **locked)

    def test_nat_gateway_of_a_template_is_made_with_its_address_and_goes_with_the_stack(self):
        ec2 = self.account.client("ec2")
        self.account.stack(
            "network",
            Vpc={"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.9.0.0/16"}},
            Subnet={
                "Type": "AWS::EC2::Subnet",
                "Properties": {
                    "VpcId": {"Ref": "Vpc"},
                    "CidrBlock": {"Fn::Select": [2, {"Fn::Cidr": ["10.9.0.0/16", 7, 13]}]},
                    "AvailabilityZone": {"Fn::Select": [2, {"Fn::GetAZs": ""}]},
                },
            },
            Address={"Type": "AWS::EC2::EIP", "Properties": {"Domain": "vpc"}},
            Nat={
                "Type": "AWS::EC2::NatGateway",
                "Properties": {
                    "SubnetId": {"Ref": "Subnet"},
                    "AllocationId": {"Fn::GetAtt": ["Address", "AllocationId"]},
                    "Tags": [{"Key": "of", "Value": "contract"}],
                },
            },
        )

        [address] = ec2.describe_addresses()["Addresses"]
        [nat] = ec2.describe_nat_gateways()["NatGateways"]
        [subnet] = ec2.describe_subnets(SubnetIds=[nat["SubnetId"]])["Subnets"]
        self.assertEqual("10.9.64.0/19", subnet["CidrBlock"])
        self.assertEqual([{"Key": "of", "Value": "contract"}], nat["Tags"])
        self.assertTrue(address["AllocationId"].startswith("eipalloc-"))

        self.account.client("cloudformation").delete_stack(StackName="network")

        def gone():
            return not ec2.describe_addresses()["Addresses"] and not ec2.describe_nat_gateways()["NatGateways"]

        until(gone, "the address and the gateway are gone")

    def test_deviation_ttl_pitr_and_reserved_concurrency_are_ignored(self):
        key = [{"AttributeName": "pk", "KeyType": "HASH"}]
        self.account.client("s3").create_bucket(
            Bucket=f"b-{self.account.id}", CreateBucketConfiguration={"LocationConstraint": REGION}
        )
        stack = self.account.stack(
            "s",
            T={
                "Type": "AWS::DynamoDB::Table",
                "Properties": {
                    "TableName": "things",
                    "BillingMode": "PAY_PER_REQUEST",
                    "KeySchema": key,
                    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
                    "TimeToLiveSpecification": {"AttributeName": "ttl", "Enabled": True},
                    "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
                },
            },
            F={
                "Type": "AWS::Lambda::Function",
                "Properties": {
                    "FunctionName": "f",
                    "Runtime": "provided.al2023",
                    "Handler": "bootstrap",
                    "ReservedConcurrentExecutions": 5,
                    "Role": self.account.role_arn("r"),
                    "Code": {"S3Bucket": f"b-{self.account.id}", "S3Key": "absent.zip"},
                },
            },
        )

        dynamodb = self.account.client("dynamodb")
        ttl = dynamodb.describe_time_to_live(TableName="things")["TimeToLiveDescription"]["TimeToLiveStatus"]
        backups = dynamodb.describe_continuous_backups(TableName="things")["ContinuousBackupsDescription"]
        pitr = backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"]
        reserved = self.account.client("lambda").get_function_concurrency(FunctionName="f")

        self.assertEqual("CREATE_COMPLETE", stack["StackStatus"])
        self.assertEqual(("DISABLED", "DISABLED"), (ttl, pitr))
        self.assertNotIn("ReservedConcurrentExecutions", reserved)

    def test_ttl_and_pitr_can_be_set_through_the_api(self):
        table, dynamodb = self.account.table(), self.account.client("dynamodb")
        dynamodb.update_time_to_live(TableName=table, TimeToLiveSpecification={"AttributeName": "ttl", "Enabled": True})
        dynamodb.update_continuous_backups(
            TableName=table, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
        )

        ttl = dynamodb.describe_time_to_live(TableName=table)["TimeToLiveDescription"]["TimeToLiveStatus"]
        backups = dynamodb.describe_continuous_backups(TableName=table)["ContinuousBackupsDescription"]

        self.assertIn(ttl, ("ENABLED", "ENABLING"))
        self.assertEqual("ENABLED", backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"])

    def test_deviation_unsupported_types_are_refused_by_name(self):
        for kind in "AWS::IAM::OIDCProvider", "AWS::StepFunctions::StateMachineAlias":
            with (
                self.subTest(kind),
                self.assertRaisesRegex((ClientError, AssertionError), f"Unrecognized resource types.*{kind}"),
            ):
                stack = self.account.stack("s", X={"Type": kind, "Properties": {}})
                self.fail(stack.get("StackStatusReason", stack["StackStatus"]))

    def test_stack_keeps_a_saved_query(self):
        query = {"Name": "of/contract", "QueryString": "fields @message"}
        self.account.stack("queries", Query={"Type": "AWS::Logs::QueryDefinition", "Properties": query})

        cloudformation = self.account.client("cloudformation")
        [resource] = cloudformation.describe_stack_resources(StackName="queries")["StackResources"]

        self.assertEqual("CREATE_COMPLETE", resource["ResourceStatus"])
        self.assertRegex(resource["PhysicalResourceId"], "^[0-9a-f-]{36}$")

    def test_deviation_saved_query_exists_in_name_only(self):
        query = {"Name": "of/contract", "QueryString": "fields @message"}
        self.account.stack("queries", Query={"Type": "AWS::Logs::QueryDefinition", "Properties": query})

        with self.assertRaises(ClientError):
            self.account.client("logs").describe_query_definitions()

    def test_deviation_scaling_group_has_machines_in_name_only(self):
        self.account.stack(
            "group",
            Machine={
                "Type": "AWS::EC2::LaunchTemplate",
                "Properties": {"LaunchTemplateData": {"ImageId": "ami-1", "InstanceType": "t4g.small"}},
            },
            Group={
                "Type": "AWS::AutoScaling::AutoScalingGroup",
                "Properties": {
                    "AutoScalingGroupName": "builders",
                    "MinSize": "0",
                    "MaxSize": "1",
                    "VPCZoneIdentifier": ["subnet-1"],
                    "NewInstancesProtectedFromScaleIn": True,
                    "LaunchTemplate": {
                        "LaunchTemplateId": {"Ref": "Machine"},
                        "Version": {"Fn::GetAtt": ["Machine", "LatestVersionNumber"]},
                    },
                },
            },
        )
        scaling, ec2 = self.account.client("autoscaling"), self.account.client("ec2")

        def wanted_and_there():
            [group] = scaling.describe_auto_scaling_groups(AutoScalingGroupNames=["builders"])["AutoScalingGroups"]
            return group["DesiredCapacity"], len(group["Instances"])

        before = wanted_and_there()
        scaling.set_desired_capacity(AutoScalingGroupName="builders", DesiredCapacity=1)
        one = wanted_and_there()
        # On AWS a machine starts, and one that is protected stays when the capacity is lowered.
        self.assertEqual([], ec2.describe_instances()["Reservations"])
        scaling.set_desired_capacity(AutoScalingGroupName="builders", DesiredCapacity=0)

        self.assertEqual(((0, 0), (1, 1), (0, 0)), (before, one, wanted_and_there()))

    def test_tagged_resources_are_found_by_tag(self):
        tag = [{"Key": "freehold:install", "Value": "ins_1"}]
        self.account.client("sqs").create_queue(QueueName="q", tags={"freehold:install": "ins_1"})
        self.account.client("ecr").create_repository(repositoryName="repo", tags=tag)
        self.account.client("kms").create_key(Tags=[{"TagKey": tag[0]["Key"], "TagValue": tag[0]["Value"]}])
        self.account.client("iam").create_role(RoleName="r", AssumeRolePolicyDocument="{}", Tags=tag)
        self.account.client("secretsmanager").create_secret(Name="s", SecretString="x", Tags=tag)
        self.account.client("dynamodb").create_table(
            TableName="things",
            BillingMode="PAY_PER_REQUEST",
            Tags=tag,
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        )

        found = self.account.client("resourcegroupstaggingapi").get_resources(
            TagFilters=[{"Key": "freehold:install", "Values": ["ins_1"]}]
        )["ResourceTagMappingList"]

        services = {resource["ResourceARN"].split(":")[2] for resource in found}
        # Deviation: AWS finds secrets too. Neither of the two finds IAM roles.
        self.assertEqual({"sqs", "ecr", "kms", "dynamodb"}, services)


if __name__ == "__main__":
    unittest.main()
