//! Lists the webhooks of the tenant.

use freehold_domain::webhook::Webhook;
use freehold_protocol::api::{WebhookView, WebhooksView};

use super::row;
use crate::AppError;
use crate::ports::Store;

/// Returns all webhooks, by name.
///
/// # Errors
/// The store's errors.
pub async fn list_webhooks(store: &dyn Store) -> Result<WebhooksView, AppError> {
    Ok(WebhooksView { webhooks: row::webhooks(store).await?.into_iter().map(view).collect() })
}

/// Returns the API's view of a webhook.
pub(super) fn view(webhook: Webhook) -> WebhookView {
    let Webhook { name, key, starts, added_at, added_by, taken: _ } = webhook;
    let path = format!("/v1/webhooks/{name}/calls");
    WebhookView { webhook: name, key, starts, added_at, added_by, path }
}
