"""Both stacks on the local cloud with IAM enforced: they are made, and their roles allow and deny what they should."""

import json
import unittest
import urllib.error
import urllib.parse
import urllib.request

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

import templates
from cloud import BUCKET, DEADLINE_SECS, Cloud, orders_policy, reports_policy, settled, until
from templates import ACCOUNT, INSTALL, REGION, TENANT, TENANT_ACCOUNT

ELSEWHERE = "333333333333"


class Live(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cloud = Cloud()
        cls.addClassCleanup(cls.cloud.stop)
        parameters = {
            "TenantName": TENANT,
            "DeployBucket": BUCKET,
            "Architecture": "x86_64",
            "AlarmEmail": "ops@example.com",
            "BuildRunnerPrincipal": f"arn:aws:iam::{TENANT_ACCOUNT}:root",
            "BuildSubnetIds": "subnet-1",
            "BuildVpcId": "vpc-1",
            "BuilderUrl": "https://releases.example/freehold-builder",
            "BuilderSha256": "0" * 64,
            **cls.cloud.upload(),
        }
        cls.tenant, cls.out = cls.cloud.stack(
            f"freehold-{TENANT}",
            parameters,
            TENANT_ACCOUNT,
            TemplateURL=f"https://s3.{REGION}.amazonaws.com/{BUCKET}/templates/tenant.yaml",
        )
        cls.make_orders_queue()
        cls.install, cls.install_out = cls.cloud.stack(
            f"freehold-{TENANT}--{INSTALL}",
            {"RunnerPrincipal": f"arn:aws:iam::{ACCOUNT}:root"},
            ACCOUNT,
            TemplateBody=templates.install_text(),
        )

    @classmethod
    def make_orders_queue(cls):
        """Makes the orders queue as `register-install` does, with the role of that function."""
        arn = templates.ORDERS_QUEUE
        cls.orders = cls.cloud.invoke(
            "register-install",
            {
                "call": [
                    "sqs",
                    "CreateQueue",
                    {
                        "QueueName": arn.rpartition(":")[2],
                        "tags": {"freehold:tenant": TENANT},
                        "Attributes": {
                            "FifoQueue": "true",
                            "Policy": orders_policy(arn, f"fh-{TENANT}--{INSTALL}--runner"),
                        },
                    },
                ]
            },
        )
        cls.reporters = cls.cloud.invoke(
            "register-install",
            {
                "call": [
                    "sqs",
                    "SetQueueAttributes",
                    {
                        "QueueUrl": cls.out["ReportsQueueUrl"],
                        "Attributes": {"Policy": reports_policy(templates.REPORTS_QUEUE)},
                    },
                ]
            },
        )

    # What a function or a role may do

    def allowed(self, function, service, operation, parameters):
        answer = self.cloud.invoke(function, {"call": [service, operation, parameters]})
        self.assertIn("answer", answer, f"{function} {operation}")
        return answer["answer"]

    def refused(self, function, service, operation, parameters):
        answer = self.cloud.invoke(function, {"call": [service, operation, parameters]})
        self.assertRegex(answer.get("error", "no error"), "AccessDenied", f"{function} {operation}: {answer}")

    def denied(self, call, **parameters):
        with self.assertRaises(ClientError) as caught:
            call(**parameters)
        self.assertRegex(caught.exception.response["Error"]["Code"], "AccessDenied|^403$|Forbidden")

    # The tenant stack

    def test_the_tenant_stack_is_made(self):
        self.assertEqual(self.tenant["StackStatus"], "CREATE_COMPLETE", self.tenant.get("StackStatusReason"))
        self.assertEqual(set(self.out), set(templates.tenant()["Outputs"]))
        self.assertRegex(self.out["SigningKeyId"], "^arn:aws:kms:")

    def test_an_update_leaves_the_list_of_reporters_alone(self):
        client = self.cloud.client("cloudformation")
        keep = [
            {"ParameterKey": p["ParameterKey"], "UsePreviousValue": True}
            for p in self.tenant["Parameters"]
            if p["ParameterKey"] != "LogRetentionDays"
        ]
        client.update_stack(
            StackName=f"freehold-{TENANT}",
            UsePreviousTemplate=True,
            Capabilities=["CAPABILITY_NAMED_IAM"],
            Parameters=[*keep, {"ParameterKey": "LogRetentionDays", "ParameterValue": "7"}],
        )

        stack = until(lambda: settled(client, f"freehold-{TENANT}"), "update")
        self.assertEqual(stack["StackStatus"], "UPDATE_COMPLETE", stack.get("StackStatusReason"))
        attributes = self.cloud.client("sqs").get_queue_attributes(
            QueueUrl=self.out["ReportsQueueUrl"], AttributeNames=["Policy"]
        )
        self.assertIn(ACCOUNT, attributes["Attributes"]["Policy"])

    def test_functions_run_their_code_and_know_their_surroundings(self):
        client = self.cloud.client("lambda")
        for name in templates.FUNCTIONS:
            have = client.get_function_configuration(FunctionName=f"fh-{TENANT}--{name}")
            self.assertGreater(have["CodeSize"], 500, name)
            self.assertEqual(have["Environment"]["Variables"]["FREEHOLD_TABLE"], f"fh-{TENANT}", name)

    def test_the_api_wants_a_signature(self):
        with self.assertRaises(urllib.error.HTTPError) as unsigned:
            self.get("/v1/installs", signed=False)

        self.assertEqual(unsigned.exception.code, 403)
        self.assertEqual(self.get("/v1/installs", signed=True), "/v1/installs")

    def get(self, path, signed):
        host = urllib.parse.urlsplit(self.out["ApiUrl"]).hostname
        port = urllib.parse.urlsplit(self.cloud.endpoint).port
        request = AWSRequest("GET", f"http://{host}:{port}{path}", headers={"Host": f"{host}:{port}"})
        if signed:
            SigV4Auth(Credentials(TENANT_ACCOUNT, "root"), "execute-api", REGION).add_auth(request)
        plain = urllib.request.Request(f"{self.cloud.endpoint}{path}", headers=dict(request.headers.items()))
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(plain, timeout=DEADLINE_SECS) as answer:
            return answer.read().decode()

    def test_functions_use_the_table_and_none_scans(self):
        key = {"pk": {"S": f"install#{INSTALL}"}, "sk": {"S": "state"}}
        for name in templates.FUNCTIONS:
            self.refused(name, "dynamodb", "Scan", {"TableName": f"fh-{TENANT}"})
            self.allowed(name, "dynamodb", "GetItem", {"TableName": f"fh-{TENANT}", "Key": key})

    def test_only_two_functions_sign(self):
        sign = {
            "KeyId": self.out["SigningKeyId"],
            "Message": "order",
            "MessageType": "RAW",
            "SigningAlgorithm": "ED25519_SHA_512",
        }

        for name in ("dispatch-job", "grant-artifact"):
            self.allowed(name, "kms", "Sign", sign)
        for name in set(templates.FUNCTIONS) - {"dispatch-job", "grant-artifact"}:
            self.refused(name, "kms", "Sign", sign)
        public = self.allowed("api", "kms", "GetPublicKey", {"KeyId": self.out["SigningKeyId"]})
        self.assertEqual(public["KeySpec"], "ECC_NIST_EDWARDS25519")

    def test_register_install_keeps_to_orders_queues(self):
        self.assertEqual(set(self.orders), {"answer"}, self.orders)
        self.assertEqual(set(self.reporters), {"answer"}, self.reporters)
        self.refused(
            "register-install",
            "sqs",
            "CreateQueue",
            {"QueueName": "fh-other--x.fifo", "Attributes": {"FifoQueue": "true"}},
        )
        self.refused("register-install", "sqs", "DeleteQueue", {"QueueUrl": self.out["BuildQueueUrl"]})
        self.refused("register-install", "sqs", "DeleteQueue", {"QueueUrl": self.out["ReportsQueueUrl"]})
        self.refused("register-install", "sqs", "DeleteQueue", {"QueueUrl": self.orders["answer"]["QueueUrl"]})
        self.refused(
            "register-install",
            "sqs",
            "SendMessage",
            {"QueueUrl": self.orders["answer"]["QueueUrl"], "MessageBody": "x"},
        )
        self.refused("api", "sqs", "SendMessage", {"QueueUrl": self.out["ReportsQueueUrl"], "MessageBody": "x"})

    def test_the_api_reads_and_writes_sources_and_sees_what_is_missing(self):
        self.allowed("api", "s3", "PutObject", {"Bucket": BUCKET, "Key": "sources/00.tar.gz", "Body": "x"})
        self.refused("api", "s3", "PutObject", {"Bucket": BUCKET, "Key": "functions/00.zip", "Body": "x"})
        missing = self.cloud.invoke(
            "api", {"call": ["s3", "HeadObject", {"Bucket": BUCKET, "Key": "sources/01.tar.gz"}]}
        )
        self.assertEqual(missing.get("error"), "404")

    def test_two_functions_start_the_build_runners_machine_and_the_build_runner_ends_it(self):
        scaling = self.cloud.client("autoscaling")
        group = {"AutoScalingGroupName": self.out["BuildGroupName"]}

        def wanted():
            [found] = scaling.describe_auto_scaling_groups(AutoScalingGroupNames=[*group.values()])["AutoScalingGroups"]
            return found["DesiredCapacity"]

        seen = [wanted()]
        builder = self.cloud.client(
            "autoscaling", credentials=self.cloud.assume(f"fh-{TENANT}--build-runner", TENANT_ACCOUNT)
        )
        for name in ("dispatch-job", "sweep"):
            self.allowed(name, "autoscaling", "SetDesiredCapacity", {**group, "DesiredCapacity": 1})
            seen.append(wanted())
            builder.set_desired_capacity(**group, DesiredCapacity=0)
            seen.append(wanted())
        for name in set(templates.FUNCTIONS) - {"dispatch-job", "sweep"}:
            self.refused(name, "autoscaling", "SetDesiredCapacity", {**group, "DesiredCapacity": 1})
        self.refused("dispatch-job", "autoscaling", "UpdateAutoScalingGroup", {**group, "MaxSize": 9})

        self.assertEqual(seen, [0, 1, 0, 1, 0])

    def test_build_orders_go_from_dispatch_job_to_the_build_runner_alone(self):
        queue = self.out["BuildQueueUrl"]
        runner = self.cloud.client("sqs", credentials=self.cloud.assume(f"fh-{TENANT}--build-runner", TENANT_ACCOUNT))

        self.refused(
            "plan-workflow", "sqs", "SendMessage", {"QueueUrl": queue, "MessageBody": "x", "MessageGroupId": "g"}
        )
        self.allowed(
            "dispatch-job",
            "sqs",
            "SendMessage",
            {"QueueUrl": queue, "MessageBody": "order", "MessageGroupId": "g", "MessageDeduplicationId": "job_1.1"},
        )
        [message] = runner.receive_message(QueueUrl=queue, WaitTimeSeconds=5)["Messages"]
        runner.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
        runner.send_message(QueueUrl=self.out["ReportsQueueUrl"], MessageBody="report")
        self.denied(
            runner.send_message, QueueUrl=queue, MessageBody="x", MessageGroupId="g", MessageDeduplicationId="1"
        )
        self.denied(runner.receive_message, QueueUrl=self.out["ReportsQueueUrl"])

    def test_the_build_runner_pushes_and_reads_sources_and_nobody_else_pushes(self):
        credentials = self.cloud.assume(f"fh-{TENANT}--build-runner", TENANT_ACCOUNT)
        manifest = json.dumps(
            {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "layers": []}
        )
        image = {"repositoryName": f"fh-{TENANT}", "imageManifest": manifest, "imageTag": "bld_1"}
        s3 = self.cloud.client("s3", credentials=credentials)

        self.cloud.client("ecr", credentials=credentials).put_image(**image)
        self.refused("grant-artifact", "ecr", "PutImage", {**image, "imageTag": "bld_2"})
        self.allowed(
            "grant-artifact",
            "ecr",
            "BatchGetImage",
            {"repositoryName": f"fh-{TENANT}", "imageIds": [{"imageTag": "bld_1"}]},
        )
        self.refused(
            "api", "ecr", "BatchGetImage", {"repositoryName": f"fh-{TENANT}", "imageIds": [{"imageTag": "bld_1"}]}
        )
        self.denied(s3.get_object, Bucket=BUCKET, Key="functions/00.zip")

    # State machines

    def run_workflow(self, machine, workflow):
        arn = f"arn:aws:states:{REGION}:{TENANT_ACCOUNT}:stateMachine:fh-{TENANT}--{machine}"
        text = json.dumps({"workflow": workflow, "install": INSTALL})
        self.allowed(
            "api", "stepfunctions", "StartExecution", {"stateMachineArn": arn, "name": workflow, "input": text}
        )
        return arn.replace(":stateMachine:", ":execution:") + f":{workflow}"

    def resume(self, workflow, phase):
        key = {"pk": {"S": f"token#{workflow}"}, "sk": {"S": phase}}
        table = self.cloud.client("dynamodb")
        row = until(
            lambda: table.get_item(TableName=f"fh-{TENANT}", Key=key).get("Item"), f"token of {workflow} {phase}"
        )
        done = {"taskToken": row["body"]["S"], "output": '{"result": "succeeded"}'}
        self.refused("plan-workflow", "stepfunctions", "SendTaskSuccess", done)
        self.allowed("accept-report", "stepfunctions", "SendTaskHeartbeat", {"taskToken": row["body"]["S"]})
        self.allowed("accept-report", "stepfunctions", "SendTaskSuccess", done)

    def ended(self, execution):
        client = self.cloud.client("stepfunctions")

        def outcome():
            described = client.describe_execution(executionArn=execution)
            return described if described["status"] != "RUNNING" else None

        return until(outcome, execution)

    def test_a_provision_waits_for_the_runner_then_runs(self):
        execution = self.run_workflow("provision-install", "wf_good_provision")
        self.resume("wf_good_provision", "await_runner")
        self.resume("wf_good_provision", "run")

        self.assertEqual(self.ended(execution)["status"], "SUCCEEDED")

    def test_each_other_machine_runs_to_its_end(self):
        for machine in set(templates.DEFINITIONS) - {"provision-install"}:
            execution = self.run_workflow(machine, f"wf_good_{machine}")
            self.resume(f"wf_good_{machine}", "run")

            self.assertEqual(self.ended(execution)["status"], "SUCCEEDED", machine)

    def test_a_deploy_without_work_ends_at_once(self):
        execution = self.run_workflow("deploy-components", "wf_empty")

        self.assertEqual(self.ended(execution)["status"], "SUCCEEDED")

    def test_an_execution_fails_when_its_workflow_did(self):
        execution = self.run_workflow("deploy-components", "wf_bad")
        self.resume("wf_bad", "run")

        end = self.ended(execution)
        self.assertEqual(
            (end["status"], end["error"], end["cause"]), ("FAILED", "failed", "workflow wf_bad ended: failed")
        )

    def test_an_error_reaches_finish_workflow_which_ends_it(self):
        for workflow in ("wf_unplannable", "wf_strange"):
            end = self.ended(self.run_workflow("deploy-components", workflow))

            self.assertEqual((end["status"], end["error"]), ("FAILED", "failed"), workflow)

    def test_an_execution_whose_end_cannot_be_decided_says_so(self):
        end = self.ended(self.run_workflow("run-action", "wf_empty_unfinishable"))

        self.assertEqual((end["status"], end["error"]), ("FAILED", "Internal"))

    # The install stack

    def test_the_install_stack_is_made_with_two_modes(self):
        self.assertEqual(self.install["StackStatus"], "CREATE_COMPLETE", self.install.get("StackStatusReason"))
        self.assertEqual(set(templates.install()["Outputs"]), set(self.install_out))

    def test_it_is_not_made_in_another_account(self):
        # AWS refuses the template before it makes anything; the local cloud fails at the first role.
        stack, outputs = self.cloud.stack(
            f"freehold-{TENANT}--{INSTALL}",
            {},
            ELSEWHERE,
            TemplateBody=templates.install_text(),
        )

        self.assertRegex(stack["StackStatus"], "FAILED|ROLLBACK_COMPLETE")
        self.assertEqual(outputs, {})
        roles = self.cloud.client("iam", ELSEWHERE).list_roles()["Roles"]
        self.assertEqual([role["RoleName"] for role in roles if INSTALL in role["RoleName"]], [])

    def test_the_runner_receives_orders_and_sends_reports_and_not_the_other_way(self):
        sqs = self.cloud.client("sqs", credentials=self.cloud.assume(f"fh-{TENANT}--{INSTALL}--runner"))
        orders, reports = self.orders["answer"]["QueueUrl"], self.out["ReportsQueueUrl"]
        self.allowed(
            "dispatch-job",
            "sqs",
            "SendMessage",
            {"QueueUrl": orders, "MessageBody": "order", "MessageGroupId": "g", "MessageDeduplicationId": "job_1.1"},
        )

        [message] = sqs.receive_message(QueueUrl=orders, WaitTimeSeconds=5)["Messages"]
        sqs.change_message_visibility(QueueUrl=orders, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=30)
        sqs.delete_message(QueueUrl=orders, ReceiptHandle=message["ReceiptHandle"])
        sqs.send_message(QueueUrl=reports, MessageBody="report")
        self.denied(sqs.send_message, QueueUrl=orders, MessageBody="x", MessageGroupId="g", MessageDeduplicationId="1")
        self.denied(sqs.receive_message, QueueUrl=reports)
        self.denied(sqs.receive_message, QueueUrl=self.out["BuildQueueUrl"])

    def test_the_runner_alone_takes_a_mode_that_is_on(self):
        runner = self.cloud.assume(f"fh-{TENANT}--{INSTALL}--runner")

        for mode in ("provision", "maintenance"):
            self.cloud.assume(f"fh-{TENANT}--{INSTALL}--{mode}", credentials=runner)
            self.denied(self.cloud.assume, role=f"fh-{TENANT}--{INSTALL}--{mode}")
        self.denied(self.cloud.assume, role=f"fh-{TENANT}--{INSTALL}--deprovision", credentials=runner)

    def test_the_runner_keeps_logs_and_audit(self):
        runner = self.cloud.assume(f"fh-{TENANT}--{INSTALL}--runner")
        s3, bucket = self.cloud.client("s3", credentials=runner), self.install_out["BucketName"]

        for folder in ("audit", "logs", "plans"):
            s3.put_object(Bucket=bucket, Key=f"{folder}/1", Body=b"x")
            s3.list_objects_v2(Bucket=bucket, Prefix=f"{folder}/")
        self.denied(s3.delete_object, Bucket=bucket, Key="audit/1")
        self.denied(s3.get_object, Bucket=bucket, Key="terraform/a.tfstate")
        self.denied(s3.list_objects_v2, Bucket=bucket, Prefix="terraform/")

    def test_known_privilege_escalations_are_denied(self):
        admin = self.cloud.client("iam", ACCOUNT)
        own_trust = templates.trust_policy(AWS=f"arn:aws:iam::{ACCOUNT}:root")
        everything = json.dumps(
            {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
        )
        boundary, other = self.install_out["BoundaryArn"], "arn:aws:iam::aws:policy/AdministratorAccess"
        mode_role, runner_role = f"fh-{TENANT}--{INSTALL}--mode-of-a-test", f"fh-{TENANT}--{INSTALL}--runner"
        # The widest mode that a vendor can write: only the boundary limits it.
        admin.create_role(RoleName=mode_role, AssumeRolePolicyDocument=own_trust, PermissionsBoundary=boundary)
        admin.put_role_policy(RoleName=mode_role, PolicyName="all", PolicyDocument=everything)
        admin.create_role(RoleName="admin-of-a-test", AssumeRolePolicyDocument=own_trust)
        mode = self.cloud.assume(mode_role)
        iam, sts = (self.cloud.client(service, credentials=mode) for service in ("iam", "sts"))
        stacks, kms, s3 = (self.cloud.client(service, credentials=mode) for service in ("cloudformation", "kms", "s3"))
        own, bucket = f"{TENANT}--{INSTALL}--own", self.install_out["BucketName"]
        iam.create_role(RoleName=own, AssumeRolePolicyDocument=own_trust, PermissionsBoundary=boundary)
        iam.put_role_policy(RoleName=own, PolicyName="all", PolicyDocument=everything)

        def arn(role):
            return f"arn:aws:iam::{ACCOUNT}:role/{role}"

        escalations = {
            "a role without the boundary": lambda: iam.create_role(
                RoleName=f"{TENANT}--{INSTALL}--free", AssumeRolePolicyDocument=own_trust
            ),
            "a role with another boundary": lambda: iam.create_role(
                RoleName=f"{TENANT}--{INSTALL}--wide", AssumeRolePolicyDocument=own_trust, PermissionsBoundary=other
            ),
            "a role outside of the prefix": lambda: iam.create_role(
                RoleName="outside", AssumeRolePolicyDocument=own_trust, PermissionsBoundary=boundary
            ),
            "another boundary for an own role": lambda: iam.put_role_permissions_boundary(
                RoleName=own, PermissionsBoundary=other
            ),
            "no boundary for an own role": lambda: iam.delete_role_permissions_boundary(RoleName=own),
            "a new version of the boundary": lambda: iam.create_policy_version(
                PolicyArn=boundary, PolicyDocument=everything, SetAsDefault=True
            ),
            "a policy for the runner": lambda: iam.put_role_policy(
                RoleName=runner_role, PolicyName="all", PolicyDocument=everything
            ),
            "a managed policy for the runner": lambda: iam.attach_role_policy(RoleName=runner_role, PolicyArn=other),
            "the runner's trust": lambda: iam.update_assume_role_policy(RoleName=runner_role, PolicyDocument=own_trust),
            "the trust of a stranger's role": lambda: iam.update_assume_role_policy(
                RoleName="admin-of-a-test", PolicyDocument=own_trust
            ),
            "a user with a key": lambda: iam.create_user(UserName=f"{TENANT}--{INSTALL}--user"),
            "the runner's instance profile": lambda: iam.delete_instance_profile(InstanceProfileName=runner_role),
            "the runner's role itself": lambda: sts.assume_role(RoleArn=arn(runner_role), RoleSessionName="escalation"),
            "an administrator's role": lambda: sts.assume_role(
                RoleArn=arn("admin-of-a-test"), RoleSessionName="escalation"
            ),
            "the install stack": lambda: stacks.update_stack(
                StackName=f"freehold-{TENANT}--{INSTALL}",
                UsePreviousTemplate=True,
                Capabilities=["CAPABILITY_NAMED_IAM"],
            ),
            "the key's policy": lambda: kms.put_key_policy(
                KeyId=self.install_out["KeyArn"], PolicyName="default", Policy=everything
            ),
            "the bucket's policy": lambda: s3.put_bucket_policy(Bucket=bucket, Policy=everything),
        }
        for what, attempt in escalations.items():
            with self.subTest(what):
                self.denied(attempt)
        with self.subTest("what an own role may do is what the mode may"):
            second = self.cloud.assume(own, credentials=mode)
            self.denied(
                self.cloud.client("iam", credentials=second).create_role,
                RoleName=f"{TENANT}--{INSTALL}--free",
                AssumeRolePolicyDocument=own_trust,
            )

    def test_a_mode_keeps_state_and_leaves_the_rest_of_the_stack_alone(self):
        runner = self.cloud.assume(f"fh-{TENANT}--{INSTALL}--runner")
        mode = self.cloud.assume(f"fh-{TENANT}--{INSTALL}--provision", credentials=runner)
        s3, bucket = self.cloud.client("s3", credentials=mode), self.install_out["BucketName"]
        iam = self.cloud.client("iam", credentials=mode)
        trust = templates.trust_policy(Service="eks.amazonaws.com")

        s3.put_object(Bucket=bucket, Key="terraform/db.tfstate", Body=b"x")
        s3.list_objects_v2(Bucket=bucket, Prefix="env:/")
        s3.delete_object(Bucket=bucket, Key="terraform/db.tfstate")
        iam.create_role(
            RoleName=f"{TENANT}--{INSTALL}--cluster",
            AssumeRolePolicyDocument=trust,
            PermissionsBoundary=self.install_out["BoundaryArn"],
        )
        # This mode's policies include AmazonS3FullAccess and iam:CreateRole, so only the boundary denies these.
        self.denied(iam.create_role, RoleName="admin", AssumeRolePolicyDocument=trust)
        self.denied(iam.create_role, RoleName=f"fh-{TENANT}--{INSTALL}--second", AssumeRolePolicyDocument=trust)
        self.denied(s3.put_object, Bucket=bucket, Key="audit/1", Body=b"forged")
        self.denied(s3.delete_bucket, Bucket=bucket)
        own = f"fh-{TENANT}--{INSTALL}/input/token"
        self.cloud.client("secretsmanager", ACCOUNT).create_secret(Name=own, SecretString="x")
        self.denied(self.cloud.client("secretsmanager", credentials=mode).get_secret_value, SecretId=own)
