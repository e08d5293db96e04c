"""Contract tests of topics: which subscriber gets which text, what a filter lets pass, and who may send."""

import json
import unittest

from contract_cloud import Contract, allow, needs, until


class Topics(Contract):
    def setUp(self):
        super().setUp()
        self.sns, self.sqs = self.account.client("sns"), self.account.client("sqs")
        self.topic = self.sns.create_topic(Name="told")["TopicArn"]

    def subscribed(self, name, policy=None):
        """Subscribes a queue with a filter, and returns its URL and the subscription."""
        url, arn = self.account.queue(name)
        sent_by_topic = {
            "Principal": {"Service": "sns.amazonaws.com"},
            "Condition": {"ArnEquals": {"aws:SourceArn": self.topic}},
        }
        statement = {"Effect": "Allow", "Action": "sqs:SendMessage", "Resource": arn, **sent_by_topic}
        policy_of_queue = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        self.sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy_of_queue})
        attributes = {"FilterPolicy": json.dumps(policy)} if policy else {}
        made = self.sns.subscribe(TopicArn=self.topic, Protocol="sqs", Endpoint=arn, Attributes=attributes)
        return url, made["SubscriptionArn"]

    def publish(self, text, **attributes):
        named = {name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()}
        self.sns.publish(
            TopicArn=self.topic,
            Subject="Freehold: test",
            MessageStructure="json",
            Message=json.dumps({"default": text, "email": "a text for people"}),
            MessageAttributes=named,
        )

    def taken(self, url):
        """Returns the envelopes in a queue, once there is one."""

        def receive():
            return self.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages")

        return [json.loads(message["Body"]) for message in until(receive, "a message")]

    def test_queue_gets_the_default_text_with_the_subject_and_the_attributes(self):
        url, _ = self.subscribed("all")

        self.publish("for programs", kind="test", install="globex")

        [envelope] = self.taken(url)
        self.assertEqual((envelope["Message"], envelope["Subject"]), ("for programs", "Freehold: test"))
        self.assertEqual(envelope["TopicArn"], self.topic)
        self.assertEqual(envelope["MessageAttributes"]["install"], {"Type": "String", "Value": "globex"})

    def test_filter_takes_a_message_whose_attributes_are_all_there_and_all_fit(self):
        url, _ = self.subscribed("some", {"kind": ["workflow-failed", "test"], "install": ["globex"]})

        self.publish("another kind", kind="workflow-succeeded", install="globex")
        self.publish("another install", kind="test", install="initech")
        self.publish("no install", kind="test")
        self.publish("fits", kind="test", install="globex")

        self.assertEqual([envelope["Message"] for envelope in self.taken(url)], ["fits"])

    def test_queue_is_confirmed_and_listed_by_its_arn_with_its_filter(self):
        # The local cloud confirms a mailbox at once, and AWS asks its owner, so nothing is asserted of one here.
        policy = {"kind": ["test"]}
        _, arn = self.subscribed("some", policy)

        [subscription] = self.sns.list_subscriptions_by_topic(TopicArn=self.topic)["Subscriptions"]
        attributes = self.sns.get_subscription_attributes(SubscriptionArn=arn)["Attributes"]

        self.assertEqual((subscription["Protocol"], subscription["SubscriptionArn"]), ("sqs", arn))
        self.assertEqual((json.loads(attributes["FilterPolicy"]), attributes["PendingConfirmation"]), (policy, "false"))
        self.assertTrue(arn.startswith(f"{self.topic}:"), arn)

    def test_subscription_that_is_removed_gets_nothing_and_is_not_listed(self):
        url, arn = self.subscribed("gone")
        kept, _ = self.subscribed("kept")

        self.sns.unsubscribe(SubscriptionArn=arn)
        self.publish("after", kind="test")

        self.taken(kept)
        self.assertNotIn("Messages", self.sqs.receive_message(QueueUrl=url))
        subscriptions = self.sns.list_subscriptions_by_topic(TopicArn=self.topic)["Subscriptions"]
        self.assertNotIn(arn, [one["SubscriptionArn"] for one in subscriptions])

    @needs("enforcement")
    def test_role_publishes_to_the_topic_that_its_policy_names_and_to_no_other(self):
        other = self.sns.create_topic(Name="other")["TopicArn"]
        role = self.account.role("teller", allow("sns:Publish", on=self.topic))

        role.client("sns").publish(TopicArn=self.topic, Message="x")

        self.refused("AuthorizationError", role.client("sns").publish, TopicArn=other, Message="x")

    @needs("enforcement")
    def test_role_removes_subscriptions_of_the_topic_that_its_policy_names_and_of_no_other(self):
        _, arn = self.subscribed("mine")
        theirs = self.sns.create_topic(Name="theirs")["TopicArn"]
        other = self.sns.subscribe(TopicArn=theirs, Protocol="sqs", Endpoint=self.account.queue("q")[1])[
            "SubscriptionArn"
        ]
        role = self.account.role("keeper", allow("sns:GetSubscriptionAttributes", "sns:Unsubscribe", on=self.topic))

        role.client("sns").get_subscription_attributes(SubscriptionArn=arn)
        role.client("sns").unsubscribe(SubscriptionArn=arn)

        for call in (role.client("sns").get_subscription_attributes, role.client("sns").unsubscribe):
            self.refused("AuthorizationError", call, SubscriptionArn=other)


if __name__ == "__main__":
    unittest.main()
