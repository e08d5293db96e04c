"""A role with the deploy policy alone makes, updates and removes the tenant stack on the local cloud, and nothing else.

AWS checks what CloudFormation's caller may do to each resource of a stack; the local cloud does not. So the role also
makes resources such as the stack has itself. `test_deploy_policy.py` compares the policy with all that AWS requires.
"""

import json
import unittest

from botocore.exceptions import ClientError

import cloud
import templates
from cloud import BUCKET, settled, until
from templates import REGION, TENANT, TENANT_ACCOUNT

OTHER = "umbrella"
# An account of its own, which is empty.
EMPTY = "444444444444"
DEPLOYER = f"freehold-deploy-{TENANT}"
LAMBDA = templates.trust_policy(Service="lambda.amazonaws.com")
ALL = json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]})
KEYS = {
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "BillingMode": "PAY_PER_REQUEST",
}


class DeployersCloud(cloud.Cloud):
    """The local cloud as the deploy role sees it; `root` as the account's administrator does."""

    deployer = None

    def client(self, service, account=TENANT_ACCOUNT, credentials=None):
        return super().client(service, account, credentials or self.deployer)

    def root(self, service, account=TENANT_ACCOUNT):
        return super().client(service, account)

    def make_deployer(self, account):
        """Follows docs/tenant-role.md as an administrator, and assumes the role."""
        iam = self.root("iam", account)
        iam.create_policy(
            PolicyName=f"fh-{TENANT}--boundary", PolicyDocument=json.dumps(templates.tenant_boundary(account=account))
        )
        iam.create_role(
            RoleName=DEPLOYER,
            AssumeRolePolicyDocument=templates.trust_policy(AWS=f"arn:aws:iam::{account}:root"),
        )
        iam.put_role_policy(
            RoleName=DEPLOYER, PolicyName="deploy", PolicyDocument=json.dumps(templates.deploy_policy(account=account))
        )
        return self.assume(DEPLOYER, account)


def boundary(account=TENANT_ACCOUNT):
    return f"arn:aws:iam::{account}:policy/fh-{TENANT}--boundary"


class LiveDeploy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cloud = DeployersCloud()
        cls.addClassCleanup(cls.cloud.stop)
        in_empty = cls.cloud.make_deployer(EMPTY)
        in_tenants = cls.cloud.make_deployer(TENANT_ACCOUNT)
        cls.make_what_is_not_the_tenants()
        cls.cloud.deployer = in_tenants
        cls.empty = staticmethod(lambda service: cls.cloud.client(service, EMPTY, in_empty))
        parameters = {
            "TenantName": TENANT,
            "DeployBucket": BUCKET,
            "Architecture": "x86_64",
            "RolesBoundary": boundary(),
            **cls.cloud.upload(),
        }
        cls.stack, cls.out = cls.cloud.stack(
            f"freehold-{TENANT}",
            parameters,
            TENANT_ACCOUNT,
            TemplateURL=f"https://s3.{REGION}.amazonaws.com/{BUCKET}/templates/tenant.yaml",
        )

    @classmethod
    def make_what_is_not_the_tenants(cls):
        root = cls.cloud.root
        root("dynamodb").create_table(TableName=f"fh-{OTHER}", **KEYS)
        root("sqs").create_queue(QueueName=f"fh-{TENANT}--globex.fifo", Attributes={"FifoQueue": "true"})
        for name in ("admin", f"fh-{OTHER}--api"):
            root("iam").create_role(RoleName=name, AssumeRolePolicyDocument=LAMBDA)
        root("s3").create_bucket(
            Bucket=f"fh-{OTHER}--{TENANT_ACCOUNT}--{REGION}", CreateBucketConfiguration={"LocationConstraint": REGION}
        )
        root("cloudformation").create_stack(
            StackName=f"freehold-{OTHER}",
            TemplateBody=json.dumps(
                {"Resources": {"Topic": {"Type": "AWS::SNS::Topic", "Properties": {"TopicName": "other"}}}}
            ),
        )

    def denied(self, what, call, **parameters):
        with self.subTest(what):
            with self.assertRaises(ClientError) as caught:
                call(**parameters)
            self.assertRegex(caught.exception.response["Error"]["Code"], "AccessDenied|^403$|Forbidden")

    def test_it_makes_updates_and_removes_the_stack(self):
        client, name = self.cloud.client("cloudformation"), f"freehold-{TENANT}"
        keep = [
            {"ParameterKey": p["ParameterKey"], "UsePreviousValue": True}
            for p in self.stack["Parameters"]
            if p["ParameterKey"] != "LogRetentionDays"
        ]

        self.assertEqual(self.stack["StackStatus"], "CREATE_COMPLETE", self.stack.get("StackStatusReason"))
        for role in self.roles():
            self.assertEqual(role["PermissionsBoundary"]["PermissionsBoundaryArn"], boundary(), role["RoleName"])
        client.update_stack(
            StackName=name,
            UsePreviousTemplate=True,
            Capabilities=["CAPABILITY_NAMED_IAM"],
            Parameters=[*keep, {"ParameterKey": "LogRetentionDays", "ParameterValue": "7"}],
        )
        self.assertEqual(until(lambda: settled(client, name), "update")["StackStatus"], "UPDATE_COMPLETE")
        client.delete_stack(StackName=name)
        until(lambda: self.gone(client), "removal")
        self.assertEqual(self.roles(), [])

    def roles(self):
        iam = self.cloud.root("iam")
        names = [
            role["RoleName"] for role in iam.list_roles()["Roles"] if role["RoleName"].startswith(f"fh-{TENANT}--")
        ]
        return [iam.get_role(RoleName=name)["Role"] for name in names]

    def gone(self, client):
        try:
            [stack] = client.describe_stacks(StackName=self.stack["StackId"])["Stacks"]
        except ClientError:
            return True
        return stack["StackStatus"] == "DELETE_COMPLETE"

    def test_it_makes_itself_what_the_stack_has(self):
        role = f"fh-{TENANT}--api"
        tags = [{"Key": "freehold:tenant", "Value": TENANT}]

        self.empty("dynamodb").create_table(TableName=f"fh-{TENANT}", **KEYS)
        self.empty("sqs").create_queue(QueueName=f"fh-{TENANT}--reports")
        self.empty("ecr").create_repository(repositoryName=f"fh-{TENANT}")
        self.empty("logs").create_log_group(logGroupName=f"/aws/lambda/{role}")
        self.empty("sns").create_topic(Name=f"fh-{TENANT}--alarms")
        self.empty("kms").create_key(Tags=[{"TagKey": "freehold:tenant", "TagValue": TENANT}])
        self.empty("iam").create_role(
            RoleName=role, AssumeRolePolicyDocument=LAMBDA, PermissionsBoundary=boundary(EMPTY), Tags=tags
        )

    def test_a_role_that_it_makes_for_itself_stays_under_the_boundary(self):
        iam, role = self.empty("iam"), f"fh-{TENANT}--mine"
        iam.create_role(RoleName=role, AssumeRolePolicyDocument=LAMBDA, PermissionsBoundary=boundary(EMPTY))
        # The local cloud does not know a role's boundary when the role gets a policy.
        self.cloud.root("iam", EMPTY).put_role_policy(RoleName=role, PolicyName="all", PolicyDocument=ALL)
        iam.update_assume_role_policy(
            RoleName=role, PolicyDocument=templates.trust_policy(AWS=f"arn:aws:iam::{EMPTY}:root")
        )

        taken = self.cloud.root("sts", EMPTY).assume_role(
            RoleArn=f"arn:aws:iam::{EMPTY}:role/{role}", RoleSessionName="mine"
        )["Credentials"]

        def mine(service):
            return self.cloud.client(service, EMPTY, taken)

        self.denied("user", mine("iam").create_user, UserName="x")
        self.denied("role", mine("iam").create_role, RoleName="x", AssumeRolePolicyDocument=LAMBDA)
        self.denied("another tenant's table", mine("dynamodb").scan, TableName=f"fh-{OTHER}")
        self.denied(
            "a role of the account",
            mine("sts").assume_role,
            RoleArn=f"arn:aws:iam::{EMPTY}:role/{DEPLOYER}",
            RoleSessionName="mine",
        )

    def test_it_touches_no_other_tenant(self):
        client = self.cloud.client
        dynamodb, s3, cloudformation = client("dynamodb"), client("s3"), client("cloudformation")

        self.denied("table", dynamodb.describe_table, TableName=f"fh-{OTHER}")
        self.denied("table gone", dynamodb.delete_table, TableName=f"fh-{OTHER}")
        self.denied("own rows", dynamodb.get_item, TableName=f"fh-{TENANT}", Key={"pk": {"S": "a"}, "sk": {"S": "b"}})
        self.denied(
            "bucket", s3.put_object, Bucket=f"fh-{OTHER}--{TENANT_ACCOUNT}--{REGION}", Key="functions/x.zip", Body=b"x"
        )
        self.denied("own sources", s3.get_object, Bucket=BUCKET, Key="sources/x.tar.gz")
        self.denied("stack", cloudformation.delete_stack, StackName=f"freehold-{OTHER}")
        self.denied("new stack", cloudformation.create_stack, StackName="other", TemplateBody="{}")

    def test_it_leaves_orders_and_code_alone(self):
        sqs = self.cloud.client("sqs")
        orders = self.cloud.root("sqs").get_queue_url(QueueName=f"fh-{TENANT}--globex.fifo")["QueueUrl"]

        self.denied(
            "send", sqs.send_message, QueueUrl=orders, MessageBody="x", MessageGroupId="g", MessageDeduplicationId="1"
        )
        self.denied("receive", sqs.receive_message, QueueUrl=orders)
        self.denied("policy", sqs.set_queue_attributes, QueueUrl=orders, Attributes={"VisibilityTimeout": "1"})
        self.denied("remove", sqs.delete_queue, QueueUrl=orders)
        self.denied("invoke", self.cloud.client("lambda").invoke, FunctionName=f"fh-{TENANT}--api", Payload="{}")
        self.denied("key without the tag", self.cloud.client("kms").create_key)

    def test_it_cannot_make_itself_mightier(self):
        iam = self.cloud.client("iam")
        own = f"fh-{TENANT}--accept-report"

        self.denied(
            "role outside",
            iam.create_role,
            RoleName="admin2",
            AssumeRolePolicyDocument=LAMBDA,
            PermissionsBoundary=boundary(),
        )
        self.denied(
            "role of another tenant",
            iam.put_role_policy,
            RoleName=f"fh-{OTHER}--api",
            PolicyName="a",
            PolicyDocument=ALL,
        )
        self.denied("the administrator", iam.update_assume_role_policy, RoleName="admin", PolicyDocument=LAMBDA)
        self.denied("itself", iam.put_role_policy, RoleName=DEPLOYER, PolicyName="a", PolicyDocument=ALL)
        self.denied("no boundary", iam.create_role, RoleName=f"fh-{TENANT}--free", AssumeRolePolicyDocument=LAMBDA)
        self.denied(
            "another boundary",
            iam.create_role,
            RoleName=f"fh-{TENANT}--free",
            AssumeRolePolicyDocument=LAMBDA,
            PermissionsBoundary="arn:aws:iam::aws:policy/AdministratorAccess",
        )
        self.denied(
            "boundary exchanged",
            iam.put_role_permissions_boundary,
            RoleName=own,
            PermissionsBoundary="arn:aws:iam::aws:policy/AdministratorAccess",
        )
        self.denied("boundary off", iam.delete_role_permissions_boundary, RoleName=own)
        self.denied(
            "boundary rewritten", iam.create_policy_version, PolicyArn=boundary(), PolicyDocument=ALL, SetAsDefault=True
        )
        self.denied("boundary removed", iam.delete_policy, PolicyArn=boundary())
        self.denied(
            "policy of AWS",
            iam.attach_role_policy,
            RoleName=f"fh-{TENANT}--machine--run-action",
            PolicyArn="arn:aws:iam::aws:policy/AdministratorAccess",
        )
        self.denied("user", iam.create_user, UserName=f"fh-{TENANT}--user")
        self.denied("key", iam.create_access_key, UserName="somebody")
