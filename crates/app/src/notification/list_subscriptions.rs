//! Lists the subscriptions to the notifications.

use freehold_protocol::api::{SubscriptionView, SubscriptionsView};

use crate::AppError;
use crate::ports::{Subscription, Subscriptions};

/// Returns all subscriptions, also those that nobody has confirmed.
///
/// # Errors
/// The errors of the port.
pub async fn list_subscriptions(subscriptions: &dyn Subscriptions) -> Result<SubscriptionsView, AppError> {
    let all = subscriptions.subscriptions().await?;
    Ok(SubscriptionsView { subscriptions: all.into_iter().map(view).collect() })
}

/// Returns the API's view of a subscription.
pub(super) fn view(one: Subscription) -> SubscriptionView {
    let Subscription { endpoint, protocol, arn, filter } = one;
    SubscriptionView { endpoint, protocol, pending: arn.is_none(), filter }
}
