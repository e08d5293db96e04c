//! Secrets of an app: no value reaches the control plane, and a keyed digest that changed runs what reads the secret.

use std::collections::BTreeMap;

use freehold_protocol::api::DeployComponentsRequest;
use freehold_protocol::app_version::{AppVersion, Reference};
use freehold_protocol::order::{Order, SecretCopy, Work};
use freehold_protocol::{Digest, Envelope, Payload as _};
use serde_json::json;

use crate::support::{World, app};

/// An app in which `settings` reads `password`, a cluster gets copies of `token`, and actions run around the copying.
fn document() -> AppVersion {
    let mut document = app::document();
    document.secrets = serde_json::from_value(json!([
        { "name": "password", "required": true, "description": "words for people", "display_name": "Password" },
        { "name": "token", "auto_generate": true, "kubernetes": { "namespace": "web", "name": "web-token" } },
        { "name": "unused" },
    ]))
    .unwrap();
    for component in &mut document.components {
        if component.name.as_str() == "settings" {
            component.references.insert(Reference::Secret("password".into()));
        }
    }
    document.actions[0].triggers = serde_json::from_value(json!([
        { "on": "event", "event": "pre-secrets-sync" }, { "on": "event", "event": "post-secrets-sync" },
    ]))
    .unwrap();
    document
}

fn digests(values: &[(&str, &str)]) -> Option<BTreeMap<String, Digest>> {
    Some(values.iter().map(|(name, value)| ((*name).to_owned(), Digest::of(value.as_bytes()))).collect())
}

/// The runner comes with these digests.
async fn tell(world: &mut World, values: &[(&str, &str)]) {
    world.runner("globex").secrets = digests(values);
    world.hello("globex");
    world.settle().await;
}

async fn provisioned() -> World {
    let mut world = World::with_app().await;
    world.sync(&document()).await;
    world.create().await;
    world.run().await;
    tell(&mut world, &[("password", "one"), ("token", "one")]).await;
    world
}

async fn deployed(world: &mut World, cause: &str) -> Vec<String> {
    let workflow = world.deploy(&DeployComponentsRequest::default(), cause).await.unwrap();
    world.settle().await;
    world.node_states(&workflow).await
}

fn orders(world: &World) -> Vec<Order> {
    let sent = world.memory.orders.lock().unwrap();
    let envelopes = sent.iter().map(|(_, _, _, body)| Envelope::parse(body.as_bytes()).unwrap());
    let orders = envelopes.filter(|one| one.payload_type == Order::TYPE).map(|one| one.peek::<Order>().unwrap());
    orders.filter(|order| order.install.as_str() == "globex").collect()
}

#[tokio::test]
async fn an_order_names_the_secrets_and_copies_come_before_components() {
    let world = provisioned().await;

    let orders = orders(&world);
    let started = &world.runners["globex"].started;

    for order in &orders {
        let names: Vec<_> = order.secrets.iter().map(|secret| secret.name.as_str()).collect();
        assert_eq!(names, ["password", "token", "unused"]);
        assert!(order.secrets.iter().all(|secret| secret.description.is_empty() && secret.display_name.is_empty()));
        assert!(order.context.pointer("/nuon/secrets").is_none());
    }
    let copying = orders.iter().find(|order| order.work.kind() == "secrets").unwrap();
    let Work::CopySecrets(work) = &copying.work else { panic!("{:?}", copying.work) };
    let copy = SecretCopy { secret: "token".into(), namespace: "web".into(), name: "web-token".into() };
    assert_eq!((&work.copies, copying.group.as_str()), (&vec![copy], "secrets"));
    assert_eq!(started[..3], ["preflight", "action:check", "secrets"], "{started:?}");
    assert_eq!(started.iter().filter(|name| *name == "action:check").count(), 2);
}

#[tokio::test]
async fn a_changed_secret_runs_what_reads_it_and_nothing_else() {
    let mut world = provisioned().await;

    let nothing = deployed(&mut world, "deploy-1").await;
    tell(&mut world, &[("password", "two"), ("token", "one")]).await;
    let read = deployed(&mut world, "deploy-2").await;
    tell(&mut world, &[("password", "two"), ("token", "two")]).await;
    let copied = deployed(&mut world, "deploy-3").await;
    tell(&mut world, &[("password", "two"), ("token", "two"), ("unused", "two")]).await;
    let unread = deployed(&mut world, "deploy-4").await;

    assert_eq!(nothing, [""; 0]);
    assert_eq!(read, ["settings succeeded"]);
    assert_eq!(
        copied,
        [
            "secrets:copies succeeded",
            "action:check@pre-secrets-sync succeeded",
            "action:check@post-secrets-sync succeeded",
        ]
    );
    assert_eq!(unread, [""; 0]);
}

#[tokio::test]
async fn a_hello_without_digests_changes_nothing() {
    let mut world = provisioned().await;

    world.runner("globex").secrets = None;
    world.hello("globex");
    world.settle().await;

    assert_eq!(deployed(&mut world, "deploy-1").await, [""; 0]);
}
