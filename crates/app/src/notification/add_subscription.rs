//! Subscribes a mailbox, a URL or a queue to the notifications.

use std::sync::Arc;

use freehold_protocol::api::{AddSubscriptionRequest, SubscriptionView};
use freehold_protocol::notification::NotificationFilter;

use crate::AppError;
use crate::notification::list_subscriptions::view;
use crate::ports::{Store, Subscription, Subscriptions};
use crate::table;

/// The maximum number of subscriptions of a tenant. A topic takes at most 200 with a filter (Amazon SNS quotas).
pub const MAX_SUBSCRIPTIONS: usize = 100;

/// The use case that adds a subscription, with its ports.
#[derive(Clone)]
pub struct AddSubscription {
    pub store: Arc<dyn Store>,
    pub subscriptions: Arc<dyn Subscriptions>,
}

impl AddSubscription {
    /// Adds a subscription. A repeated request changes nothing, but SNS asks for the confirmation again while nobody
    /// has confirmed.
    ///
    /// # Errors
    /// NotFound for an app or an install that does not exist, Conflict for an endpoint that is subscribed with another choice and
    /// when the tenant has too many subscriptions, or the errors of the ports.
    pub async fn add(&self, request: &AddSubscriptionRequest) -> Result<SubscriptionView, AppError> {
        let AddSubscriptionRequest { endpoint, filter } = request;
        self.check(filter).await?;
        let all = self.subscriptions.subscriptions().await?;
        let known = all.iter().find(|one| one.endpoint == endpoint.as_str());
        match known {
            Some(Subscription { arn: Some(_), filter: Some(chosen), .. }) if chosen == filter => {}
            Some(Subscription { arn: Some(_), .. }) => {
                return Err(AppError::conflict(format!(
                    "`{endpoint}` is subscribed with another choice; remove it first with `freehold subscription remove \
                     {endpoint}`"
                )));
            }
            None if all.len() >= MAX_SUBSCRIPTIONS => {
                return Err(AppError::conflict(format!(
                    "the tenant has {} subscriptions, and may have at most {MAX_SUBSCRIPTIONS}; remove one first with \
                     `freehold subscription remove ENDPOINT`",
                    all.len()
                )));
            }
            Some(Subscription { arn: None, .. }) | None => self.subscriptions.subscribe(endpoint, filter).await?,
        }
        let all = self.subscriptions.subscriptions().await?;
        let known = all.into_iter().find(|one| one.endpoint == endpoint.as_str());
        // The list of SNS may lag behind a new subscription.
        let added = known.unwrap_or_else(|| Subscription {
            endpoint: endpoint.to_string(),
            protocol: endpoint.protocol().to_owned(),
            arn: None,
            filter: None,
        });
        Ok(view(Subscription { filter: Some(filter.clone()), ..added }))
    }

    async fn check(&self, filter: &NotificationFilter) -> Result<(), AppError> {
        if let Some(app) = &filter.app {
            table::app(&*self.store, app).await?;
        }
        let Some(id) = &filter.install else { return Ok(()) };
        let install = table::install(&*self.store, id).await?.value;
        match (&filter.app, install.app()) {
            (Some(app), Some(of)) if app != of => Err(AppError::conflict(format!(
                "install `{id}` belongs to app `{of}`, not to `{app}`; leave out `--app`"
            ))),
            _ => Ok(()),
        }
    }
}
