//! The rows of webhooks and of their keys.

use freehold_domain::absence::Absence;
use freehold_domain::install::Install;
use freehold_domain::webhook::Webhook;
use freehold_protocol::{InstallId, KeyId, WebhookName};
use serde::{Deserialize, Serialize};

use crate::AppError;
use crate::ports::{Key, Store, Write};
use crate::table::{Record, Stored, load, load_all, load_all_stored};

/// The partition of the webhooks.
const WEBHOOKS: &str = "webhooks";
/// The partition of the webhooks' keys. A key belongs to one webhook, so that a call of one webhook is never valid for
/// another.
const KEYS: &str = "webhook-keys";

/// The row that reserves a key for a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ReservedKey {
    pub(super) key: KeyId,
    pub(super) webhook: WebhookName,
}

impl Record for ReservedKey {
    fn key(&self) -> Key {
        reserved_key(&self.key)
    }
}

/// Returns the key of the row that reserves a key.
pub(super) fn reserved_key(key: &KeyId) -> Key {
    Key { pk: KEYS.to_owned(), sk: key.to_string() }
}

/// Returns the writes that remove a webhook, if the webhook has not changed since it was read.
pub(super) fn removal(stored: &Stored<Webhook>) -> Vec<Write> {
    let key = reserved_key(&stored.value.key.key_id());
    vec![Write::DeleteAt { key: stored.value.key(), rev: stored.rev }, Write::Delete { key }]
}

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
    let all: Vec<Stored<Webhook>> = load_all_stored(store, WEBHOOKS, "").await?;
    Ok(all.iter().filter(|stored| stored.value.starts.install() == Some(install)).flat_map(removal).collect())
}

/// Returns whether a webhook was added for this install, and not for an earlier install with the same name.
pub(super) fn is_of(webhook: &Webhook, install: &Install) -> bool {
    webhook.starts.install() == Some(&install.id) && install.created_at <= webhook.added_at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_and_written_as_in_the_golden_rows() {
        for rows in [include_str!("../../golden/rows.json"), include_str!("../../golden/previous/rows.json")] {
            let rows: Vec<serde_json::Value> = serde_json::from_str(rows).unwrap();
            let row = rows.iter().find(|row| row["type"] == "ReservedKey").unwrap();
            let key: ReservedKey = serde_json::from_value(row["body"].clone()).unwrap();

            assert_eq!(key.key().sk, row["sk"]);
            assert_eq!(serde_json::to_value(key).unwrap(), row["body"]);
        }
    }
}
