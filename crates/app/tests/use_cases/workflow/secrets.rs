//! Secrets of an app: no value reaches the control plane, and a keyed digest that changed runs what reads the secret.

use std::collections::BTreeMap;

use freehold_app::contract::terms;
use freehold_app::messages::DispatchMessage;
use freehold_app::ports::{Expect, Store as _};
use freehold_app::table::{self, put};
use freehold_permissions::terms_for_removal;
use freehold_protocol::api::{DeployComponentsRequest, TeardownInstallRequest};
use freehold_protocol::app_version::{AppVersion, Input, Reference};
use freehold_protocol::envelope::decode_base64;
use freehold_protocol::limits::MAX_ORDER_BYTES;
use freehold_protocol::order::{Order, SecretCopy, Source, Work};
use freehold_protocol::report::Outcome;
use freehold_protocol::{Digest, Envelope, Payload as _};
use serde_json::json;

use crate::support::runner::Behaviour;
use crate::support::{World, app, globex};

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
async fn copies_that_failed_half_way_are_made_again_also_for_the_old_values() {
    let mut world = provisioned().await;
    let failed = Outcome::Failed { reason: "no answer".into(), partial: true };
    world.runner("globex").behaviours.insert("secrets".into(), Behaviour::Ends(failed));
    tell(&mut world, &[("password", "one"), ("token", "two")]).await;
    deployed(&mut world, "deploy-1").await;
    world.runner("globex").behaviours.clear();
    world.runner("globex").started.clear();

    tell(&mut world, &[("password", "one"), ("token", "one")]).await;
    deployed(&mut world, "deploy-2").await;

    assert!(world.runners["globex"].started.contains(&"secrets".into()), "{:?}", world.runners["globex"].started);
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

fn copying(world: &World) -> Vec<usize> {
    let copies = orders(world).into_iter().filter_map(|order| match order.work {
        Work::CopySecrets(work) => Some(work.copies.len()),
        _ => None,
    });
    copies.collect()
}

#[tokio::test]
async fn copies_that_no_version_wants_any_more_are_removed_once() {
    let mut world = provisioned().await;
    let mut without = document();
    without.secrets[1].kubernetes = None;
    world.sync(&without).await;

    let removed = deployed(&mut world, "deploy-1").await;
    let again = deployed(&mut world, "deploy-2").await;
    let all = DeployComponentsRequest { all: true, ..DeployComponentsRequest::default() };
    let workflow = world.deploy(&all, "deploy-3").await.unwrap();
    world.settle().await;

    assert!(removed.contains(&"secrets:unwanted succeeded".to_owned()), "{removed:?}");
    assert_eq!(again, [""; 0]);
    assert!(!world.node_states(&workflow).await.iter().any(|node| node.starts_with("secrets:")));
    assert_eq!(copying(&world), [1, 0]);
}

/// The app in which the copy of `token` has another name, and `settings` another artifact.
fn renamed() -> AppVersion {
    let mut version = document();
    version.secrets[1].kubernetes =
        serde_json::from_value(json!({ "namespace": "web", "name": "web-token-2" })).unwrap();
    for component in version.components.iter_mut().filter(|one| one.name.as_str() == "settings") {
        component.source = Source::Image { reference: "example/settings:2".into() };
    }
    version
}

/// Returns a world in which `renamed` is the latest version, and the deploy of its `settings` fails.
async fn renaming() -> World {
    let mut world = provisioned().await;
    world.sync(&renamed()).await;
    world.build("build-2").await;
    world.settle().await;
    let failed = Outcome::Failed { reason: "exit status 1".into(), partial: true };
    world.runner("globex").behaviours.insert("settings".into(), Behaviour::Ends(failed));
    world
}

/// Returns whether each order for copies keeps those that it does not name.
fn keeping(world: &World) -> Vec<bool> {
    let copies = orders(world).into_iter().filter_map(|order| match order.work {
        Work::CopySecrets(work) => Some(work.keeps_others),
        _ => None,
    });
    copies.collect()
}

fn of_copies(states: &[String]) -> Vec<&str> {
    states.iter().map(String::as_str).filter(|state| state.starts_with("secrets:")).collect()
}

#[tokio::test]
async fn a_copy_that_only_the_earlier_version_of_a_component_wants_stays_until_the_component_is_deployed() {
    let mut world = renaming().await;

    let failed = deployed(&mut world, "deploy-1").await;
    let kept = keeping(&world);
    world.runner("globex").behaviours.clear();
    world.runner("globex").started.clear();
    let done = deployed(&mut world, "deploy-2").await;
    let nothing = deployed(&mut world, "deploy-3").await;

    assert_eq!(of_copies(&failed), ["secrets:copies succeeded", "secrets:unwanted skipped"]);
    assert_eq!(kept, [false, true], "the copies of the provisioning, and then the new one beside the old one");
    assert_eq!(of_copies(&done), ["secrets:unwanted succeeded"]);
    assert_eq!(world.runners["globex"].started, ["settings", "action:check", "secrets", "action:check"]);
    assert_eq!((copying(&world), keeping(&world)), (vec![1, 1, 1], vec![false, true, false]));
    assert_eq!(nothing, [""; 0]);
}

#[tokio::test]
async fn a_deploy_of_named_components_leaves_old_copies_to_the_next_whole_deploy() {
    let mut world = renaming().await;
    world.runner("globex").behaviours.clear();

    let one =
        DeployComponentsRequest { components: vec!["settings".parse().unwrap()], ..DeployComponentsRequest::default() };
    let one = world.deploy(&one, "deploy-1").await.unwrap();
    world.settle().await;
    let whole = deployed(&mut world, "deploy-2").await;

    assert_eq!(of_copies(&world.node_states(&one).await), ["secrets:copies succeeded"]);
    assert_eq!(of_copies(&whole), ["secrets:unwanted succeeded"]);
    assert_eq!(keeping(&world), [false, true, false]);
}

#[tokio::test]
async fn both_nodes_of_one_deploy_have_groups_of_their_own_about_the_same_thing() {
    let mut world = renaming().await;
    world.runner("globex").behaviours.clear();

    let states = deployed(&mut world, "deploy-1").await;

    assert_eq!(of_copies(&states), ["secrets:copies succeeded", "secrets:unwanted succeeded"]);
    let orders = orders(&world);
    let groups: Vec<_> =
        orders.iter().rev().filter(|order| order.work.kind() == "secrets").take(2).map(|order| &order.group).collect();
    assert_eq!(groups.iter().map(|group| group.as_str()).collect::<Vec<_>>(), ["secrets", "secrets.1"]);
    assert_eq!(groups[0].thing(), groups[1].thing());
}

#[tokio::test]
async fn a_teardown_after_a_deploy_that_kept_copies_removes_all_of_them() {
    let mut world = renaming().await;
    deployed(&mut world, "deploy-1").await;
    world.runner("globex").behaviours.clear();

    let teardown = world.teardown(&TeardownInstallRequest::default(), "teardown-1").await.unwrap();
    world.settle().await;

    assert_eq!(of_copies(&world.node_states(&teardown).await), ["secrets:copies succeeded"]);
    assert_eq!((copying(&world), keeping(&world)), (vec![1, 1, 0], vec![false, true, false]));
}

#[tokio::test]
async fn a_teardown_removes_the_copies_after_the_components_and_the_next_deploy_makes_them_again() {
    let mut world = provisioned().await;

    let teardown = world.teardown(&TeardownInstallRequest::default(), "teardown-1").await.unwrap();
    world.settle().await;
    let removed = world.node_states(&teardown).await;
    let started = world.runners["globex"].started.clone();
    deployed(&mut world, "deploy-1").await;

    assert!(removed.ends_with(&["secrets:copies succeeded".into(), "leftovers:list succeeded".into()]), "{removed:?}");
    assert!(started.ends_with(&["secrets".into(), "leftovers".into()]), "{started:?}");
    assert_eq!(copying(&world), [1, 0, 1]);
}

#[tokio::test]
async fn copies_are_removed_under_the_terms_that_the_customer_agreed_to_and_without_any_value() {
    let mut world = provisioned().await;
    let accepted = Digest::of(b"the terms of an earlier release of Freehold");
    world.runner("globex").accepted_contract = Some(accepted.clone());
    world.hello("globex");
    world.settle().await;

    world.teardown(&TeardownInstallRequest::default(), "teardown-1").await.unwrap();
    world.settle().await;

    let removal = orders(&world).into_iter().rfind(|order| matches!(order.work, Work::CopySecrets(_))).unwrap();
    let terms = removal.terms.unwrap();
    assert_eq!((terms.digest, terms.change, terms.document), (accepted, None, None));
    assert_eq!((removal.secrets, removal.sensitive_inputs), (vec![], vec![]));
    assert_eq!(
        removal.context["nuon"]["install"]["id"], "globex",
        "the tree has the outputs that describe the cluster"
    );
}

#[tokio::test]
async fn a_removal_reads_no_value_that_the_customer_no_longer_agrees_to() {
    let mut deployed = document();
    let asked = json!([
        { "name": "api_token", "type": "string", "sensitive": true, "customer": true, "default": "none" },
        { "name": "pin", "type": "string", "sensitive": true, "customer": true },
    ]);
    deployed.inputs.extend(serde_json::from_value::<Vec<Input>>(asked).unwrap());
    let mut agreed = deployed.clone();
    agreed.secrets.retain(|secret| secret.name != "unused");
    agreed.inputs.retain(|input| input.name != "api_token");
    let mut world = World::with_app().await;
    world.sync(&deployed).await;
    world.create().await;
    world.run().await;
    tell(&mut world, &[("password", "one"), ("token", "one")]).await;
    world.sync(&agreed).await;
    let accepted = terms::digest(&agreed).unwrap();
    world.runner("globex").accepted_contract = Some(accepted.clone());
    world.hello("globex");
    world.settle().await;

    world.teardown(&TeardownInstallRequest::default(), "teardown-1").await.unwrap();
    world.settle().await;

    let removals: Vec<_> = orders(&world).into_iter().filter(|order| matches!(order.work, Work::Remove(_))).collect();
    assert_eq!(removals.len(), 3);
    for removal in removals {
        let naming = terms_for_removal(&removal.terms.unwrap(), Some(&accepted));
        let secrets: Vec<_> = removal.secrets.iter().map(|secret| secret.name.as_str()).collect();
        let inputs: Vec<_> =
            removal.sensitive_inputs.iter().map(|input| (input.name.as_str(), input.customer)).collect();
        assert!(naming.iter().any(|terms| terms.names_secret("password") && !terms.names_secret("unused")));
        assert_eq!(secrets, ["password", "token"]);
        assert_eq!(inputs, [("api_token", false), ("pin", true)]);
        let tree = &removal.context["nuon"];
        assert_eq!(tree["inputs"]["inputs"]["api_token"], "none", "the default, because nobody answers the input now");
        assert_eq!(tree["install"]["inputs"]["api_token"], "none");
        assert!(tree["inputs"]["inputs"].get("pin").is_none());
    }
}

/// Returns the order of `message` in a copy of the world, and the bytes of the order, if the vendor gave the input
/// `greeting` this many letters.
async fn with_greeting(world: &World, message: &DispatchMessage, letters: usize) -> (Order, usize) {
    let mut world = world.copy();
    let stored = table::install(&*world.memory, &globex()).await.unwrap();
    let mut install = stored.value;
    install.inputs.insert("greeting".into(), json!("x".repeat(letters)));
    let _ = world.memory.commit(vec![put(&install, Expect::Rev(stored.rev)).unwrap()]).await.unwrap();
    world.forget_orders();

    world.dispatch_job().perform(message).await.unwrap();

    let body = world.memory.orders.lock().unwrap()[0].3.clone();
    let envelope = Envelope::parse(body.as_bytes()).unwrap();
    (envelope.peek().unwrap(), decode_base64(&envelope.payload).unwrap().len())
}

#[tokio::test]
async fn a_removal_without_room_for_its_terms_names_only_the_values_that_it_reads() {
    let mut document = document();
    let pin = json!({ "name": "pin", "type": "string", "sensitive": true, "customer": true });
    document.inputs.push(serde_json::from_value(pin).unwrap());
    let mut world = World::with_app().await;
    world.sync(&document).await;
    world.create().await;
    world.run().await;
    world.runner("globex").accepted_contract = Some(terms::digest(&document).unwrap());
    tell(&mut world, &[("password", "one"), ("token", "one")]).await;

    for (component, read) in [("info", &[][..]), ("settings", &["password"])] {
        let mut world = world.copy();
        let component = Some(component.parse().unwrap());
        let request = TeardownInstallRequest { component, ..TeardownInstallRequest::default() };
        world.teardown(&request, "teardown-1").await.unwrap();
        world.walk().await;
        let message = world.memory.take_dispatched().remove(0);

        // The order has each input twice.
        let (_, bytes) = with_greeting(&world, &message, 1).await;
        let letters = 1 + (MAX_ORDER_BYTES - bytes) / 2;
        let (whole, _) = with_greeting(&world, &message, letters).await;
        let (large, _) = with_greeting(&world, &message, letters + 1).await;

        let has_terms = |order: &Order| order.terms.as_ref().is_some_and(|terms| terms.document.is_some());
        let secrets = |order: &Order| order.secrets.iter().map(|secret| secret.name.clone()).collect::<Vec<_>>();
        assert!(matches!((&whole.work, &large.work), (Work::Remove(_), Work::Remove(_))), "{:?}", request.component);
        assert!(has_terms(&whole) && !has_terms(&large));
        assert_eq!(secrets(&whole), ["password", "token", "unused"]);
        assert_eq!(secrets(&large), read);
        assert_eq!((whole.sensitive_inputs.len(), large.sensitive_inputs.len()), (1, 0));
    }
}
