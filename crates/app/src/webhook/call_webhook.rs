//! Handles a call of a webhook: verifies the signature, and starts what the webhook is for.
//!
//! The id of what a call starts is derived from the call, so that a repeated call starts nothing a second time.

use std::sync::Arc;

use freehold_domain::webhook::{Call, Webhook};
use freehold_domain::workflow::RunTrigger;
use freehold_protocol::api::{
    CallWebhookRequest, DeployComponentsRequest, MoveChannelRequest, RunActionRequest, RunRunbookRequest,
    WebhookCalled, WebhookTask,
};
use freehold_protocol::order::AskedBy;
use freehold_protocol::webhook::CallHeaders;
use freehold_protocol::{AppName, ChannelName, Digest, InstallId, ReleaseName, WebhookName};

use super::row;
use crate::new_workflow::Asked;
use crate::ports::{Clock, Expect, Store};
use crate::release::move_channel::MoveChannel;
use crate::runbook::run_runbook::RunRunbook;
use crate::table::{self, put};
use crate::workflow::deploy_components::DeployComponents;
use crate::workflow::run_action::RunAction;
use crate::{AppError, Kind};

/// The use case that handles a call of a webhook, with its ports and the use cases that calls start.
#[derive(Clone)]
pub struct CallWebhook {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub deploy_components: DeployComponents,
    pub run_action: RunAction,
    pub run_runbook: RunRunbook,
    pub move_channel: MoveChannel,
    /// Whether the tenant's API accepts calls of webhooks.
    pub are_on: bool,
}

impl CallWebhook {
    /// Handles a call with these headers and this body. The body is not parsed before the signature is verified.
    ///
    /// # Errors
    /// Unauthorized for a time that is too far away, a signature that is not that of the webhook's key, a webhook that
    /// does not exist, and while webhooks are off; Conflict for a call that was signed before the webhook was added,
    /// that is meant for an earlier install, or that a later call overtook; Invalid for a body that does not fit what
    /// the webhook starts; or the errors of what it starts.
    pub async fn call(&self, name: &WebhookName, call: &CallHeaders, body: &str) -> Result<WebhookCalled, AppError> {
        let webhook = self.authenticate(name, call, body).await?;
        let request = request_of(&webhook, body)?;
        let by = AskedBy::Webhook { webhook: name.clone() };
        let cause = cause_of(&webhook, call)?;
        let asked = Asked { by: &by, cause: &cause, step: None };
        match &webhook.starts {
            WebhookTask::DeployComponents { install } => {
                self.check_install(&webhook, install).await?;
                let request = DeployComponentsRequest::default();
                let workflow = self.deploy_components.deploy(install, &request, asked).await?;
                Ok(WebhookCalled::Workflow { workflow })
            }
            WebhookTask::RunAction { install, action } => {
                self.check_install(&webhook, install).await?;
                let request = RunActionRequest { inputs: request.inputs, ..Default::default() };
                let trigger = RunTrigger::Request;
                let started = self.run_action.run(install, action, &request, (trigger, asked)).await?;
                Ok(WebhookCalled::Workflow { workflow: started.workflow })
            }
            WebhookTask::RunRunbook { install, runbook } => {
                self.check_install(&webhook, install).await?;
                let request = RunRunbookRequest { inputs: request.inputs, now: false };
                let run = self.run_runbook.run(install, runbook, &request, asked).await?;
                Ok(WebhookCalled::Run { run: run.id })
            }
            WebhookTask::MoveChannel { app, channel } => {
                let Some(release) = request.release else {
                    return Err(AppError::invalid(format!(
                        "webhook `{name}` {}; name the release: {{\"release\": \"2026.11\"}}",
                        webhook.starts
                    )));
                };
                self.move_to(&webhook, call, (app, channel), release, &by).await
            }
        }
    }

    /// Returns the webhook, if its key signed the call at a time that is accepted.
    async fn authenticate(&self, name: &WebhookName, call: &CallHeaders, body: &str) -> Result<Webhook, AppError> {
        call.check_time(self.clock.now()).map_err(|error| unauthorized(error.to_string()))?;
        let found = row::find(&*self.store, name).await?.map(|stored| stored.value);
        // The error does not reveal which webhooks exist.
        let signed = found.filter(|webhook| self.are_on && call.are_signed_by(&webhook.key, body.as_bytes()));
        let webhook = signed.ok_or_else(|| {
            unauthorized(format!(
                "no webhook `{name}` has the key that signed this call; sign `ID.TIME.BODY` with the private key of the webhook, \
                 byte for byte as it is sent, or ask the vendor whether the webhook was removed"
            ))
        })?;
        if webhook.is_before_it(call.secs()) {
            return Err(AppError::conflict(format!(
                "the call was signed before webhook `{name}` was added, or by a clock that is behind; sign the call again"
            )));
        }
        Ok(webhook)
    }

    /// Refuses a call that was meant for an earlier install of the same name.
    async fn check_install(&self, webhook: &Webhook, install: &InstallId) -> Result<(), AppError> {
        let stored = table::install(&*self.store, install).await?;
        if row::is_of(webhook, &stored.value) {
            return Ok(());
        }
        let name = &webhook.name;
        Err(AppError::conflict(format!(
            "webhook `{name}` was added for an earlier install with the name `{install}`; remove it with `freehold webhook remove \
             {name}`, and add it again with another key"
        )))
    }

    /// Moves a channel. The call is stored before it moves the channel, together with the number of earlier moves: a
    /// repeated call moves the channel only while nobody else has moved it.
    async fn move_to(
        &self,
        webhook: &Webhook,
        call: &CallHeaders,
        (app, channel): (&AppName, &ChannelName),
        release: ReleaseName,
        by: &AskedBy,
    ) -> Result<WebhookCalled, AppError> {
        let store = &*self.store;
        table::release(store, app, &release).await?;
        let moves = table::change(store, ("webhook", &webhook.name), || async {
            let stored = row::webhook(store, &webhook.name).await?;
            // Somebody may have removed the webhook whose key signed the call, and added another webhook.
            if (&stored.value.key, stored.value.added_at) != (&webhook.key, webhook.added_at) {
                return Err(unauthorized(format!("webhook `{}` was removed while the call was handled", webhook.name)));
            }
            let known = table::channels(store, app).await?.into_iter().find(|known| known.name == *channel);
            let moves = known.map_or(0, |known| known.moves);
            match stored.value.call(call.id(), call.secs(), moves) {
                Ok(Call::New(next)) => Ok(table::Decided::Commit(vec![put(&*next, Expect::Rev(stored.rev))?], moves)),
                Ok(Call::Again { moves }) => Ok(table::Decided::Keep(moves)),
                Err(late) => Err(AppError::conflict(late.to_string())),
            }
        })
        .await?;
        let request = MoveChannelRequest { release: release.clone(), again_after: None };
        self.move_channel.move_channel_after(moves, (app, channel), &request, by).await?;
        Ok(WebhookCalled::Channel { app: app.clone(), channel: channel.clone(), release })
    }
}

fn unauthorized(message: String) -> AppError {
    AppError::new(Kind::Unauthorized, message)
}

/// Returns the body as the request that the webhook takes.
fn request_of(webhook: &Webhook, body: &str) -> Result<CallWebhookRequest, AppError> {
    let wrong = |reason: String| {
        AppError::invalid(format!(
            "the body of the call does not fit webhook `{}`, which {}: {reason}",
            webhook.name, webhook.starts
        ))
    };
    if body.trim().is_empty() {
        return Ok(CallWebhookRequest::default());
    }
    let request: CallWebhookRequest = serde_json::from_str(body).map_err(|error| wrong(error.to_string()))?;
    let takes_inputs = matches!(webhook.starts, WebhookTask::RunRunbook { .. } | WebhookTask::RunAction { .. });
    let takes_release = matches!(webhook.starts, WebhookTask::MoveChannel { .. });
    match (request.inputs.is_empty() || takes_inputs, request.release.is_none() || takes_release) {
        (true, true) => Ok(request),
        (false, _) => Err(wrong("only a runbook or an action takes `inputs`; leave them out".to_owned())),
        (true, false) => Err(wrong("only a channel takes a `release`; leave it out".to_owned())),
    }
}

/// Returns the cause of what a call starts: its webhook, its key and its id. The calls of a webhook that was removed
/// and added again with another key have other causes.
fn cause_of(webhook: &Webhook, call: &CallHeaders) -> Result<String, AppError> {
    let of = serde_json::to_vec(&(&webhook.name, webhook.key.key_id(), call.id()))?;
    Ok(format!("webhook {}", Digest::of(&of)))
}
