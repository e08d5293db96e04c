//! The life of an install whose app has an action for each trigger of the config format, and how often each one ran.

use freehold_domain::plan::triggers::EVENTS;
use freehold_domain::role_switches::ROLE_EVENTS;
use freehold_protocol::api::{DeployComponentsRequest, TeardownInstallRequest};
use freehold_protocol::app_version::{Action, AppVersion, Trigger};
use freehold_protocol::{Digest, RoleKey};
use serde_json::json;

use super::walk::Rng;
use super::{World, app, with_input};

/// How often an event happened in the life of the install, and how often the action that it starts ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) trigger: String,
    pub(crate) happened: usize,
    pub(crate) ran: usize,
}

/// Returns how often an event happens in [`life`].
fn happens(event: &str) -> usize {
    match event {
        // When it is provisioned, when inputs change, when `settings` is switched on, and when all is deployed again.
        "deploy-all-components" => 4,
        // All of these but the change of the inputs, which `settings` does not read.
        "deploy-component" => 3,
        // When it is provisioned, and when all is deployed again.
        "secrets-sync" => 2,
        // When `settings` is switched off, and when all is removed.
        "teardown-component" => 2,
        _ => 1,
    }
}

/// Lets an install live from its provisioning to its teardown. With a seed, messages are delivered in any order and up
/// to three times. Every request is sent twice.
pub(crate) async fn life(seed: Option<u64>) -> Vec<Count> {
    let mut world = provisioned(seed).await;
    deploy(&mut world, &with_input("days", 8), "inputs").await;
    world.switch(&[("settings", false)]).await.unwrap();
    deploy(&mut world, &DeployComponentsRequest::default(), "off").await;
    world.switch(&[("settings", true)]).await.unwrap();
    deploy(&mut world, &DeployComponentsRequest::default(), "on").await;
    deploy(&mut world, &DeployComponentsRequest { all: true, ..Default::default() }, "again").await;
    for is_on in [false, true, false] {
        switch_role(&mut world, is_on).await;
    }
    for _ in 0..2 {
        world.teardown(&TeardownInstallRequest::default(), "gone").await.unwrap();
    }
    world.settle().await;
    assert_eq!(world.open(), [""; 0]);
    let started = &world.runners["globex"].started;
    let ran = |trigger: &str| started.iter().filter(|name| **name == format!("action:{trigger}")).count();
    let all =
        EVENTS.iter().flat_map(|event| ["pre", "post"].map(|moment| (format!("{moment}-{event}"), happens(event))));
    let of_roles = ROLE_EVENTS.iter().map(|event| ((*event).to_owned(), happens(event)));
    all.chain(of_roles).map(|(trigger, happened)| Count { ran: ran(&trigger), happened, trigger }).collect()
}

/// Lets the runner announce that the customer has switched mode `deprovision` on or off.
async fn switch_role(world: &mut World, is_on: bool) {
    world.memory.advance_secs(120);
    let role: RoleKey = "deprovision".parse().unwrap();
    world.runner("globex").roles = Some([(role, is_on)].into());
    world.hello("globex");
    world.settle().await;
    for _ in 0..2 {
        world.handle_due_tasks().handle().await.unwrap();
        world.settle().await;
    }
}

async fn deploy(world: &mut World, request: &DeployComponentsRequest, cause: &str) {
    for _ in 0..2 {
        world.deploy(request, cause).await.unwrap();
    }
    world.settle().await;
}

async fn provisioned(seed: Option<u64>) -> World {
    let mut world = World::new();
    world.sync(&document()).await;
    world.enrol().await;
    world.hello("build");
    world.settle().await;
    world.build("build-1").await;
    world.settle().await;
    world.chaos = seed.map(Rng::new);
    for _ in 0..2 {
        world.create().await;
    }
    world.run().await;
    world.runner("globex").secrets = Some([("token".to_owned(), Digest::of(b"one"))].into());
    world.hello("globex");
    world.settle().await;
    world
}

/// Returns the app with a sandbox, a secret in the cluster, and an action for each trigger. Triggers of one component
/// name `settings`, which an install may leave out.
fn document() -> AppVersion {
    let mut document = app::document();
    let sandbox = json!({
        "tool": { "tool": "terraform", "version": "1.9.0" },
        "source": { "from": "image", "reference": "example/sandbox:1" },
    });
    document.sandbox = Some(serde_json::from_value(sandbox).unwrap());
    let place = json!({ "namespace": "web", "name": "web-token" });
    document.secrets =
        serde_json::from_value(json!([{ "name": "token", "auto_generate": true, "kubernetes": place }])).unwrap();
    for component in document.components.iter_mut().filter(|one| one.name.as_str() == "settings") {
        component.settings.toggle = Some(true);
    }
    let triggers = EVENTS.iter().flat_map(|event| ["pre", "post"].map(|moment| format!("{moment}-{event}")));
    let of_roles = ROLE_EVENTS.iter().map(|event| (*event).to_owned());
    document.actions = triggers.chain(of_roles).map(|name| action(&name)).collect();
    document
}

fn action(name: &str) -> Action {
    let mut action: Action =
        serde_json::from_value(json!({ "name": name, "timeout_secs": 60, "steps": [{ "name": "one" }] })).unwrap();
    action.triggers.insert(trigger(name));
    action
}

/// Returns the trigger as a version has it: some events have variants of their own.
fn trigger(name: &str) -> Trigger {
    let component = || "settings".parse().unwrap();
    match name {
        "post-provision" => Trigger::PostProvision,
        "post-deploy-all-components" => Trigger::PostDeployAllComponents,
        "post-deploy-component" => Trigger::PostDeployComponent { component: component() },
        _ => Trigger::Event { event: name.to_owned(), component: name.ends_with("-component").then(component) },
    }
}
