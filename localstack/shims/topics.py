"""SNS: the resource of the actions of a subscription."""

from ministack.core import iam_actions

from shims.replace import replace

# Actions of one subscription, whose ARN is that of its topic, a colon and an id.
OF_A_SUBSCRIPTION = ("Unsubscribe", "GetSubscriptionAttributes", "SetSubscriptionAttributes")


def apply():
    # AWS names the topic as the resource in its errors ("is not authorized to perform: SNS:Unsubscribe on resource:
    # arn:aws:sns:...:TOPIC"); MiniStack takes `*`.
    replace(iam_actions, "extract_resource_arn", _topic_of_subscription)


def _topic_of_subscription(original):
    def extract_resource_arn(service, method, path, headers, body, query_params, *more, **named):
        asked = query_params.get("Action", "")
        action = asked[0] if isinstance(asked, list) else asked
        subscription = query_params.get("SubscriptionArn", "")
        subscription = subscription[0] if isinstance(subscription, list) else subscription
        if service == "sns" and action in OF_A_SUBSCRIPTION and subscription:
            return subscription.rpartition(":")[0]
        return original(service, method, path, headers, body, query_params, *more, **named)

    return extract_resource_arn
