"""Tests what the product relies on in the local cloud, and where the local cloud differs from AWS. Run by `cloud test`.

A test whose name says `deviation` fails when the emulator becomes better than it was: then the product's
workaround, the note in README.md and the test go together.
"""

import json
import os
import subprocess
import sys
import time
import unittest

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.exceptions import ClientError

from contract_cloud import REGION, Contract, Principal, allow, differs, needs, refusal, shared, until


@needs("enforcement")
class Identity(Contract):
    def test_role_may_do_what_its_policy_says_and_no_more(self):
        url, arn = self.account.queue("q")
        role = self.account.role("sender", allow("sqs:SendMessage", on=arn))

        role.client("sqs").send_message(QueueUrl=url, MessageBody="x")

        self.refused("AccessDenied", role.client("sqs").receive_message, QueueUrl=url)

    def test_batch_call_needs_the_permission_of_the_single_call(self):
        url, arn = self.account.queue("batched")
        role = self.account.role("batch-sender", allow("sqs:SendMessage", on=arn))

        role.client("sqs").send_message_batch(QueueUrl=url, Entries=[{"Id": "1", "MessageBody": "x"}])

        self.refused(
            "AccessDenied",
            role.client("sqs").delete_message_batch,
            QueueUrl=url,
            Entries=[{"Id": "1", "ReceiptHandle": "x"}],
        )

    def test_boundary_that_a_request_gives_is_a_condition_key(self):
        boundary = "arn:aws:iam::aws:policy/ReadOnlyAccess"
        unbound = {
            "Effect": "Deny",
            "Action": ["iam:AttachRolePolicy", "iam:CreateRole", "iam:PutRolePermissionsBoundary", "iam:PutRolePolicy"],
            "Resource": "*",
            "Condition": {"StringNotEquals": {"iam:PermissionsBoundary": boundary}},
        }
        iam = self.account.role("maker", allow("iam:*"), unbound).client("iam")
        trust = json.dumps(
            {
                "Version": "2012-10-17",
                "Statement": [
                    {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
                ],
            }
        )

        iam.create_role(RoleName="bound", AssumeRolePolicyDocument=trust, PermissionsBoundary=boundary)
        iam.put_role_permissions_boundary(RoleName="bound", PermissionsBoundary=boundary)

        other = "arn:aws:iam::aws:policy/AdministratorAccess"
        self.refused("AccessDenied", iam.create_role, RoleName="unbound", AssumeRolePolicyDocument=trust)
        self.refused(
            "AccessDenied", iam.create_role, RoleName="wide", AssumeRolePolicyDocument=trust, PermissionsBoundary=other
        )
        self.refused("AccessDenied", iam.put_role_permissions_boundary, RoleName="bound", PermissionsBoundary=other)

        policy = json.dumps({"Version": "2012-10-17", "Statement": [allow("*")]})
        self.account.client("iam").create_role(RoleName="free", AssumeRolePolicyDocument=trust)
        iam.put_role_policy(RoleName="bound", PolicyName="all", PolicyDocument=policy)
        iam.attach_role_policy(RoleName="bound", PolicyArn=other)
        self.refused("AccessDenied", iam.put_role_policy, RoleName="free", PolicyName="all", PolicyDocument=policy)
        self.refused("AccessDenied", iam.attach_role_policy, RoleName="free", PolicyArn=other)

    def test_condition_of_a_write_is_a_condition_key(self):
        bucket = f"conditional-{self.account.id}"
        self.account.client("s3").create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
        again = {
            "Effect": "Deny",
            "Action": "s3:PutObject",
            "Resource": f"arn:aws:s3:::{bucket}/once/*",
            "Condition": {"Null": {"s3:if-none-match": "true"}},
        }
        s3 = self.account.role("writer", allow("s3:PutObject"), again).client("s3")

        s3.put_object(Bucket=bucket, Key="once/1", Body=b"a", IfNoneMatch="*")
        s3.put_object(Bucket=bucket, Key="often/1", Body=b"a")

        self.refused("AccessDenied", s3.put_object, Bucket=bucket, Key="once/1", Body=b"b")
        self.refused("AccessDenied", s3.put_object, Bucket=bucket, Key="once/1", Body=b"b", IfMatch="*")
        self.refused("PreconditionFailed", s3.put_object, Bucket=bucket, Key="once/1", Body=b"b", IfNoneMatch="*")

    def test_unknown_key_and_wrong_secret_are_refused(self):
        role = self.account.role("someone", allow("*"))
        role.credentials.secret_key = "wrong"

        self.refused("SignatureDoesNotMatch", role.client("sqs").list_queues)
        role.credentials.access_key, role._clients = "ASIAUNKNOWN000000000", {}
        self.refused("InvalidClientTokenId", role.client("sqs").list_queues)

    def test_signed_request_that_somebody_else_sends_names_its_signer_and_no_signed_part_may_change(self):
        role, url = self.account.role("fh-i1-runner"), f"https://sts.{REGION}.amazonaws.com/"
        body = "Action=GetCallerIdentity&Version=2011-06-15"
        form = {"Content-Type": "application/x-www-form-urlencoded", "X-Freehold-Runner": "abc"}
        request = AWSRequest("POST", url, data=body, headers={**form, "Host": f"sts.{REGION}.amazonaws.com"})
        SigV4Auth(role.credentials, "sts", REGION).add_auth(request)
        signed = dict(request.headers)

        answer = shared().http("POST", url, signed, body)

        self.assertEqual(answer.status, 200, answer)
        named = f"<Arn>arn:aws:sts::{self.account.id}:assumed-role/fh-i1-runner/contract</Arn>"
        self.assertIn(named.encode(), answer.body)
        for header, value in (
            ("X-Freehold-Runner", "abd"),
            ("Host", "sts.us-east-1.amazonaws.com"),
            ("X-Amz-Date", "20200101T000000Z"),
            ("X-Amz-Security-Token", "other"),
        ):
            with self.subTest(header):
                self.assertEqual(shared().http("POST", url, {**signed, header: value}, body).status, 403)

    def test_cross_account_queue_needs_both_policies_and_lets_exactly_one_role_in(self):
        customer, stranger = shared().account(), shared().account()
        url, arn = self.account.queue("orders")
        receive = allow("sqs:ReceiveMessage", on=arn)
        runner, other = customer.role("fh-i1-runner", receive), customer.role("other", receive)
        powerless, foreign = customer.role("powerless"), stranger.role("fh-i1-runner", receive)

        self._admit(url, arn, customer.id, f"arn:aws:iam::{customer.id}:role/fh-i1-runner")

        runner.client("sqs").receive_message(QueueUrl=url)
        for role in (other, powerless, foreign):
            self.refused("AccessDenied", role.client("sqs").receive_message, QueueUrl=url)
        self._admit(url, arn, customer.id, f"arn:aws:iam::{customer.id}:role/powerless")
        self.refused("AccessDenied", powerless.client("sqs").receive_message, QueueUrl=url)
        self.refused("AccessDenied", runner.client("sqs").receive_message, QueueUrl=url)

    def _admit(self, url, arn, account, role):
        statement = {
            "Effect": "Allow",
            "Principal": {"AWS": f"arn:aws:iam::{account}:root"},
            "Resource": arn,
            "Action": "sqs:ReceiveMessage",
            "Condition": {"ArnEquals": {"aws:PrincipalArn": role}},
        }
        self.account.client("sqs").set_queue_attributes(
            QueueUrl=url, Attributes={"Policy": json.dumps({"Version": "2012-10-17", "Statement": [statement]})}
        )

    def test_function_has_its_role(self):
        _, arn = self.account.queue("q")
        self.account.function("f", allow("sqs:GetQueueUrl", on=arn))

        env = self.account.call("f")["env"]
        function = Principal(
            shared(), self.account.id, env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"], env["AWS_SESSION_TOKEN"]
        )

        function.client("sqs").get_queue_url(QueueName="q")
        self.refused("AccessDenied", function.client("sqs").create_queue, QueueName="other")

    def test_deviation_leading_keys_are_not_enforced(self):
        table = self.account.table()
        role = self.account.role(
            "tenant",
            allow("dynamodb:PutItem", Condition={"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["mine"]}}),
        )

        role.client("dynamodb").put_item(TableName=table, Item={"pk": {"S": "not mine"}})


class States(Contract):
    def waiting(self, **limits):
        url, _ = self.account.queue("tokens")
        machine = self.account.machine(
            "wait",
            {
                "Wait": {
                    "Type": "Task",
                    "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
                    **limits,
                    "Parameters": {"QueueUrl": url, "MessageBody.$": "$$.Task.Token"},
                    "Next": "Done",
                    "Catch": [{"ErrorEquals": ["States.HeartbeatTimeout"], "Next": "Lost"}],
                },
                "Done": {"Type": "Succeed"},
                "Lost": {"Type": "Pass", "Result": "lost", "End": True},
            },
            "Wait",
        )
        execution = self.account.client("stepfunctions").start_execution(stateMachineArn=machine)["executionArn"]
        messages = self.account.client("sqs").receive_message(QueueUrl=url, WaitTimeSeconds=10)["Messages"]
        return execution, messages[0]["Body"]

    @differs("the error is `States.Timeout` and not `States.HeartbeatTimeout`")
    def test_missed_heartbeat_ends_a_waiting_task(self):
        execution, _ = self.waiting(HeartbeatSeconds=1, TimeoutSeconds=60)

        self.assertEqual('"lost"', self.account.ended(execution).get("output"))

    def test_heartbeat_keeps_a_waiting_task(self):
        # Between the start and the first heartbeat, a busy machine may take some seconds.
        execution, token = self.waiting(HeartbeatSeconds=10, TimeoutSeconds=60)
        states = self.account.client("stepfunctions")
        until_time = time.monotonic() + 12

        def beat():
            states.send_task_heartbeat(taskToken=token)
            return time.monotonic() > until_time

        until(beat, "longer than the time for one heartbeat")
        states.send_task_success(taskToken=token, output='"alive"')

        self.assertEqual('"alive"', self.account.ended(execution)["output"])

    @needs("lambda")
    def test_function_that_fails_ends_its_waiting_task(self):
        self.account.function("fails")
        machine = self.account.machine(
            "waits",
            {
                "Wait": {
                    "Type": "Task",
                    "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
                    "TimeoutSeconds": 60,
                    "Parameters": {"FunctionName": "fails", "Payload": {"fail": True, "token.$": "$$.Task.Token"}},
                    "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Caught"}],
                    "End": True,
                },
                "Caught": {"Type": "Pass", "Result": "caught", "End": True},
            },
            "Wait",
        )
        execution = self.account.client("stepfunctions").start_execution(stateMachineArn=machine)["executionArn"]

        self.assertEqual('"caught"', self.account.ended(execution).get("output"))

    def started_once(self):
        url, _ = self.account.queue("tokens")
        machine = self.account.machine(
            "once",
            {
                "Wait": {
                    "Type": "Task",
                    "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken",
                    "TimeoutSeconds": 60,
                    "Parameters": {"QueueUrl": url, "MessageBody.$": "$$.Task.Token"},
                    "End": True,
                }
            },
            "Wait",
        )
        states = self.account.client("stepfunctions")
        start = {"stateMachineArn": machine, "name": "n", "input": '{"a":1}'}
        return states, start, states.start_execution(**start)

    def test_repeated_start_answers_the_running_execution(self):
        states, start, first = self.started_once()

        second = states.start_execution(**start)

        self.assertEqual(first["executionArn"], second["executionArn"])
        self.assertEqual(first["startDate"], second["startDate"])
        self.refused("ExecutionAlreadyExists", states.start_execution, **{**start, "input": "{}"})

    @needs("stop")
    def test_repeated_start_of_an_ended_execution_is_refused(self):
        states, start, first = self.started_once()

        states.stop_execution(executionArn=first["executionArn"])

        self.refused("ExecutionAlreadyExists", states.start_execution, **start)

    def test_deviation_machine_role_is_not_enforced(self):
        execution, _ = self.waiting(TimeoutSeconds=60)  # its role has no policy, yet it sent the token

        self.account.client("stepfunctions").stop_execution(executionArn=execution)

    def test_deviation_broken_definition_is_accepted(self):
        self.account.machine("broken", {"A": {"Type": "Pass", "Next": "Nowhere"}}, "Missing")


class Queues(Contract):
    def fifo(self):
        return self.account.queue("q.fifo", FifoQueue="true", VisibilityTimeout="30")[0]

    def test_fifo_group_is_locked_while_a_message_is_in_flight(self):
        sqs, url = self.account.client("sqs"), self.fifo()
        for group, number in (("a", 1), ("a", 2), ("b", 3)):
            sqs.send_message(
                QueueUrl=url, MessageBody=str(number), MessageGroupId=group, MessageDeduplicationId=str(number)
            )

        first = sqs.receive_message(QueueUrl=url)["Messages"][0]
        second = sqs.receive_message(QueueUrl=url)["Messages"][0]
        locked = sqs.receive_message(QueueUrl=url).get("Messages")
        sqs.delete_message(QueueUrl=url, ReceiptHandle=first["ReceiptHandle"])
        third = sqs.receive_message(QueueUrl=url)["Messages"][0]

        self.assertEqual(["1", "3", None, "2"], [first["Body"], second["Body"], locked, third["Body"]])

    def test_fifo_drops_a_duplicate(self):
        sqs, url = self.account.client("sqs"), self.fifo()
        for body in "one", "two":
            sqs.send_message(QueueUrl=url, MessageBody=body, MessageGroupId="g", MessageDeduplicationId="same")

        first = sqs.receive_message(QueueUrl=url)["Messages"][0]
        sqs.delete_message(QueueUrl=url, ReceiptHandle=first["ReceiptHandle"])

        self.assertEqual("one", first["Body"])
        self.assertNotIn("Messages", sqs.receive_message(QueueUrl=url))

    def test_returned_message_counts_its_receives_and_names_its_group(self):
        sqs, url = self.account.client("sqs"), self.fifo()
        sqs.send_message(QueueUrl=url, MessageBody="x", MessageGroupId="g", MessageDeduplicationId="1")

        counts = []
        for _ in range(2):
            message = sqs.receive_message(QueueUrl=url, AttributeNames=["All"])["Messages"][0]
            counts.append([message["Attributes"][name] for name in ("ApproximateReceiveCount", "MessageGroupId")])
            sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0)

        self.assertEqual([["1", "g"], ["2", "g"]], counts)

    @differs("a queue URL is `http://sqs.<region>.localhost:<port>/<account>/<name>`")
    def test_queue_url_is_on_loopback(self):
        url, _ = self.account.queue("q")

        self.assertEqual(f"http://localhost:{shared().port}/{self.account.id}/q", url)

    @needs("dead poll")
    def test_deviation_killed_long_poll_still_takes_the_next_message(self):
        sqs, url = self.account.client("sqs"), self.account.queue("q", VisibilityTimeout="2")[0]
        poll = subprocess.Popen(
            [sys.executable, "-c", POLL, shared().endpoint, self.account.id, url], stdout=subprocess.PIPE
        )
        poll.stdout.readline()  # it has sent its request
        poll.kill()
        poll.wait()
        poll.stdout.close()

        sqs.send_message(QueueUrl=url, MessageBody="x")
        until(
            lambda: (
                sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"][
                    "ApproximateNumberOfMessagesNotVisible"
                ]
                == "1"
            ),
            "the dead poll takes the message",
        )
        receive = until(lambda: sqs.receive_message(QueueUrl=url, AttributeNames=["All"]).get("Messages"), "it returns")

        self.assertEqual("2", receive[0]["Attributes"]["ApproximateReceiveCount"])


# Sends one long poll and waits. Twelve digits as access key are the root of that account; its signature is not checked.
POLL = """
import http.client, json, sys
endpoint, account, url = sys.argv[1:]
connection = http.client.HTTPConnection(endpoint.removeprefix("http://"))
connection.request("POST", "/", json.dumps({"QueueUrl": url, "WaitTimeSeconds": 20}), {
    "X-Amz-Target": "AmazonSQS.ReceiveMessage", "Content-Type": "application/x-amz-json-1.0",
    "Authorization": "AWS4-HMAC-SHA256 Credential=%s/20260101/eu-west-1/sqs/aws4_request, SignedHeaders=host,"
                     " Signature=0" % account})
print("sent", flush=True)
connection.getresponse()
"""


@needs("lambda")
class Functions(Contract):
    def test_function_finds_this_cloud_and_little_else(self):
        self.account.function("f")

        env = self.account.call("f")["env"]

        self.assertEqual((shared().endpoint, REGION), (env["AWS_ENDPOINT_URL"], env["AWS_REGION"]))
        # MiniStack passes its own environment to a function; `cloud` does not pass the caller's to MiniStack.
        leaked = set(os.environ) & set(env) - {
            "PATH",
            "LANG",
            "HOME",
            "PWD",
            "TMPDIR",
            "LC_CTYPE",
            "SFN_WAIT_SCALE",
            "LOG_LEVEL",
            "PYTHONDONTWRITEBYTECODE",
        }
        self.assertEqual(set(), {name for name in leaked if not name.startswith("AWS_")})

    def test_partial_batch_returns_only_the_bad_message(self):
        sqs = self.account.client("sqs")
        _, dead = self.account.queue("dead")
        url, arn = self.account.queue(
            "q", VisibilityTimeout="1", RedrivePolicy=json.dumps({"deadLetterTargetArn": dead, "maxReceiveCount": 1})
        )
        self.account.function("f", allow("sqs:*"))
        sqs.send_message_batch(QueueUrl=url, Entries=[{"Id": b, "MessageBody": b} for b in ("good", "bad")])

        self.account.client("lambda").create_event_source_mapping(
            FunctionName="f", EventSourceArn=arn, BatchSize=10, FunctionResponseTypes=["ReportBatchItemFailures"]
        )

        dead_url = sqs.get_queue_url(QueueName="dead")["QueueUrl"]
        messages = until(lambda: sqs.receive_message(QueueUrl=dead_url).get("Messages"), "the bad message is dead")
        self.assertEqual(["bad"], [m["Body"] for m in messages])
        self.assertNotIn("Messages", sqs.receive_message(QueueUrl=dead_url))
        left = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        self.assertEqual(
            ("0", "0"), (left["ApproximateNumberOfMessages"], left["ApproximateNumberOfMessagesNotVisible"])
        )

    def test_deviation_function_without_its_zip_answers_a_mock(self):
        self.account.client("s3").create_bucket(
            Bucket=f"b-{self.account.id}", CreateBucketConfiguration={"LocationConstraint": REGION}
        )
        stack = self.account.stack(
            "s",
            F={
                "Type": "AWS::Lambda::Function",
                "Properties": {
                    "FunctionName": "ghost",
                    "Runtime": "provided.al2023",
                    "Handler": "bootstrap",
                    "Role": self.account.role_arn("r"),
                    "Code": {"S3Bucket": f"b-{self.account.id}", "S3Key": "absent.zip"},
                },
            },
        )

        answer = self.account.call("ghost")

        self.assertEqual("CREATE_COMPLETE", stack["StackStatus"])
        self.assertIn("Mock response", json.dumps(answer))
        size = self.account.client("lambda").get_function_configuration(FunctionName="ghost")["CodeSize"]
        self.assertEqual(0, size)


class Objects(Contract):
    @needs("enforcement")
    def test_presigned_urls_carry_the_roles_permission_cannot_be_altered_and_expire(self):
        bucket = f"b-{self.account.id}"
        self.account.client("s3").create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})
        role = self.account.role("r", allow("s3:PutObject", "s3:GetObject", on=f"arn:aws:s3:::{bucket}/plans/*"))

        def url(operation, key, secs=60):
            return role.client("s3").generate_presigned_url(operation, {"Bucket": bucket, "Key": key}, ExpiresIn=secs)

        put = shared().http("PUT", url("put_object", "plans/1"), body=b"plan")
        get = shared().http("GET", url("get_object", "plans/1"))

        self.assertEqual((200, b"plan"), (put.status, get.body))
        for refused in (
            url("get_object", "other"),
            url("get_object", "plans/1").replace("plans/1", "plans/2"),
            f"{shared().endpoint}/{bucket}/plans/1",
        ):
            self.assertEqual(403, shared().http("GET", refused).status, refused)
        short = url("get_object", "plans/1", 1)
        self.assertIn(b"expired", until(lambda: refusal(shared(), short, {}), "the URL expires"))


@needs("dynamodb")
class Tables(Contract):
    def test_transaction_is_all_or_nothing_and_says_which_condition_failed(self):
        table, dynamodb = self.account.table(), self.account.client("dynamodb")
        dynamodb.put_item(TableName=table, Item={"pk": {"S": "taken"}})
        fresh, taken = (
            {
                "Put": {
                    "TableName": table,
                    "Item": {"pk": {"S": name}},
                    "ConditionExpression": "attribute_not_exists(pk)",
                }
            }
            for name in ("fresh", "taken")
        )

        with self.assertRaises(ClientError) as caught:
            dynamodb.transact_write_items(TransactItems=[fresh, taken])

        reasons = [reason["Code"] for reason in caught.exception.response["CancellationReasons"]]
        self.assertEqual(["None", "ConditionalCheckFailed"], reasons)
        self.assertNotIn("Item", dynamodb.get_item(TableName=table, Key={"pk": {"S": "fresh"}}))


if __name__ == "__main__":
    unittest.main()
