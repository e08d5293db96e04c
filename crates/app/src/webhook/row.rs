//! The rows of webhooks: `webhooks` and the name.

use freehold_domain::absence::Absence;
use freehold_domain::install::Install;
use freehold_domain::webhook::Webhook;
use freehold_protocol::{InstallId, WebhookName};

use crate::AppError;
use crate::ports::{Key, Store, Write};
use crate::table::{Record, Stored, load, load_all};

/// The partition of the webhooks.
const WEBHOOKS: &str = "webhooks";

impl Record for Webhook {
    fn key(&self) -> Key {
        webhook_key(&self.name)
    }
}

/// Returns the key of a webhook's row.
pub(super) fn webhook_key(name: &WebhookName) -> Key {
    Key { pk: WEBHOOKS.to_owned(), sk: name.to_string() }
}

/// Loads a webhook.
///
/// # Errors
/// The store's errors.
pub(super) async fn find(store: &dyn Store, name: &WebhookName) -> Result<Option<Stored<Webhook>>, AppError> {
    load(store, &webhook_key(name)).await
}

/// Loads a webhook that must exist.
///
/// # Errors
/// NotFound, or the store's errors.
pub(super) async fn webhook(store: &dyn Store, name: &WebhookName) -> Result<Stored<Webhook>, AppError> {
    Ok(find(store, name).await?.ok_or_else(|| Absence::Webhook(name.clone()))?)
}

/// Loads all webhooks, by name.
///
/// # Errors
/// The store's errors.
pub(super) async fn webhooks(store: &dyn Store) -> Result<Vec<Webhook>, AppError> {
    load_all(store, WEBHOOKS, "").await
}

/// Returns the writes that remove the webhooks of an install.
///
/// # Errors
/// The store's errors.
pub(crate) async fn leaving(store: &dyn Store, install: &InstallId) -> Result<Vec<Write>, AppError> {
    let all = webhooks(store).await?;
    let own = all.iter().filter(|webhook| webhook.starts.install() == Some(install));
    Ok(own.map(|webhook| Write::Delete { key: webhook.key() }).collect())
}

/// Returns whether a webhook was added for this install, and not for an earlier one with the same name.
pub(super) fn is_of(webhook: &Webhook, install: &Install) -> bool {
    webhook.starts.install() == Some(&install.id) && install.created_at <= webhook.added_at
}
