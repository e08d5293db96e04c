//! Webhooks in the simulated control plane.

use ed25519_dalek::SigningKey;
use freehold_app::AppError;
use freehold_app::runbook::run_runbook::RunRunbook;
use freehold_app::webhook::add_webhook::AddWebhook;
use freehold_app::webhook::call_webhook::CallWebhook;
use freehold_app::webhook::remove_webhook::RemoveWebhook;
use freehold_protocol::api::{AddWebhookRequest, WebhookCalled, WebhookTask, WebhookView};
use freehold_protocol::envelope::PublicKey;
use freehold_protocol::webhook::CallHeaders;
use freehold_protocol::{Timestamp, WebhookName};

use super::{World, member};

pub(crate) fn ci() -> WebhookName {
    "ci".parse().unwrap()
}

/// Returns a key that signs calls.
pub(crate) fn key(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

pub(crate) fn request(starts: WebhookTask) -> AddWebhookRequest {
    AddWebhookRequest { webhook: ci(), key: PublicKey::from(key(1).verifying_key()), starts }
}

impl World {
    pub(crate) fn add_webhook(&self) -> AddWebhook {
        AddWebhook { store: self.memory.clone(), clock: self.memory.clone(), are_on: true }
    }

    pub(crate) fn remove_webhook(&self) -> RemoveWebhook {
        RemoveWebhook { store: self.memory.clone() }
    }

    /// Adds the webhook `ci` with the first key.
    pub(crate) async fn with_webhook(&self, starts: WebhookTask) -> WebhookView {
        self.add_webhook().add(&request(starts), member()).await.unwrap()
    }

    /// Calls the webhook `ci` with the first key, as signed at `time`.
    pub(crate) async fn call_webhook(&self, id: &str, time: Timestamp, body: &str) -> Result<WebhookCalled, AppError> {
        self.call_with(&CallHeaders::sign(id, body.as_bytes(), &key(1), time), body).await
    }

    /// Calls the webhook `ci` with these headers.
    pub(crate) async fn call_with(&self, headers: &CallHeaders, body: &str) -> Result<WebhookCalled, AppError> {
        let call = CallWebhook {
            store: self.memory.clone(),
            clock: self.memory.clone(),
            deploy_components: self.deploy_components(),
            run_action: self.run_action(),
            run_runbook: RunRunbook { advance: self.advance_run() },
            move_channel: self.move_channel(),
            are_on: true,
        };
        call.call(&ci(), headers, body).await
    }
}
