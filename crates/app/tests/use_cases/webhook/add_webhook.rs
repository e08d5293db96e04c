//! Adding webhooks.

use freehold_app::Kind;
use freehold_app::webhook::add_webhook::AddWebhook;
use freehold_app::webhook::list_webhooks::list_webhooks;
use freehold_domain::webhook::MAX_WEBHOOKS;
use freehold_protocol::api::{AddWebhookRequest, WebhookTask};
use freehold_protocol::envelope::PublicKey;

use crate::support::channels::{demo, stable};
use crate::support::webhooks::{ci, key, request};
use crate::support::{World, globex, member};

fn deploys() -> WebhookTask {
    WebhookTask::DeployComponents { install: globex() }
}

#[tokio::test]
async fn a_webhook_is_added_once_and_listed() {
    let world = World::with_install().await;

    let added = world.with_webhook(deploys()).await;
    let again = world.with_webhook(deploys()).await;

    assert_eq!((&added, &added.added_by, added.path.as_str()), (&again, member(), "/v1/webhooks/ci/calls"));
    assert_eq!(list_webhooks(&*world.memory).await.unwrap().webhooks, [added]);
}

#[tokio::test]
async fn a_name_is_not_given_to_another_key_or_another_task() {
    let world = World::with_install().await;
    world.with_webhook(deploys()).await;

    let action = WebhookTask::RunAction { install: globex(), action: "check".parse().unwrap() };
    let other_key = AddWebhookRequest { key: PublicKey::from(key(2).verifying_key()), ..request(deploys()) };
    for wrong in [request(action), other_key] {
        let error = world.add_webhook().add(&wrong, member()).await.unwrap_err();

        assert_eq!(error.kind, Kind::Conflict);
        assert!(error.message.contains("freehold webhook remove ci"), "{error}");
    }
}

#[tokio::test]
async fn a_key_belongs_to_one_webhook_until_that_is_removed() {
    let world = World::with_install().await;
    world.with_webhook(deploys()).await;
    let other = AddWebhookRequest { webhook: "prod".parse().unwrap(), ..request(deploys()) };

    let error = world.add_webhook().add(&other, member()).await.unwrap_err();
    world.remove_webhook().remove(&ci()).await.unwrap();
    let added = world.add_webhook().add(&other, member()).await.unwrap();

    assert_eq!(error.kind, Kind::Conflict);
    assert!(error.message.contains("webhook `ci` has this key"), "{error}");
    assert_eq!(added.webhook.as_str(), "prod");
}

#[tokio::test]
async fn a_webhook_needs_its_install_or_app_and_an_open_route() {
    let mut world = World::with_install().await;
    let gone = WebhookTask::DeployComponents { install: "initech".parse().unwrap() };
    let no_app = WebhookTask::MoveChannel { app: "other".parse().unwrap(), channel: stable() };
    for starts in [gone, no_app] {
        assert_eq!(world.add_webhook().add(&request(starts), member()).await.unwrap_err().kind, Kind::NotFound);
    }
    // The build runner is the install of no app.
    world.enrol().await;
    let build = WebhookTask::DeployComponents { install: "build".parse().unwrap() };
    assert!(world.add_webhook().add(&request(build), member()).await.is_err());

    let off = AddWebhook { are_on: false, ..world.add_webhook() };
    let error = off.add(&request(deploys()), member()).await.unwrap_err();

    assert!(error.message.contains("freehold tenant deploy --webhooks on"), "{error}");
    assert!(list_webhooks(&*world.memory).await.unwrap().webhooks.is_empty());
}

#[tokio::test]
async fn a_tenant_has_at_most_fifty() {
    let world = World::with_install().await;
    for number in 0..MAX_WEBHOOKS {
        let of_its_own = PublicKey::from(key(100 + u8::try_from(number).unwrap()).verifying_key());
        let webhook = format!("ci-{number}").parse().unwrap();
        let one = AddWebhookRequest { webhook, key: of_its_own, starts: deploys() };
        world.add_webhook().add(&one, member()).await.unwrap();
    }
    let starts = WebhookTask::MoveChannel { app: demo(), channel: stable() };

    let error = world.add_webhook().add(&request(starts), member()).await.unwrap_err();

    assert_eq!(error.kind, Kind::Conflict);
    assert!(error.message.contains("has 50 webhooks"), "{error}");
}
