"""The queues and the topic of the tenant stack."""

import unittest

import templates
from templates import of_type, properties


class Queues(unittest.TestCase):
    def test_every_queue_keeps_messages_for_fourteen_days_and_not_for_four(self):
        queues = of_type(templates.tenant(), "AWS::SQS::Queue")

        self.assertGreaterEqual(len(queues), 6)
        for name, queue in queues.items():
            self.assertEqual(queue["Properties"]["MessageRetentionPeriod"], 14 * 24 * 3600, name)

    def test_notifications_are_encrypted_and_what_nobody_took_is_kept(self):
        template = templates.tenant()
        topic = properties(template, "NotificationsTopic")
        queue = properties(template, "NotificationsDeadLetters")
        [statement] = properties(template, "NotificationsDeadLettersPolicy")["PolicyDocument"]["Statement"]

        self.assertEqual(topic["KmsMasterKeyId"], "alias/aws/sns")
        self.assertNotIn("FifoTopic", topic)
        self.assertEqual((queue["SqsManagedSseEnabled"], queue["MessageRetentionPeriod"]), (True, 1209600))
        self.assertEqual(statement["Principal"], {"Service": "sns.amazonaws.com"})
        self.assertEqual(statement["Condition"], {"ArnEquals": {"aws:SourceArn": {"Ref": "NotificationsTopic"}}})

    def test_every_queue_is_encrypted_and_ends_in_dead_letters(self):
        receives = {"ReportsQueue": 1000, "DispatchQueue": 1000, "GrantsQueue": 1000, "BuildQueue": 200}
        queues = of_type(templates.tenant(), "AWS::SQS::Queue")

        self.assertEqual(set(queues), {*receives, *(f"{of}DeadLetters" for of in ("", "Orders", "Notifications"))})
        for name, queue in queues.items():
            self.assertTrue(queue["Properties"]["SqsManagedSseEnabled"], name)
            self.assertEqual(
                queue["Properties"].get("RedrivePolicy", {}).get("maxReceiveCount"), receives.get(name), name
            )

    def test_a_queue_is_invisible_for_six_times_its_functions_limit(self):
        for name, source in of_type(templates.tenant(), "AWS::Lambda::EventSourceMapping").items():
            function = properties(templates.tenant(), source["Properties"]["FunctionName"]["Ref"])
            queue = properties(templates.tenant(), source["Properties"]["EventSourceArn"]["Fn::GetAtt"][0])
            self.assertGreaterEqual(queue["VisibilityTimeout"], 6 * function["Timeout"], name)
            self.assertEqual(source["Properties"]["FunctionResponseTypes"], ["ReportBatchItemFailures"], name)
            self.assertEqual(source["Properties"]["BatchSize"], 10, name)
