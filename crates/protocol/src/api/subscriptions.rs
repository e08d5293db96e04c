//! Requests of the API about subscriptions to notifications, and its view of a subscription.

use serde::{Deserialize, Serialize};

use crate::notification::{Endpoint, NotificationFilter};
use crate::{AppName, InstallId, NotificationId};

/// `POST /v1/subscriptions`: adds a subscription to notifications. A repeated request changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AddSubscriptionRequest {
    pub endpoint: Endpoint,
    #[serde(flatten)]
    pub filter: NotificationFilter,
}

/// `POST /v1/subscriptions/remove`: removes a subscription.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RemoveSubscriptionRequest {
    pub endpoint: Endpoint,
}

/// `POST /v1/subscriptions/test`: sends a test to the subscribers that would get notifications about the install, or
/// the app. If both are absent, the test reaches the subscribers that chose neither.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TestSubscriptionsRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<AppName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install: Option<InstallId>,
}

/// A test that was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TestSent {
    /// The id that the test has at each subscriber.
    pub id: NotificationId,
}

/// A subscription to notifications.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubscriptionView {
    pub endpoint: String,
    /// `email`, `https` or `sqs`, or another protocol of SNS if somebody subscribed to the topic without Freehold.
    pub protocol: String,
    /// Whether nobody has confirmed the subscription yet. Until the confirmation nothing is sent, and SNS deletes the
    /// subscription after two days.
    pub pending: bool,
    /// The notifications that the subscriber chose; absent if they are not known: for a pending subscription, and for
    /// one whose filter Freehold did not write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<NotificationFilter>,
}

/// `GET /v1/subscriptions`: all subscriptions of the tenant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubscriptionsView {
    pub subscriptions: Vec<SubscriptionView>,
}
