"""Contract tests of queues and the functions behind them: who sent a message, and which function reads a queue."""

import unittest

from contract_cloud import REGION, Contract, allow, differs, needs


class Senders(Contract):
    @differs("the sender of a message has one constant id")
    def test_sender_of_a_message_is_the_role_and_its_session(self):
        url, arn = self.account.queue("sent")
        role = self.account.role("reporter", allow("sqs:SendMessage", on=arn))
        made = self.account.client("iam").get_role(RoleName="reporter")["Role"]["RoleId"]

        role.client("sqs").send_message(QueueUrl=url, MessageBody="x")

        message = self.account.client("sqs").receive_message(QueueUrl=url, AttributeNames=["All"])["Messages"][0]
        self.assertEqual(made, message["Attributes"]["SenderId"].partition(":")[0])
        self.assertTrue(made.startswith("AROA"), made)


@needs("lambda")
class Mappings(Contract):
    def test_queue_is_mapped_to_a_function_once(self):
        _, arn = self.account.queue("q")
        self.account.function("f", allow("sqs:*"))
        mapping = {"FunctionName": "f", "EventSourceArn": arn, "BatchSize": 10}
        self.account.client("lambda").create_event_source_mapping(**mapping)

        self.refused("ResourceConflictException", self.account.client("lambda").create_event_source_mapping, **mapping)

    def test_function_of_a_mapping_is_a_condition_key(self):
        _, arn = self.account.queue("q")
        _, other = self.account.queue("other")
        for name in ("mine", "theirs"):
            self.account.function(name, allow("sqs:*"))
        function = f"arn:aws:lambda:{REGION}:{self.account.id}:function:mine"
        condition = {"ArnEquals": {"lambda:FunctionArn": function}}
        role = self.account.role("mapper", allow("lambda:CreateEventSourceMapping", Condition=condition))

        role.client("lambda").create_event_source_mapping(FunctionName="mine", EventSourceArn=arn)

        refused = role.client("lambda").create_event_source_mapping
        self.refused("AccessDeniedException", refused, FunctionName="theirs", EventSourceArn=other)


if __name__ == "__main__":
    unittest.main()
