//! Adds a webhook. The tenant stores the webhook's public key; the caller of the webhook has the private key.

use std::sync::Arc;

use freehold_domain::webhook::{MAX_WEBHOOKS, Webhook};
use freehold_protocol::api::{AddWebhookRequest, WebhookTask, WebhookView};
use freehold_protocol::order::AskedBy;

use super::list_webhooks::view;
use super::row::{self, ReservedKey};
use crate::AppError;
use crate::ports::{Clock, Expect, Store};
use crate::table::{self, Decided, load, put};

/// The use case that adds a webhook, with its ports.
#[derive(Clone)]
pub struct AddWebhook {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    /// Whether the tenant's API accepts calls of webhooks.
    pub are_on: bool,
}

impl AddWebhook {
    /// Adds a webhook on request of `by`. A repeated request changes nothing. Each call checks whether the install has
    /// the action or the runbook, because another version may not have it.
    ///
    /// # Errors
    /// Conflict while the tenant accepts no calls, for a name or a key that another webhook has, and when the tenant
    /// has too many webhooks; NotFound for an install or an app that does not exist; or the store's errors.
    pub async fn add(&self, request: &AddWebhookRequest, by: &AskedBy) -> Result<WebhookView, AppError> {
        let AddWebhookRequest { webhook: name, key, starts } = request;
        if !self.are_on {
            return Err(AppError::conflict(
                "this tenant accepts no calls of webhooks; `freehold tenant deploy --webhooks on` opens the route, \
                 which anybody can reach, but which accepts signed calls only",
            ));
        }
        let store = &*self.store;
        match starts {
            WebhookTask::MoveChannel { app, .. } => drop(table::app(store, app).await?),
            WebhookTask::DeployComponents { install }
            | WebhookTask::RunAction { install, .. }
            | WebhookTask::RunRunbook { install, .. } => {
                table::install(store, install).await?.value.require_app()?;
            }
        }
        let added = table::change(store, ("webhook", name), || async {
            let all = row::webhooks(store).await?;
            if let Some(known) = all.iter().find(|known| known.name == *name) {
                if known.key == *key && known.starts == *starts {
                    return Ok(Decided::Keep(known.clone()));
                }
                return Err(AppError::conflict(format!(
                    "webhook `{name}` exists already, and has another key or starts something else; remove it first \
                     with `freehold webhook remove {name}` and use another key for the new webhook, or choose another \
                     name"
                )));
            }
            let reserved = ReservedKey { key: key.key_id(), webhook: name.clone() };
            if let Some(other) = load::<ReservedKey>(store, &row::reserved_key(&reserved.key)).await? {
                return Err(AppError::conflict(format!(
                    "webhook `{}` has this key, and a call signed for one webhook would be valid for both; give \
                     `{name}` a key of its own, with another `--key-file`",
                    other.value.webhook
                )));
            }
            if all.len() >= MAX_WEBHOOKS {
                return Err(AppError::conflict(format!(
                    "the tenant has {MAX_WEBHOOKS} webhooks, which is the maximum; remove one with `freehold webhook remove NAME`"
                )));
            }
            let added = Webhook {
                name: name.clone(),
                key: key.clone(),
                starts: starts.clone(),
                added_at: self.clock.now(),
                added_by: by.clone(),
                taken: Vec::new(),
            };
            Ok(Decided::Commit(vec![put(&added, Expect::Absent)?, put(&reserved, Expect::Absent)?], added))
        })
        .await?;
        tracing::warn!("Added webhook `{name}`, which {starts}, on request of {by}");
        Ok(view(added))
    }
}
