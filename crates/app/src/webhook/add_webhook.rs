//! Adds a webhook. The tenant keeps the public half of its key; whoever calls has the private one.

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
    /// Whether the tenant's API takes calls of webhooks.
    pub are_on: bool,
}

impl AddWebhook {
    /// Adds a webhook on request of `by`. A repeated request changes nothing. Whether the install has the action or the runbook
    /// is decided at each call, because the next version may have another.
    ///
    /// # Errors
    /// Conflict while the tenant takes no calls, for a name or a key that another webhook has, and when there are too many; NotFound for an
    /// install or an app that does not exist; or the store's errors.
    pub async fn add(&self, request: &AddWebhookRequest, by: &AskedBy) -> Result<WebhookView, AppError> {
        let AddWebhookRequest { webhook: name, key, starts } = request;
        if !self.are_on {
            return Err(AppError::conflict(
                "this tenant takes no calls of webhooks; `freehold tenant deploy --webhooks on` opens the route, which anybody can \
                 reach and only signed calls pass",
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
                    "there is already a webhook `{name}`, and it has another key or starts something else; remove it first with \
                     `freehold webhook remove {name}` and give the new one another key, or choose another name"
                )));
            }
            let reserved = ReservedKey { key: key.key_id(), webhook: name.clone() };
            if let Some(other) = load::<ReservedKey>(store, &row::reserved_key(&reserved.key)).await? {
                return Err(AppError::conflict(format!(
                    "webhook `{}` has this key, and a call signed for one webhook would be valid for both; give `{name}` a key of its \
                     own, by another `--key-file`",
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
        tracing::warn!("Webhook `{name}` {starts}, as {by} asked");
        Ok(view(added))
    }
}
