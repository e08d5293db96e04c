//! Removes a webhook: its calls are refused from then on.

use std::sync::Arc;

use freehold_protocol::WebhookName;
use freehold_protocol::api::WebhooksView;

use super::list_webhooks::list_webhooks;
use super::row;
use crate::AppError;
use crate::ports::Store;
use crate::table::{self, Decided};

/// The use case that removes a webhook, with its port.
#[derive(Clone)]
pub struct RemoveWebhook {
    pub store: Arc<dyn Store>,
}

impl RemoveWebhook {
    /// Removes a webhook, and returns the remaining webhooks.
    ///
    /// # Errors
    /// NotFound, or the store's errors.
    pub async fn remove(&self, name: &WebhookName) -> Result<WebhooksView, AppError> {
        table::change(&*self.store, ("webhook", name), || async {
            let stored = row::webhook(&*self.store, name).await?;
            Ok(Decided::Commit(row::removal(&stored), ()))
        })
        .await?;
        tracing::warn!("Removed webhook `{name}`");
        list_webhooks(&*self.store).await
    }
}
