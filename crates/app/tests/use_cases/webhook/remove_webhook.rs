//! Removing webhooks.

use freehold_app::Kind;
use freehold_protocol::api::WebhookTask;

use crate::support::webhooks::ci;
use crate::support::{World, globex};

#[tokio::test]
async fn a_webhook_is_removed_once_and_its_calls_are_refused() {
    let world = World::with_install().await;
    world.with_webhook(WebhookTask::DeployComponents { install: globex() }).await;

    assert!(world.remove_webhook().remove(&ci()).await.unwrap().webhooks.is_empty());

    let error = world.remove_webhook().remove(&ci()).await.unwrap_err();
    assert_eq!((error.kind, error.message.contains("webhook list")), (Kind::NotFound, true), "{error}");
    assert_eq!(world.call_webhook("b-1", world.now(), "").await.unwrap_err().kind, Kind::Unauthorized);
}
