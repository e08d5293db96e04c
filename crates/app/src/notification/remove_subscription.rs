//! Removes a subscription to the notifications.

use std::sync::Arc;

use freehold_protocol::api::{RemoveSubscriptionRequest, SubscriptionsView};

use crate::AppError;
use crate::notification::list_subscriptions::view;
use crate::ports::Subscriptions;

/// The use case that removes a subscription, with its port.
#[derive(Clone)]
pub struct RemoveSubscription {
    pub subscriptions: Arc<dyn Subscriptions>,
}

impl RemoveSubscription {
    /// Removes the subscription of an endpoint, and returns the remaining subscriptions. A missing subscription counts
    /// as removed.
    ///
    /// # Errors
    /// Conflict for a subscription that nobody has confirmed, which SNS does not remove on request, or the errors of
    /// the port.
    pub async fn remove(&self, request: &RemoveSubscriptionRequest) -> Result<SubscriptionsView, AppError> {
        let endpoint = &request.endpoint;
        let mut left = Vec::new();
        for one in self.subscriptions.subscriptions().await? {
            match &one.arn {
                _ if one.endpoint != endpoint.as_str() => left.push(view(one)),
                Some(arn) => self.subscriptions.unsubscribe(arn).await?,
                None => {
                    return Err(AppError::conflict(format!(
                        "nobody has confirmed the subscription of `{endpoint}`, so nothing is sent there; SNS forgets it \
                         after two days"
                    )));
                }
            }
        }
        Ok(SubscriptionsView { subscriptions: left })
    }
}
