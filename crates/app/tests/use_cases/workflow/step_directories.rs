//! Steps that run in a directory of a repository: its artifact is built, bound by the plan, ordered, granted, proven and
//! kept as that of a component is.

use freehold_app::contract::terms;
use freehold_domain::prune_artifacts::YOUNG_SECS;
use freehold_protocol::api::{CreateReleaseRequest, DeployComponentsRequest, TeardownInstallRequest};
use freehold_protocol::app_version::{AppVersion, StepRepo, Trigger};
use freehold_protocol::grant::{GrantAnswer, GrantRefusal};
use freehold_protocol::order::{Order, Package, RunAction, Source, Work};
use freehold_protocol::{ComponentName, Digest, Envelope};

use crate::support::runner::Behaviour;
use crate::support::{World, app, with_input};

/// Returns the app in which both steps of `check` run in one directory of a repository, at the commit `digit` forty times.
/// `check` also runs after each deploy and before everything is removed.
fn document(digit: &str) -> AppVersion {
    let mut document = app::document();
    let check = &mut document.actions[0];
    check.steps[0].command = "./one.sh".into();
    check.steps.push(check.steps[0].clone());
    let source = |branch: &str| Source::Git {
        url: "https://github.com/acme/actions".into(),
        commit: digit.repeat(40),
        directory: "checks".into(),
        branch: branch.into(),
    };
    check.step_repos = vec![StepRepo { step: 0, source: source("main") }, StepRepo { step: 1, source: source("") }];
    let event = |event: &str| Trigger::Event { event: event.into(), component: None };
    check.triggers.extend([Trigger::PostDeployAllComponents, event("pre-deprovision")]);
    document
}

fn name() -> ComponentName {
    "action-check-step-1".parse().unwrap()
}

/// Returns a world whose install is at the version with commit `a`.
async fn deployed() -> World {
    let mut world = World::with_install().await;
    sync(&mut world, "a").await;
    world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.settle().await;
    world
}

async fn sync(world: &mut World, digit: &str) {
    world.sync(&document(digit)).await;
    world.build(&format!("build-{digit}")).await;
    world.settle().await;
}

/// Returns the actions that were ordered.
fn ordered(world: &World) -> Vec<RunAction> {
    let orders = world.memory.orders.lock().unwrap();
    let order = |body: &str| Envelope::parse(body.as_bytes()).ok()?.peek::<Order>().ok();
    let works = orders.iter().filter_map(|(.., body)| order(body)).map(|order| order.work);
    works.filter_map(|work| if let Work::Action(action) = work { Some(action) } else { None }).collect()
}

async fn kept_by(world: &World, artifact: &Digest) -> Vec<String> {
    let all = world.list_artifacts().list(&"demo".parse().unwrap(), None).await.unwrap().artifacts;
    all.into_iter().find(|one| one.artifact == *artifact).unwrap().kept_by
}

#[tokio::test]
async fn steps_of_one_source_are_built_once_and_each_order_names_the_artifact() {
    let world = deployed().await;
    let version = document("a").digest().unwrap();

    let orders = ordered(&world);
    let contract = terms::show_contract(&world.versions(), &"demo".parse().unwrap(), &version).await.unwrap();
    let request = CreateReleaseRequest { name: "one".parse().unwrap(), version: Some(version) };
    let release = world.create_release().create(&"demo".parse().unwrap(), &request).await.unwrap();

    let directory = &orders.last().unwrap().directories[..];
    let [directory] = directory else { panic!("{directory:?}") };
    assert_eq!((&directory.steps[..], &directory.component), (&[0, 1][..], &name()));
    assert!(directory.artifact.provenance.is_some());
    assert_eq!(contract.contract.artifacts[&name()], directory.artifact.digest);
    assert_eq!(release.contents.artifacts[&name()], directory.artifact.digest);
    assert!(contract.signed.is_some() && !contract.hosts.contains_key("github.com"), "{:?}", contract.hosts);
}

#[tokio::test]
async fn a_run_is_granted_the_directory_and_nothing_else() {
    let mut world = deployed().await;
    world.runner("globex").behaviours.insert("action:check".into(), Behaviour::Hangs);
    let workflow = world.action("check", "run-1").await.unwrap();
    world.run().await;
    let job = world.workflow(&workflow).await.active_jobs().next().unwrap().clone();
    let artifact = ordered(&world).last().unwrap().directories[0].artifact.clone();

    let answers = world.request_blobs(&job, &artifact).await;

    let [GrantAnswer::Granted { blobs, .. }, GrantAnswer::Refused { refusal, .. }] = &answers[..] else {
        panic!("{answers:?}")
    };
    assert_eq!((blobs.len(), *refusal), (artifact.blobs.len(), GrantRefusal::OtherDigest));
}

#[tokio::test]
async fn a_run_in_a_directory_is_proven_from_its_source_to_its_runner() {
    let mut world = deployed().await;
    world.action("check", "run-1").await.unwrap();
    world.settle().await;
    let artifact = ordered(&world).last().unwrap().directories[0].artifact.digest.clone();

    let lineage = world.show_lineage().show(&artifact, None, None).await.unwrap().lineage;

    let links = lineage.verify(&world.keys.public());
    let broken: Vec<_> = links.iter().filter(|link| link.finding.is_err()).collect();
    assert!(broken.is_empty(), "{broken:#?}");
    assert_eq!((lineage.builds.len(), lineage.builds[0].package), (1, Package::StepDirectory));
    assert_eq!(lineage.uses.len(), 2, "the deploy's run and the other");
    assert!(lineage.uses.iter().all(|used| used.component == name()));
}

#[tokio::test]
async fn the_directory_of_a_deployed_version_is_kept_until_another_version_is_deployed() {
    let mut world = deployed().await;
    let old = ordered(&world).last().unwrap().directories[0].artifact.digest.clone();
    sync(&mut world, "b").await;
    world.memory.advance_secs(YOUNG_SECS);

    let before = kept_by(&world, &old).await;
    world.deploy(&with_input("days", 9), "deploy-2").await.unwrap();
    world.settle().await;
    let after = kept_by(&world, &old).await;

    assert_eq!(before, ["install `globex` is at a version that contains the artifact"]);
    assert_eq!(after, [""; 0]);
    assert_ne!(ordered(&world).last().unwrap().directories[0].artifact.digest, old);
}

#[tokio::test]
async fn an_open_workflow_runs_and_keeps_the_directory_that_it_was_planned_with() {
    let mut world = deployed().await;
    let old = ordered(&world).last().unwrap().directories[0].artifact.digest.clone();
    world.runner("globex").behaviours.insert("action:check".into(), Behaviour::Hangs);
    let workflow = world.action("check", "run-1").await.unwrap();
    world.run().await;

    let kept = kept_by(&world, &old).await;

    assert!(kept.contains(&format!("workflow `{workflow}`")), "{kept:?}");
}

#[tokio::test]
async fn a_directory_that_is_not_built_stops_the_deploy_that_runs_it_with_the_way_out() {
    let world = deployed().await;
    world.sync(&document("c")).await;

    let error = world.deploy(&with_input("days", 9), "deploy-2").await.unwrap_err();

    assert_eq!(
        error.message,
        "action `check` has a step whose directory `action-check-step-1` has no artifact; run `freehold build demo` with \
         the version that has this action, and try again"
    );
}

#[tokio::test]
async fn an_action_before_a_teardown_has_its_directory() {
    let mut world = deployed().await;
    world.forget_orders();

    world.teardown(&TeardownInstallRequest::default(), "teardown-1").await.unwrap();
    world.settle().await;

    let orders = ordered(&world);
    assert_eq!((orders.len(), orders[0].directories.len()), (1, 1));
}

#[tokio::test]
async fn an_action_without_a_repository_has_no_directory() {
    let mut world = World::with_install().await;

    world
        .deploy(&DeployComponentsRequest { all: true, ..DeployComponentsRequest::default() }, "deploy-1")
        .await
        .unwrap();
    world.settle().await;
    world.action("check", "run-1").await.unwrap();
    world.settle().await;

    assert!(ordered(&world).iter().all(|action| action.directories.is_empty()));
}
