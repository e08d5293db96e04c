//! Contracts: signed when a version is built, compared with the terms that a customer accepted, and named in orders.

use freehold_app::Kind;
use freehold_app::contract::terms;
use freehold_app::messages::DispatchMessage;
use freehold_app::ports::{Expect, Store as _, Write};
use freehold_app::table;
use freehold_app::table::{ContractRecord, Stored, contract_key, terms_key};
use freehold_domain::install::Install;
use freehold_permissions::compare_terms;
use freehold_protocol::api::{ContractView, DeployComponentsRequest, ResumeWorkflowRequest, SkipNodeRequest};
use freehold_protocol::app_version::{AppVersion, RolePolicy, Trigger};
use freehold_protocol::contract::{OrderTerms, SignedContract};
use freehold_protocol::order::Order;
use freehold_protocol::{Digest, Envelope};

use crate::support::runner::sick;
use crate::support::walk::At;
use crate::support::{World, app, asked_with, globex, with_input};

async fn shown(world: &World, version: &AppVersion) -> ContractView {
    terms::show_contract(&world.versions(), &version.app, &version.digest().unwrap()).await.unwrap()
}

/// Returns the demo app with one managed policy more.
fn wider() -> AppVersion {
    let mut version = app::document();
    version.roles[0].policies.push(RolePolicy::Managed("ReadOnlyAccess".into()));
    version
}

/// Returns the demo app without its inline policy.
fn narrower() -> AppVersion {
    let mut version = app::document();
    version.roles[0].policies.truncate(1);
    version
}

fn digest(version: &AppVersion) -> Digest {
    terms::digest(version).unwrap()
}

/// Returns a world whose customer agreed to what the demo app may do, and `version` is the latest.
async fn agreed_then(version: &AppVersion) -> World {
    let mut world = World::with_install().await;
    world.runner("globex").accepted_contract = Some(digest(&app::document()));
    world.hello("globex");
    world.settle().await;
    world.sync(version).await;
    world.build("build-2").await;
    world.settle().await;
    world
}

async fn install(world: &World) -> Install {
    table::install(&*world.memory, &globex()).await.unwrap().value
}

/// Returns what the order that was sent last says of its terms.
fn ordered(world: &World) -> OrderTerms {
    let orders = world.memory.orders.lock().unwrap();
    let order = orders.iter().rev().find_map(|sent| Envelope::parse(sent.3.as_bytes()).ok()?.peek::<Order>().ok());
    *order.unwrap().terms.unwrap()
}

#[tokio::test]
async fn a_built_version_has_a_contract_that_the_tenants_key_signed() {
    let world = World::with_app().await;

    let view = shown(&world, &app::document()).await;

    let signed = SignedContract::open(view.signed.as_ref().unwrap(), &world.keys.public()).unwrap();
    assert_eq!((&signed.contract, &signed.tenant), (&view.contract, &world.tenant));
    assert_eq!(view.contract.artifacts.len(), 3);
    assert_eq!(view.terms, digest(&app::document()));
    assert_eq!(view.hosts["*.amazonaws.com"].iter().collect::<Vec<_>>(), ["the runner"]);
}

#[tokio::test]
async fn signing_again_changes_nothing_until_the_contract_says_something_else() {
    let world = World::with_app().await;
    let (app, version) = ("demo".parse().unwrap(), app::document().digest().unwrap());
    let ask = DispatchMessage::Contract { app, version };
    let before = world.memory.rows();

    world.memory.advance_secs(60);
    world.dispatch_job().perform(&ask).await.unwrap();

    assert_eq!(world.memory.rows(), before);
}

#[tokio::test]
async fn a_version_that_needs_no_build_is_signed_when_it_is_deployed() {
    let mut world = World::with_install().await;
    let version = wider();
    world.sync(&version).await;
    let before = shown(&world, &version).await.signed;

    world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.settle().await;

    assert_eq!(before, None);
    assert!(shown(&world, &version).await.signed.is_some());
    let key = contract_key(&version.app, &version.digest().unwrap());
    assert!(world.memory.get(&key).await.unwrap().is_some());
}

#[tokio::test]
async fn a_version_whose_contract_has_other_terms_is_signed_again_when_it_is_deployed() {
    let mut world = World::with_install().await;
    let version = wider();
    world.sync(&version).await;
    let key = contract_key(&version.app, &app::document().digest().unwrap());
    let signed: Stored<ContractRecord> = table::load(&*world.memory, &key).await.unwrap().unwrap();
    let former = ContractRecord { version: version.digest().unwrap(), ..signed.value };
    let _ = world.memory.commit(vec![table::put(&former, Expect::Any).unwrap()]).await.unwrap();

    world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.settle().await;

    let view = shown(&world, &version).await;
    let signed = SignedContract::open(view.signed.as_ref().unwrap(), &world.keys.public()).unwrap();
    assert_eq!(signed.contract, view.contract);
}

#[tokio::test]
async fn a_build_without_work_has_the_contract_signed_before_the_customer_agrees_to_it() {
    let mut world = agreed_then(&app::document()).await;
    world.sync(&wider()).await;
    world.runner("build").started.clear();
    let refused = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap_err();

    let started = world.build("build-3").await;
    let again = world.build("build-3").await;
    world.settle().await;
    let later = world.build("build-4").await;

    assert_eq!(refused.kind, Kind::Conflict, "no deploy may be what has it signed");
    assert_eq!(started.workflow, again.workflow);
    assert_eq!(world.machines[&started.workflow.unwrap()].at, At::Ended("succeeded"));
    assert!(world.runners["build"].started.is_empty());
    let view = shown(&world, &wider()).await;
    let signed = SignedContract::open(view.signed.as_ref().unwrap(), &world.keys.public()).unwrap();
    assert_eq!(signed.contract, view.contract);
    assert_eq!(later.workflow, None, "what is signed needs no workflow");
}

#[tokio::test]
async fn what_a_runner_tells_of_consent_is_kept_with_the_install() {
    let world = agreed_then(&app::document()).await;

    assert_eq!(install(&world).await.accepted_contract, Some(digest(&app::document())));
}

#[tokio::test]
async fn the_same_terms_and_narrower_ones_are_deployed_without_a_new_consent() {
    for version in [app::document(), narrower()] {
        let mut world = agreed_then(&version).await;

        let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
        world.settle().await;

        assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"));
        let terms = ordered(&world);
        assert_eq!(terms.digest, digest(&version));
        assert_eq!(terms.change.is_some(), version != app::document(), "what is the same needs no proof");
    }
}

#[tokio::test]
async fn a_deploy_and_an_action_that_the_runner_would_refuse_are_refused_at_once_with_the_difference() {
    let mut world = agreed_then(&wider()).await;

    let deploy = world.deploy(&DeployComponentsRequest::default(), "deploy-1").await.unwrap_err();
    let of_deployed = world.action("check", "run-1").await;
    world.settle().await;
    // The customer agreed to the wider terms, had the version deployed, and launched the former template again.
    world.runner("globex").accepted_contract = Some(digest(&wider()));
    world.hello("globex");
    world.settle().await;
    world.deploy(&DeployComponentsRequest::default(), "deploy-2").await.unwrap();
    world.settle().await;
    world.runner("globex").accepted_contract = Some(digest(&app::document()));
    world.hello("globex");
    world.settle().await;
    let action = world.action("check", "run-2").await.unwrap_err();

    assert!(of_deployed.is_ok(), "the deployed version is the one that the customer agreed to");

    for error in [deploy, action] {
        assert_eq!(error.kind, Kind::Conflict);
        assert!(
            error.message.contains(": role `provision` managed policy ReadOnlyAccess; `freehold contract diff globex`"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn after_a_roll_back_the_way_out_is_the_version_that_the_customer_agreed_to() {
    let mut changed = app::document();
    changed.actions[0].env_vars.insert("MODE".into(), "new".into());
    let mut world = agreed_then(&changed).await;
    world.runner("globex").accepted_contract = Some(digest(&changed));
    world.hello("globex");
    world.settle().await;

    // The earlier version is deployed still, and its action executes other steps than those that are agreed to now.
    let refused = world.action("check", "run-1").await.unwrap_err();

    assert_eq!(refused.kind, Kind::Conflict);
    assert!(
        refused.message.contains("but version 1 may do more: action `check` executes other steps")
            && refused.message.ends_with("so deploy that version: `freehold deploy globex`"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_removal_asks_for_no_schedule_that_a_later_version_replaced() {
    let on = |schedule: &str| {
        let mut version = app::document();
        version.actions[0].triggers.insert(Trigger::Cron { schedule: schedule.to_owned() });
        version
    };
    let (deployed, agreed) = (on("0 3 * * *"), on("0 4 * * *"));
    let mut world = agreed_then(&agreed).await;
    world.runner("globex").accepted_contract = Some(digest(&agreed));
    world.hello("globex");
    world.settle().await;
    let widened = |terms: OrderTerms| {
        let change = terms.change.unwrap();
        let accepted = change.accepted.open(&digest(&agreed)).unwrap();
        compare_terms(&accepted, &change.asked.open(&terms.digest).unwrap()).widened
    };

    let of_deploy = terms::for_order(&*world.memory, &install(&world).await, &deployed).await.unwrap();
    let of_removal = terms::for_removal(&*world.memory, &install(&world).await, &deployed).await.unwrap();

    assert_eq!((widened(of_deploy).len(), widened(of_removal).len()), (1, 0));
}

#[tokio::test]
async fn a_removal_asks_for_no_input_and_no_secret_that_a_later_version_dropped() {
    let mut deployed = app::document();
    let more = serde_json::json!([{ "name": "dropped" }]);
    deployed.secrets = serde_json::from_value(more).unwrap();
    deployed.inputs.iter_mut().for_each(|input| input.customer = true);
    let world = agreed_then(&app::document()).await;
    let widened = |terms: OrderTerms| {
        // Terms with the accepted digest come without a change.
        let asked = terms.change.map(|change| change.asked.open(&terms.digest).unwrap());
        let accepted = freehold_domain::contract::terms(&app::document());
        asked.map_or_else(Vec::new, |asked| compare_terms(&accepted, &asked).widened)
    };

    let of_deploy = terms::for_order(&*world.memory, &install(&world).await, &deployed).await.unwrap();
    let of_removal = terms::for_removal(&*world.memory, &install(&world).await, &deployed).await.unwrap();

    assert!(widened(of_deploy).iter().any(|clause| clause.about == "secret `dropped`"));
    assert_eq!(widened(of_removal), []);
}

/// Returns the demo app in which a command checks `storage`. With `gate`, `info` waits for the check.
fn checked(gate: bool) -> AppVersion {
    let mut version = app::document();
    let probes = serde_json::json!([{ "type": "exec", "command": ["check"] }]);
    let health = serde_json::json!({ "block_deploy": gate, "stabilization_window_secs": 30, "probes": probes });
    let storage = version.components.iter_mut().find(|component| component.name.as_str() == "storage").unwrap();
    storage.settings.health = Some(serde_json::from_value(health).unwrap());
    version
}

#[tokio::test]
async fn a_new_command_of_a_gate_is_refused_before_the_deploy_starts() {
    let mut world = agreed_then(&checked(true)).await;
    let only = |name: &str| DeployComponentsRequest {
        components: vec![name.parse().unwrap()],
        ..DeployComponentsRequest::default()
    };

    let refused = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap_err();
    let without_gate = world.deploy(&only("settings"), "deploy-2").await.unwrap();
    world.settle().await;
    world.runner("globex").accepted_contract = Some(digest(&checked(true)));
    world.hello("globex");
    world.settle().await;
    let agreed = world.deploy(&with_input("days", 8), "deploy-3").await.unwrap();
    world.settle().await;

    assert_eq!(refused.kind, Kind::Conflict);
    let more = ": the health check of component `storage` runs command `[\"check\"]` as `maintenance`, or as `provision` in the \
                first deploy; `freehold contract diff globex`";
    assert!(refused.message.contains(more), "{refused}");
    for workflow in [without_gate, agreed] {
        assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"));
    }
}

#[tokio::test]
async fn a_gate_whose_command_the_customer_no_longer_accepts_is_not_retried_and_can_be_skipped() {
    let mut world = agreed_then(&checked(true)).await;
    world.runner("globex").accepted_contract = Some(digest(&checked(true)));
    world.hello("globex");
    world.settle().await;
    world.runner("globex").behaviours.insert("health:storage".into(), sick());
    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.settle().await;
    world.runner("globex").accepted_contract = Some(digest(&app::document()));
    world.hello("globex");
    world.settle().await;

    let again = ResumeWorkflowRequest { reason: Some("the customer looked at it".into()) };
    let resumed = world.resume_workflow().resume(&workflow, &again, asked_with("resume-1")).await;
    let without = SkipNodeRequest { node: "health:storage".into(), reason: "it is checked by hand".into() };
    let skipped = world.skip_node().skip(&workflow, &without, asked_with("skip-1")).await;

    assert!(resumed.unwrap_err().message.contains("runs command `[\"check\"]`"));
    assert!(skipped.is_ok(), "{skipped:?}");
}

#[tokio::test]
async fn a_new_command_of_a_probe_stops_no_deploy_and_is_in_no_terms_of_a_removal() {
    let version = checked(false);
    let world = agreed_then(&version).await;

    let deployed = world.deploy(&with_input("days", 8), "deploy-1").await;
    let of_deploy = terms::for_order(&*world.memory, &install(&world).await, &version).await.unwrap();
    let of_removal = terms::for_removal(&*world.memory, &install(&world).await, &version).await.unwrap();

    assert!(deployed.is_ok(), "{deployed:?}");
    let more = compare_terms(&freehold_domain::contract::terms(&app::document()), &of_deploy.asked().unwrap().unwrap());
    let expected = "the health check of component `storage` runs command `[\"check\"]` as `maintenance`, or as `provision` in \
                    the first deploy";
    assert_eq!(more.summary(), expected);
    assert!(of_removal.asked().unwrap().unwrap().probes.is_empty());
}

#[tokio::test]
async fn an_order_takes_both_terms_along_so_that_the_runner_can_decide_itself() {
    let world = agreed_then(&wider()).await;

    let terms = terms::for_order(&*world.memory, &install(&world).await, &wider()).await.unwrap();

    let change = terms.change.unwrap();
    let accepted = change.accepted.open(&digest(&app::document())).unwrap();
    let asked = change.asked.open(&terms.digest).unwrap();
    assert_eq!(compare_terms(&accepted, &asked).summary(), "role `provision` managed policy ReadOnlyAccess");
}

#[tokio::test]
async fn an_order_that_is_too_long_with_both_terms_goes_without_and_the_runner_says_so() {
    let mut world = agreed_then(&narrower()).await;
    world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.walk().await;
    let ask =
        world.memory.take_dispatched().into_iter().find(|one| matches!(one, DispatchMessage::Order { .. })).unwrap();
    let (mut with, mut without) = (0, 0);

    for length in (294 * 1024..303 * 1024).step_by(128) {
        let world = world.copy();
        let stored = table::install(&*world.memory, &globex()).await.unwrap();
        let mut install = stored.value;
        install.inputs.insert("greeting".into(), "x".repeat(length).into());
        let _ = world.memory.commit(vec![table::put(&install, Expect::Rev(stored.rev)).unwrap()]).await.unwrap();
        let before = world.memory.orders.lock().unwrap().len();
        world.dispatch_job().perform(&ask).await.unwrap();
        if world.memory.orders.lock().unwrap().len() > before {
            let sent = ordered(&world);
            assert_eq!(sent.digest, digest(&narrower()));
            if sent.change.is_some() { with += 1 } else { without += 1 }
        }
    }

    assert!(with > 0 && without > 0, "{with} {without}");
}

#[tokio::test]
async fn unknown_terms_are_reported_and_travel_in_no_order() {
    let mut world = agreed_then(&app::document()).await;
    world.runner("globex").accepted_contract = Some(Digest::of(b"somebody else's"));
    world.hello("globex");
    world.settle().await;

    let error = world.deploy(&DeployComponentsRequest::default(), "deploy-1").await.unwrap_err();
    let terms = terms::for_order(&*world.memory, &install(&world).await, &app::document()).await.unwrap();

    assert!(error.message.contains("but no version that was synced here has these terms"), "{error}");
    assert_eq!((&terms.digest, &terms.change), (&digest(&app::document()), &None));
    assert_eq!(terms.asked().unwrap(), Some(freehold_domain::contract::terms(&app::document())));
}

#[tokio::test]
async fn terms_of_before_stay_readable_by_their_digest() {
    let world = agreed_then(&wider()).await;

    let found = terms::show_terms(&*world.memory, &app::document().app, &digest(&app::document())).await.unwrap();
    let unknown = terms::show_terms(&*world.memory, &app::document().app, &Digest::of(b"x")).await.unwrap_err();

    assert_eq!(found, freehold_domain::contract::terms(&app::document()));
    assert_eq!(unknown.kind, Kind::NotFound);
}

#[tokio::test]
async fn launching_a_template_is_the_consent_to_what_it_shows() {
    let mut world = World::with_app().await;
    world.create().await;
    world.run().await;
    // A version from the time before there were terms.
    let key = terms_key(&app::document().app, &digest(&app::document()));
    let gone = Write::Delete { key: key.clone() };
    let _ = world.memory.commit(vec![gone]).await.unwrap();

    let stack = world.render_stack().render_stack(&globex()).await.unwrap();

    let default = format!("\n    Default: {}\n    AllowedPattern: ^sha256:", digest(&app::document()));
    assert!(stack.template.contains(&default), "{}", stack.template);
    assert!(world.memory.get(&key).await.unwrap().is_some());
}

#[tokio::test]
async fn what_is_too_large_to_be_signed_is_refused_when_it_is_synced() {
    let mut version = app::document();
    let document = format!(r#"{{"Statement": [], "Id": "{}"}}"#, "x".repeat(600 * 1024));
    version.roles[0].policies.push(RolePolicy::Inline { name: "long".into(), document });

    let error = World::with_app().await.try_sync(&version).await.unwrap_err();

    assert_eq!(error.kind, Kind::Invalid);
    assert!(error.message.starts_with("the terms of app `demo` have 6"), "{error}");
    assert!(error.message.ends_with("shorten the policies of its roles"), "{error}");
}
