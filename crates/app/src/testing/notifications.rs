//! The topic of notifications and its subscriptions in memory.

use async_trait::async_trait;
use freehold_protocol::notification::{Endpoint, Notification, NotificationFilter};

use super::lock::lock;
use super::memory::Memory;
use crate::ports::{NotificationTopic, PortError, Subscription, Subscriptions};

#[async_trait]
impl NotificationTopic for Memory {
    async fn publish(&self, notification: &Notification) -> Result<(), PortError> {
        self.faults.run("publish", || lock(&self.notifications).push(notification.clone()))
    }
}

/// A queue confirms at once; a mailbox and a URL wait for their owners.
#[async_trait]
impl Subscriptions for Memory {
    async fn subscribe(&self, endpoint: &Endpoint, filter: &NotificationFilter) -> Result<(), PortError> {
        self.faults.run("subscribe", || {
            let arn = matches!(endpoint, Endpoint::Queue(_)).then(|| format!("arn:{endpoint}"));
            let mut all = lock(&self.subscriptions);
            all.retain(|one| one.endpoint != endpoint.as_str());
            let filter = arn.is_some().then(|| filter.clone());
            all.push(Subscription {
                endpoint: endpoint.to_string(),
                protocol: endpoint.protocol().to_owned(),
                arn,
                filter,
            });
        })
    }

    async fn subscriptions(&self) -> Result<Vec<Subscription>, PortError> {
        self.faults.run("subscriptions", || lock(&self.subscriptions).clone())
    }

    async fn unsubscribe(&self, arn: &str) -> Result<(), PortError> {
        self.faults.run("unsubscribe", || lock(&self.subscriptions).retain(|one| one.arn.as_deref() != Some(arn)))
    }
}
