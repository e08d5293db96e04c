//! Calls of webhooks: who may call, what a call starts, and that the same call starts it once.

use freehold_app::{Kind, read, table};
use freehold_protocol::api::{ForgetInstallRequest, TeardownInstallRequest, WebhookCalled, WebhookTask};
use freehold_protocol::order::AskedBy;
use freehold_protocol::webhook::CallHeaders;

use crate::support::channels::{demo, move_to, stable};
use crate::support::webhooks::{ci, key};
use crate::support::{World, app, globex};

fn by_ci() -> AskedBy {
    AskedBy::Webhook { webhook: ci() }
}

fn deploys() -> WebhookTask {
    WebhookTask::DeployComponents { install: globex() }
}

/// Returns a world in which calls of `ci` move the channel.
async fn with_channel() -> World {
    let world = World::with_channel().await;
    world.with_webhook(WebhookTask::MoveChannel { app: demo(), channel: stable() }).await;
    world
}

async fn release_of(world: &World) -> (String, u64) {
    let channel = table::channel(&*world.memory, &demo(), &stable()).await.unwrap().value;
    (channel.release.to_string(), channel.moves)
}

#[tokio::test]
async fn only_a_call_that_the_key_signed_in_the_last_minutes_starts_anything() {
    let mut world = World::with_install().await;
    world.with_webhook(deploys()).await;
    world.settle().await;
    world.memory.started.lock().unwrap().clear();
    let now = world.now();
    let right = CallHeaders::sign("b-1", b"{}", &key(1), now);

    let stranger = CallHeaders::sign("b-1", b"{}", &key(2), now);
    for (headers, body) in [(&stranger, "{}"), (&right, "{ }"), (&right, "")] {
        let error = world.call_with(headers, body).await.unwrap_err();
        assert_eq!(error.kind, Kind::Unauthorized);
        assert!(error.message.contains("ID.TIME.BODY"), "{error}");
    }
    world.memory.advance_secs(301);
    let error = world.call_with(&right, "{}").await.unwrap_err();
    assert_eq!(error.kind, Kind::Unauthorized);
    assert!(error.message.contains("301 seconds behind"), "{error}");
    assert!(world.memory.started.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_stranger_does_not_learn_which_webhooks_exist() {
    let world = World::with_install().await;
    let now = world.now();
    let stranger = CallHeaders::sign("b-1", b"", &key(2), now);

    let unknown = world.call_with(&stranger, "").await.unwrap_err();
    world.with_webhook(deploys()).await;
    let known = world.call_with(&stranger, "").await.unwrap_err();

    assert_eq!((unknown.kind, unknown.message), (known.kind, known.message));
}

#[tokio::test]
async fn a_call_deploys_once_however_often_it_comes_and_is_named_as_who_asked() {
    let mut world = World::with_install().await;
    world.with_webhook(deploys()).await;
    let now = world.now();

    let first = world.call_webhook("b-1", now, "").await.unwrap();
    let again = world.call_webhook("b-1", now.plus_secs(9), "").await.unwrap();
    world.settle().await;

    let WebhookCalled::Workflow { workflow } = &first else { panic!("{first:?}") };
    assert_eq!(first, again);
    let found = world.workflow(workflow).await;
    assert_eq!((found.state.as_str(), found.asked_by), ("succeeded", Some(by_ci())));
    let other = world.call_webhook("b-2", world.now(), "").await.unwrap();
    assert_ne!(other, first);
}

#[tokio::test]
async fn a_call_runs_an_action_or_a_runbook_with_its_inputs() {
    let mut world = World::with_runbook(&app::with_runbook()).await;
    world.with_webhook(WebhookTask::RunAction { install: globex(), action: "check".parse().unwrap() }).await;
    let called = world.call_webhook("b-1", world.now(), "{}").await.unwrap();
    world.settle().await;
    let WebhookCalled::Workflow { workflow } = called else { panic!("{called:?}") };
    assert_eq!(world.workflow(&workflow).await.state.as_str(), "succeeded");

    world.remove_webhook().remove(&ci()).await.unwrap();
    world.with_webhook(WebhookTask::RunRunbook { install: globex(), runbook: "fix".parse().unwrap() }).await;
    let body = r#"{"inputs":{"ticket":"T-7"}}"#;
    let called = world.call_webhook("b-2", world.now(), body).await.unwrap();
    let again = world.call_webhook("b-2", world.now(), body).await.unwrap();
    world.settle().await;

    let WebhookCalled::Run { run } = &called else { panic!("{called:?}") };
    assert_eq!(again, called);
    let found = read::show_run(&*world.memory, run).await.unwrap();
    assert_eq!(
        (found.state.as_str(), &found.asked_by, found.inputs["ticket"].as_str()),
        ("succeeded", &by_ci(), "T-7")
    );
    // The same event does not run it with other inputs.
    let other = world.call_webhook("b-2", world.now(), r#"{"inputs":{"ticket":"T-8"}}"#).await.unwrap_err();
    assert_eq!(other.kind, Kind::Conflict, "{other}");
}

#[tokio::test]
async fn a_body_that_does_not_fit_is_refused_with_the_reason() {
    let world = World::with_install().await;
    world.with_webhook(deploys()).await;
    for (body, reason) in [
        ("[", "EOF"),
        (r#"{"ref":"main"}"#, "unknown field `ref`"),
        (r#"{"inputs":{"a":"b"}}"#, "only a runbook or an action takes `inputs`"),
        (r#"{"release":"one"}"#, "only a channel takes a `release`"),
    ] {
        let error = world.call_webhook("b-1", world.now(), body).await.unwrap_err();
        assert_eq!(error.kind, Kind::Invalid);
        assert!(error.message.contains(reason) && error.message.contains("deploys install `globex`"), "{error}");
    }
    let world = with_channel().await;
    let error = world.call_webhook("b-1", world.now(), "").await.unwrap_err();
    assert!(error.message.contains("name the release"), "{error}");
    let error = world.call_webhook("b-1", world.now(), r#"{"release":"none"}"#).await.unwrap_err();
    assert_eq!(error.kind, Kind::NotFound, "{error}");
}

#[tokio::test]
async fn a_call_moves_a_channel_and_an_old_one_never_moves_it_back() {
    let world = with_channel().await;
    world.memory.advance_secs(100);
    let now = world.now();
    let two = r#"{"release":"two"}"#;

    let moved = world.call_webhook("b-2", now, two).await.unwrap();

    let channel =
        |release: &str| WebhookCalled::Channel { app: demo(), channel: stable(), release: release.parse().unwrap() };
    assert_eq!((moved, release_of(&world).await), (channel("two"), ("two".into(), 2)));
    // The same call again, and another of the same second or before it.
    assert_eq!(world.call_webhook("b-2", now, two).await.unwrap(), channel("two"));
    for secs in [0, 60] {
        let time = freehold_protocol::Timestamp::from_millis(now.as_millis() - secs * 1000);
        let late = world.call_webhook("b-1", time, r#"{"release":"one"}"#).await.unwrap_err();
        assert_eq!(late.kind, Kind::Conflict);
        assert!(late.message.contains("`b-2`"), "{late}");
    }
    assert_eq!(release_of(&world).await, ("two".into(), 2));

    // A build that is run again, signed anew after a later one, does not bring its release back.
    assert_eq!(world.call_webhook("b-3", now.plus_secs(2), r#"{"release":"one"}"#).await.unwrap(), channel("one"));
    let again = world.call_webhook("b-2", now.plus_secs(3), two).await.unwrap_err();
    assert!(again.message.contains("moved by somebody else"), "{again}");
    assert_eq!(world.call_webhook("b-4", now.plus_secs(4), two).await.unwrap(), channel("two"));
    assert_eq!(release_of(&world).await, ("two".into(), 4));

    // Somebody moves it by hand; then the same call moves nothing.
    move_to(&world, "three").await.unwrap();
    let refused = world.call_webhook("b-4", now.plus_secs(4), two).await.unwrap_err();
    assert!(refused.message.contains("moved by somebody else"), "{refused}");
    assert_eq!(release_of(&world).await, ("three".into(), 5));
    assert_eq!(world.call_webhook("b-5", now.plus_secs(5), two).await.unwrap(), channel("two"));
}

#[tokio::test]
async fn a_call_that_was_signed_before_the_webhook_was_added_starts_nothing() {
    let world = with_channel().await;
    let recorded = world.now();
    world.call_webhook("b-1", recorded, r#"{"release":"two"}"#).await.unwrap();
    world.remove_webhook().remove(&ci()).await.unwrap();
    move_to(&world, "three").await.unwrap();
    world.memory.advance_secs(1);
    world.with_webhook(WebhookTask::MoveChannel { app: demo(), channel: stable() }).await;

    let error = world.call_webhook("b-1", recorded, r#"{"release":"two"}"#).await.unwrap_err();

    assert_eq!(error.kind, Kind::Conflict);
    assert!(error.message.contains("before webhook `ci` was added"), "{error}");
    assert_eq!(release_of(&world).await.0, "three");
}

#[tokio::test]
async fn a_webhook_goes_with_its_install_and_never_acts_on_the_next_one_of_that_name() {
    let mut world = World::with_install().await;
    world.with_webhook(deploys()).await;
    world.teardown(&TeardownInstallRequest::default(), "teardown-1").await.unwrap();
    world.settle().await;
    let stored = table::install(&*world.memory, &globex()).await.unwrap();
    world.memory.advance_secs(2 * 3600);

    // Without the removal of its row, it is still refused.
    let newer = freehold_domain::Install { created_at: world.now(), ..stored.value.clone() };
    let write = table::put(&newer, freehold_app::ports::Expect::Rev(stored.rev)).unwrap();
    let _ = freehold_app::ports::Store::commit(&*world.memory, vec![write]).await.unwrap();
    let error = world.call_webhook("b-1", world.now(), "").await.unwrap_err();
    assert_eq!(error.kind, Kind::Conflict);
    assert!(error.message.contains("an earlier install"), "{error}");

    world.forget_install().forget(&globex(), &ForgetInstallRequest::default()).await.unwrap();
    world.forgotten().await;

    assert_eq!(world.call_webhook("b-2", world.now(), "").await.unwrap_err().kind, Kind::Unauthorized);
}
