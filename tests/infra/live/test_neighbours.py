"""Two tenants in one account and three of their customers on the local cloud with IAM enforced.

With the credentials of its own roles, each reaches what is its own and nothing of a neighbour's.
"""

import json
import unittest

from botocore.exceptions import ClientError

import templates
from cloud import BUCKET, Cloud, orders_policy, reports_policy
from templates import REGION, TENANT_ACCOUNT

# The tenant and the account of each install.
INSTALLS = {
    "globex": ("acme", "222222222222"),
    "initech": ("acme", "333333333333"),
    "hooli": ("umbrella", "444444444444"),
}
TENANTS = ("acme", "umbrella")


class Neighbours(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cloud = Cloud()
        cls.addClassCleanup(cls.cloud.stop)
        code = cls.cloud.upload()
        cls.tenants, cls.installs = {}, {}
        for tenant in TENANTS:
            stack, cls.tenants[tenant] = cls.cloud.stack(
                f"freehold-{tenant}",
                {"TenantName": tenant, "DeployBucket": BUCKET, "Architecture": "x86_64", **code},
                TENANT_ACCOUNT,
                TemplateURL=f"https://s3.{REGION}.amazonaws.com/{BUCKET}/templates/tenant.yaml",
            )
            assert stack["StackStatus"] == "CREATE_COMPLETE", stack
            cls.allow_reports(tenant)
        for install, (tenant, account) in INSTALLS.items():
            cls.installs[install] = cls.launch(install, tenant, account)

    @classmethod
    def allow_reports(cls, tenant):
        accounts = [account for of, account in INSTALLS.values() if of == tenant]
        reports = f"arn:aws:sqs:{REGION}:{TENANT_ACCOUNT}:fh-{tenant}--reports"
        policy = reports_policy(reports, tenant, accounts)
        cls.cloud.client("sqs").set_queue_attributes(
            QueueUrl=cls.tenants[tenant]["ReportsQueueUrl"], Attributes={"Policy": policy}
        )

    @classmethod
    def launch(cls, install, tenant, account):
        orders = f"arn:aws:sqs:{REGION}:{TENANT_ACCOUNT}:fh-{tenant}--{install}.fifo"
        cls.cloud.client("sqs").create_queue(
            QueueName=f"fh-{tenant}--{install}.fifo",
            Attributes={
                "FifoQueue": "true",
                "Policy": orders_policy(orders, f"fh-{tenant}--{install}--runner").replace(templates.ACCOUNT, account),
            },
        )
        text = templates.install_text(tenant=tenant, install=install, account=account)
        root = f"arn:aws:iam::{account}:root"
        stack, out = cls.cloud.stack(
            f"freehold-{tenant}--{install}",
            {"RunnerPrincipal": root},
            account,
            TemplateBody=text,
        )
        assert stack["StackStatus"] == "CREATE_COMPLETE", stack
        runner = cls.cloud.assume(f"fh-{tenant}--{install}--runner", account)
        return {
            **out,
            "runner": runner,
            "provision": cls.cloud.assume(f"fh-{tenant}--{install}--provision", account, runner),
        }

    def may(self, call, **parameters):
        try:
            call(**parameters)
        except ClientError as error:
            self.assertRegex(error.response["Error"]["Code"], "AccessDenied|^403$|Forbidden", f"{parameters}: {error}")
            return False
        return True

    def pairs(self, role, service, ask):
        """Returns the pairs of installs where the first, with the role's credentials, may do `ask` to the second."""
        return {
            (mine, other)
            for mine in INSTALLS
            for other in INSTALLS
            if ask(self.cloud.client(service, credentials=self.installs[mine][role]), self.installs[other], other)
        }

    OWN = {(install, install) for install in INSTALLS}

    def test_orders_are_received_by_their_runner_alone(self):
        found = self.pairs(
            "runner", "sqs", lambda sqs, of, _: self.may(sqs.receive_message, QueueUrl=of["OrdersQueueUrl"])
        )
        modes = self.pairs(
            "provision", "sqs", lambda sqs, of, _: self.may(sqs.receive_message, QueueUrl=of["OrdersQueueUrl"])
        )

        self.assertEqual((found, modes), (self.OWN, set()))

    def test_reports_go_to_the_runners_own_tenant(self):
        found = self.pairs(
            "runner",
            "sqs",
            lambda sqs, of, _: self.may(sqs.send_message, QueueUrl=of["ReportsQueueUrl"], MessageBody="x"),
        )

        self.assertEqual(
            found, {(mine, other) for mine in INSTALLS for other in INSTALLS if INSTALLS[mine][0] == INSTALLS[other][0]}
        )

    def test_buckets_keys_and_registries_are_their_installs_alone(self):
        for role, service, ask in (
            (
                "runner",
                "s3",
                lambda s3, of, _: self.may(s3.put_object, Bucket=of["BucketName"], Key="audit/1", Body=b"x"),
            ),
            (
                "provision",
                "s3",
                lambda s3, of, _: self.may(s3.put_object, Bucket=of["BucketName"], Key="terraform/x", Body=b"x"),
            ),
            (
                "runner",
                "kms",
                lambda kms, of, _: self.may(kms.generate_data_key, KeyId=of["KeyArn"], KeySpec="AES_256"),
            ),
            (
                "provision",
                "kms",
                lambda kms, of, _: self.may(kms.generate_data_key, KeyId=of["KeyArn"], KeySpec="AES_256"),
            ),
        ):
            with self.subTest(f"{role} {service}"):
                self.assertEqual(self.pairs(role, service, ask), self.OWN)
        # The local cloud does not find the registry of another account by its name, so each is asked about its own.
        for install in INSTALLS:
            ecr = self.cloud.client("ecr", credentials=self.installs[install]["runner"])
            self.assertTrue(self.may(ecr.describe_images, repositoryName=f"fh-{INSTALLS[install][0]}/{install}"))
            self.assertFalse(self.may(ecr.describe_images, repositoryName="fh-somebody"))

    def test_roles_of_modes_are_taken_by_their_runner_alone(self):
        def takes(sts, _, other):
            arn = f"arn:aws:iam::{INSTALLS[other][1]}:role/fh-{INSTALLS[other][0]}--{other}--maintenance"
            return self.may(sts.assume_role, RoleArn=arn, RoleSessionName="job_1")

        self.assertEqual(self.pairs("runner", "sts", takes), self.OWN)
        self.assertEqual(self.pairs("provision", "sts", takes), set())

    def test_a_tenants_functions_reach_its_own_table_queues_key_and_registry_alone(self):
        def allowed(tenant, function, service, operation, parameters):
            answer = self.cloud.client("lambda").invoke(
                FunctionName=f"fh-{tenant}--{function}", Payload=json.dumps({"call": [service, operation, parameters]})
            )
            result = json.load(answer["Payload"])
            self.assertTrue("answer" in result or "AccessDenied" in result.get("error", ""), result)
            return "answer" in result

        for mine in TENANTS:
            for other in TENANTS:
                out, queues = self.tenants[other], f"http://localhost:4566/{TENANT_ACCOUNT}"
                row = {"pk": {"S": "job#1"}, "sk": {"S": "-"}}
                asked = {
                    "table": allowed(mine, "api", "dynamodb", "GetItem", {"TableName": f"fh-{other}", "Key": row}),
                    "dispatch": allowed(
                        mine,
                        "plan-workflow",
                        "sqs",
                        "SendMessage",
                        {"QueueUrl": f"{queues}/fh-{other}--dispatch", "MessageBody": "x"},
                    ),
                    "key": allowed(
                        mine,
                        "dispatch-job",
                        "kms",
                        "Sign",
                        {
                            "KeyId": out["SigningKeyId"],
                            "Message": "x",
                            "MessageType": "RAW",
                            "SigningAlgorithm": "ED25519_SHA_512",
                        },
                    ),
                    "registry": allowed(
                        mine,
                        "grant-artifact",
                        "ecr",
                        "BatchGetImage",
                        {"repositoryName": out["RepositoryName"], "imageIds": [{"imageTag": "x"}]},
                    ),
                }
                with self.subTest(f"{mine} of {other}"):
                    self.assertEqual(asked, dict.fromkeys(asked, mine == other))
