//! SNS: sends notifications to the tenant's topic, and manages its subscriptions.

use std::collections::{BTreeSet, HashMap};
use std::str::FromStr;
use std::time::Duration;

use async_trait::async_trait;
use aws_config::SdkConfig;
use aws_sdk_sns::Client;
use aws_sdk_sns::types::MessageAttributeValue;
use aws_smithy_types::error::metadata::ProvideErrorMetadata as _;
use aws_smithy_types::timeout::TimeoutConfig;
use freehold_app::ports::{NotificationTopic, PortError, Subscription, Subscriptions};
use freehold_protocol::notification::{Endpoint, Notification, NotificationFilter, NotificationKind};
use serde_json::{Map, Value, json};

use crate::error::port_error;

/// The longest time that a call may take, retries included. Whoever sends a notification has other work to do, and sends it again
/// later.
const CALL: Duration = Duration::from_secs(2);
/// The ARN that SNS lists for a subscription that nobody has confirmed (Amazon SNS API reference, `ListSubscriptionsByTopic`).
const PENDING: &str = "PendingConfirmation";

/// The topic of a tenant's notifications.
#[derive(Debug, Clone)]
pub struct SnsTopic {
    client: Client,
    arn: String,
}

impl SnsTopic {
    /// Returns the topic with this ARN.
    pub fn new(config: &SdkConfig, arn: impl Into<String>) -> Self {
        let limits = TimeoutConfig::builder().operation_attempt_timeout(CALL).operation_timeout(CALL).build();
        let config = aws_sdk_sns::config::Builder::from(config).timeout_config(limits);
        Self { client: Client::from_conf(config.build()), arn: arn.into() }
    }
}

#[async_trait]
impl NotificationTopic for SnsTopic {
    async fn publish(&self, notification: &Notification) -> Result<(), PortError> {
        let what = "topic of notifications";
        let unwritable =
            |error: serde_json::Error| PortError::Failed { what: what.to_owned(), reason: error.to_string() };
        let message = serde_json::to_string(notification).map_err(unwritable)?;
        // With `json`, each protocol gets its own text: a person reads sentences, a program reads JSON.
        let texts = json!({ "default": message, "email": notification.mail() }).to_string();
        let publish = self.client.publish().topic_arn(&self.arn).subject(&notification.subject);
        let publish =
            publish.message_structure("json").message(texts).set_message_attributes(Some(attributes(notification)?));
        publish.send().await.map_err(|error| port_error(what, error))?;
        Ok(())
    }
}

/// Returns the attributes by which SNS filters.
fn attributes(notification: &Notification) -> Result<HashMap<String, MessageAttributeValue>, PortError> {
    let named = [
        ("kind", Some(notification.kind.as_str())),
        ("id", Some(notification.id.as_str())),
        ("app", notification.app.as_ref().map(|app| app.as_str())),
        ("install", notification.install.as_ref().map(|install| install.as_str())),
    ];
    let present = named.into_iter().filter_map(|(name, value)| Some((name, value?)));
    present
        .map(|(name, value)| {
            let built = MessageAttributeValue::builder().data_type("String").string_value(value).build();
            let failed = |error| PortError::Failed { what: format!("attribute `{name}`"), reason: format!("{error}") };
            Ok((name.to_owned(), built.map_err(failed)?))
        })
        .collect()
}

/// The subscriptions of a tenant's topic.
#[derive(Debug, Clone)]
pub struct SnsSubscriptions {
    client: Client,
    arn: String,
    /// The ARN of the queue with the notifications that an endpoint did not accept.
    dead_letters: String,
}

impl SnsSubscriptions {
    /// Returns the subscriptions of the topic `arn`.
    pub fn new(config: &SdkConfig, arn: impl Into<String>, dead_letters: impl Into<String>) -> Self {
        Self { client: Client::new(config), arn: arn.into(), dead_letters: dead_letters.into() }
    }

    /// Returns whether a subscription is confirmed, and its filter. The filter is `None` if Freehold did not write it.
    async fn look_at(&self, arn: &str) -> Result<(bool, Option<NotificationFilter>), PortError> {
        let asked = self.client.get_subscription_attributes().subscription_arn(arn).send().await;
        let answer = match asked {
            Ok(answer) => answer,
            // The subscription has just been removed.
            Err(error) if error.code() == Some("NotFound") => return Ok((true, None)),
            Err(error) => return Err(port_error("subscription", error)),
        };
        let attribute = |name| answer.attributes().and_then(|all| all.get(name)).map(String::as_str);
        let is_confirmed = attribute("PendingConfirmation") != Some("true");
        Ok((is_confirmed, read_policy(attribute("FilterPolicy").unwrap_or("{}"))))
    }
}

#[async_trait]
impl Subscriptions for SnsSubscriptions {
    async fn subscribe(&self, endpoint: &Endpoint, filter: &NotificationFilter) -> Result<(), PortError> {
        let redrive = json!({ "deadLetterTargetArn": self.dead_letters }).to_string();
        let subscribe = self.client.subscribe().topic_arn(&self.arn).protocol(endpoint.protocol());
        let mut subscribe = subscribe.endpoint(endpoint.as_str()).attributes("RedrivePolicy", redrive);
        if let Some(policy) = policy(filter) {
            subscribe = subscribe.attributes("FilterPolicy", policy);
        }
        subscribe.send().await.map_err(|error| port_error("topic of notifications", error))?;
        Ok(())
    }

    async fn subscriptions(&self) -> Result<Vec<Subscription>, PortError> {
        let mut found = Vec::new();
        let mut next: Option<String> = None;
        loop {
            let list = self.client.list_subscriptions_by_topic().topic_arn(&self.arn).set_next_token(next);
            let page = list.send().await.map_err(|error| port_error("topic of notifications", error))?;
            for one in page.subscriptions() {
                let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
                let mut arn = one.subscription_arn().filter(|arn| *arn != PENDING && arn.starts_with("arn:"));
                let mut filter = None;
                if let Some(listed) = arn {
                    let (is_confirmed, found) = self.look_at(listed).await?;
                    (arn, filter) = (arn.filter(|_| is_confirmed), found);
                }
                let (endpoint, protocol) = (text(one.endpoint()), text(one.protocol()));
                found.push(Subscription { endpoint, protocol, arn: arn.map(str::to_owned), filter });
            }
            next = page.next_token().filter(|token| !token.is_empty()).map(str::to_owned);
            if next.is_none() {
                return Ok(found);
            }
        }
    }

    async fn unsubscribe(&self, arn: &str) -> Result<(), PortError> {
        match self.client.unsubscribe().subscription_arn(arn).send().await {
            Err(error) if error.code() != Some("NotFound") => Err(port_error("subscription", error)),
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

/// Returns the filter policy of SNS for a choice; `None` for a choice of all notifications. A subscriber that chose
/// kinds gets tests too.
fn policy(filter: &NotificationFilter) -> Option<String> {
    let mut policy = Map::new();
    if !filter.only.is_empty() {
        let kinds: BTreeSet<NotificationKind> = filter.only.iter().copied().chain([NotificationKind::Test]).collect();
        policy.insert("kind".to_owned(), kinds.iter().map(|kind| kind.as_str()).collect());
    }
    if let Some(app) = &filter.app {
        policy.insert("app".to_owned(), json!([app]));
    }
    if let Some(install) = &filter.install {
        policy.insert("install".to_owned(), json!([install]));
    }
    (!policy.is_empty()).then(|| Value::Object(policy).to_string())
}

/// Returns the choice that [`policy`] wrote; `None` for any other policy.
fn read_policy(text: &str) -> Option<NotificationFilter> {
    let mut written: Map<String, Value> = serde_json::from_str(text).ok()?;
    let mut of = |name: &str| match written.remove(name) {
        Some(value) => serde_json::from_value::<Vec<String>>(value).ok(),
        None => Some(Vec::new()),
    };
    let (kinds, apps, installs) = (of("kind")?, of("app")?, of("install")?);
    if !written.is_empty() {
        return None;
    }
    let mut only = kinds.iter().map(|kind| kind.parse().ok()).collect::<Option<BTreeSet<NotificationKind>>>()?;
    if only.len() > 1 {
        only.remove(&NotificationKind::Test);
    }
    Some(NotificationFilter { app: at_most_one(&apps)?, install: at_most_one(&installs)?, only })
}

/// Returns the only name, or `Some(None)` without a name. Returns `None` for several names, and for an invalid name.
fn at_most_one<T: FromStr>(names: &[String]) -> Option<Option<T>> {
    match names {
        [] => Some(None),
        [name] => name.parse().ok().map(Some),
        [..] => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::silence::Silence;

    use super::*;

    fn filter(app: Option<&str>, install: Option<&str>, only: &[NotificationKind]) -> NotificationFilter {
        NotificationFilter {
            app: app.map(|app| app.parse().unwrap()),
            install: install.map(|install| install.parse().unwrap()),
            only: only.iter().copied().collect(),
        }
    }

    #[test]
    fn a_choice_becomes_a_filter_policy_that_lets_tests_pass() {
        let chosen = filter(Some("shop"), Some("globex"), &[NotificationKind::RunnerAway]);

        let policy: Value = serde_json::from_str(&policy(&chosen).unwrap()).unwrap();

        assert_eq!(policy, json!({ "kind": ["runner-away", "test"], "app": ["shop"], "install": ["globex"] }));
    }

    #[test]
    fn a_policy_is_read_as_it_was_chosen() {
        for chosen in [
            filter(None, None, &[]),
            filter(Some("shop"), None, &[]),
            filter(None, Some("globex"), &[NotificationKind::DriftFound, NotificationKind::WorkflowFailed]),
            filter(None, None, &[NotificationKind::Test]),
        ] {
            assert_eq!(read_policy(&policy(&chosen).unwrap_or("{}".into())), Some(chosen));
        }
    }

    #[test]
    fn a_policy_that_freehold_did_not_write_is_not_known() {
        for text in ["", "[]", r#"{"kind":["other"]}"#, r#"{"app":["a","b"]}"#, r#"{"app":["shop"],"more":[1]}"#] {
            assert_eq!(read_policy(text), None, "{text}");
        }
    }

    #[tokio::test]
    async fn a_topic_that_does_not_answer_holds_a_call_for_two_seconds() {
        let silence = Silence::new();
        let topic = SnsTopic::new(&silence.config(), "arn:aws:sns:eu-west-1:111111111111:fh-acme--notifications");
        let notification =
            freehold_domain::notification::test(None, None, "key", freehold_protocol::Timestamp::default());

        let error = topic.publish(&notification).await.unwrap_err();

        assert!(matches!(error, PortError::Transient { .. }), "{error}");
        assert!(error.to_string().contains(&format!("occurred after {CALL:?}")), "{error}");
    }
}
