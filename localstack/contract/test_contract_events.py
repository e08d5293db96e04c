"""Tests what the product relies on in the local cloud's CloudTrail. Run by `cloud test`."""

import json

from contract_cloud import Contract, allow, needs


@needs("enforcement")
class Events(Contract):
    def _events(self, session):
        pages = self.account.client("cloudtrail").get_paginator("lookup_events").paginate()
        events = [json.loads(event["CloudTrailEvent"]) for page in pages for event in page["Events"]]
        return [event for event in events if event["userIdentity"].get("arn", "").endswith(session)]

    def test_event_names_the_session_of_a_role(self):
        role = self.account.role("traced", allow("sqs:CreateQueue"))

        role.client("sqs").create_queue(QueueName="traced")

        event = self._events("assumed-role/traced/contract")[0]
        self.assertEqual(("CreateQueue", "sqs.amazonaws.com"), (event["eventName"], event["eventSource"]))
        self.assertEqual("traced", event["userIdentity"]["sessionContext"]["sessionIssuer"]["userName"])

    def test_event_names_the_action_of_a_form(self):
        role = self.account.role("looking", allow("iam:ListRoles"))

        role.client("iam").list_roles()

        self.assertEqual(["ListRoles"], [event["eventName"] for event in self._events("assumed-role/looking/contract")])

    def test_events_come_in_pages_without_data_events(self):
        url, arn = self.account.queue("many")
        role = self.account.role("busy", allow("sqs:*", on=arn))

        for _ in range(60):
            role.client("sqs").get_queue_attributes(QueueUrl=url)
        role.client("sqs").send_message(QueueUrl=url, MessageBody="x")

        names = [event["eventName"] for event in self._events("assumed-role/busy/contract")]
        self.assertEqual({"GetQueueAttributes"}, set(names))
        self.assertEqual(60, len(names))
