"""The queues of the tenant stack."""

import unittest

import templates
from templates import of_type


class Queues(unittest.TestCase):
    def test_every_queue_keeps_messages_for_fourteen_days_and_not_for_four(self):
        queues = of_type(templates.tenant(), "AWS::SQS::Queue")

        self.assertGreaterEqual(len(queues), 6)
        for name, queue in queues.items():
            self.assertEqual(queue["Properties"]["MessageRetentionPeriod"], 14 * 24 * 3600, name)
