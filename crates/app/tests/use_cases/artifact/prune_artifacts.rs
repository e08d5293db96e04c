//! Pruning the registry: used artifacts stay, unused ones are removed in two steps, and an artifact that is used again
//! stays.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use freehold_app::artifact::prune_artifacts::{PruneArtifacts, Pruned, UnusedArtifacts};
use freehold_app::ports::{ArtifactRemover, Expect, PortError, Store as _};
use freehold_app::table::{InstallEntry, OpenWorkflow, put};
use freehold_domain::prune_artifacts::{WAIT_SECS, YOUNG_SECS};
use freehold_protocol::api::{
    ArtifactView, BuildComponentsRequest, CreateReleaseRequest, DeployComponentsRequest, ReasonRequest,
};
use freehold_protocol::{AppName, Digest, WorkflowId};

use crate::support::{World, app, asked_with};

/// A registry that says what was removed; it fails when a test asks for it.
#[derive(Default)]
struct Removals {
    removed: Mutex<Vec<Digest>>,
    fails: Mutex<bool>,
}

#[async_trait]
impl ArtifactRemover for Removals {
    async fn remove(&self, manifests: &[Digest]) -> Result<(), PortError> {
        if *self.fails.lock().unwrap() {
            return Err(PortError::Failed { what: "registry".into(), reason: "down".into() });
        }
        self.removed.lock().unwrap().extend_from_slice(manifests);
        Ok(())
    }
}

fn demo() -> AppName {
    "demo".parse().unwrap()
}

fn unused(world: &World) -> UnusedArtifacts {
    UnusedArtifacts { store: world.memory.clone(), versions: world.versions(), clock: world.memory.clone() }
}

async fn prune(world: &World, removals: &Arc<Removals>) -> Pruned {
    PruneArtifacts { unused: unused(world), registry: removals.clone() }.prune().await.unwrap()
}

async fn storages(world: &World) -> Vec<ArtifactView> {
    let all = world.list_artifacts().list(&demo(), None).await.unwrap().artifacts;
    all.into_iter().filter(|one| one.component.as_str() == "storage").collect()
}

/// The old artifact of `storage` first.
async fn old_and_new(world: &World) -> (ArtifactView, ArtifactView) {
    let mut found = storages(world).await;
    found.sort_by_key(|one| one.kept_by.iter().any(|why| why == "newest version"));
    let new = found.pop().unwrap();
    (found.pop().unwrap(), new)
}

/// Builds a second version, in which `storage` has another source, long after the first.
async fn two_versions(world: &mut World) {
    world.sync(&app::with_source("storage", "example/storage:2")).await;
    world.build("build-2").await;
    world.settle().await;
}

#[tokio::test]
async fn what_an_install_runs_stays_until_it_runs_another() {
    let mut world = World::with_install().await;
    two_versions(&mut world).await;
    world.memory.advance_secs(YOUNG_SECS);
    let removals = Arc::new(Removals::default());

    let before = prune(&world, &removals).await;
    let (old, new) = old_and_new(&world).await;
    world.deploy(&DeployComponentsRequest::default(), "deploy-2").await.unwrap();
    world.settle().await;
    let marked = prune(&world, &removals).await;
    world.memory.advance_secs(WAIT_SECS - 60);
    let early = prune(&world, &removals).await;
    world.memory.advance_secs(60);
    let removed = prune(&world, &removals).await;
    let again = prune(&world, &removals).await;

    assert_eq!(before, Pruned { kept: 4, ..Pruned::default() });
    assert_eq!(
        old.kept_by,
        ["install `globex` runs the artifact", "install `globex` is at a version that contains the artifact"]
    );
    assert_eq!(new.kept_by, ["newest version"]);
    assert_eq!((marked.marked, early.removed, removed.removed, again.removed), (1, 0, 1, 0));
    let gone = removals.removed.lock().unwrap().clone();
    assert_eq!(gone.len(), 2, "the manifest and its statement: {gone:?}");
    assert_eq!(gone[0], old.artifact);
    let (old, new) = old_and_new(&world).await;
    assert_eq!((old.state.as_str(), new.state.as_str()), ("removed", "kept"));
}

#[tokio::test]
async fn a_release_keeps_what_nobody_runs() {
    let mut world = World::with_app().await;
    let old = app::document().digest().unwrap();
    let request = |name: &str| CreateReleaseRequest { name: name.parse().unwrap(), version: Some(old.clone()) };
    world.create_release().create(&demo(), &request("one")).await.unwrap();
    two_versions(&mut world).await;
    world.memory.advance_secs(YOUNG_SECS);
    let removals = Arc::new(Removals::default());

    let pruned = prune(&world, &removals).await;
    let (kept, _) = old_and_new(&world).await;

    assert_eq!(pruned, Pruned { kept: 4, ..Pruned::default() });
    assert_eq!(kept.kept_by, ["release `one`"]);
}

#[tokio::test]
async fn what_is_retired_serves_nothing_new_until_it_is_built_again() {
    let mut world = World::with_app().await;
    let old = app::document().digest().unwrap();
    two_versions(&mut world).await;
    world.memory.advance_secs(YOUNG_SECS);
    let view = unused(&world).mark(&demo()).await.unwrap();
    let request = CreateReleaseRequest { name: "late".parse().unwrap(), version: Some(old) };

    let refused = world.create_release().create(&demo(), &request).await.unwrap_err();
    world.sync(&app::document()).await;
    let built = world.build("build-3").await;
    let taken = world.create_release().create(&demo(), &request).await;

    assert_eq!(view.artifacts.iter().filter(|one| one.state == "unused").count(), 1);
    assert!(refused.message.contains("not built: `storage`"), "{refused}");
    assert_eq!(built.workflow, None, "it was there");
    assert!(taken.is_ok());
    let removals = Arc::new(Removals::default());
    world.memory.advance_secs(WAIT_SECS);
    prune(&world, &removals).await;
    world.memory.advance_secs(WAIT_SECS);
    prune(&world, &removals).await;
    assert!(!removals.removed.lock().unwrap().iter().any(|gone| storages_of(&view.artifacts).contains(&gone)));
}

fn storages_of(all: &[ArtifactView]) -> Vec<&Digest> {
    let unused = all.iter().filter(|one| one.state == "unused");
    unused.map(|one| &one.artifact).collect()
}

#[tokio::test]
async fn a_removal_that_fails_is_gone_on_with_and_until_then_nothing_is_built_in_its_place() {
    let mut world = World::with_app().await;
    two_versions(&mut world).await;
    world.memory.advance_secs(YOUNG_SECS);
    let removals = Arc::new(Removals::default());
    prune(&world, &removals).await;
    world.memory.advance_secs(WAIT_SECS);
    *removals.fails.lock().unwrap() = true;

    let failed = prune(&world, &removals).await;
    world.sync(&app::document()).await;
    let refused = world
        .build_components()
        .start(&demo(), &BuildComponentsRequest::default(), asked_with("build-3"))
        .await
        .unwrap_err();
    *removals.fails.lock().unwrap() = false;
    let removed = prune(&world, &removals).await;
    let built = world.build("build-4").await;
    world.settle().await;
    let (late, rebuilt) = old_and_new(&world).await;

    assert_eq!((failed.failed, failed.removed, removed.failed, removed.removed), (1, 0, 0, 1));
    assert_eq!(refused.message, "the artifact of component `storage` is being removed; build again in a few minutes");
    assert!(built.workflow.is_some());
    // The version that was synced again is the newest now.
    assert_eq!((late.state.as_str(), rebuilt.state.as_str()), ("unused", "kept"));
}

#[tokio::test]
async fn what_was_taken_back_stays_so_when_it_is_built_again_after_its_removal() {
    let mut world = World::with_app().await;
    let (old, _) = {
        two_versions(&mut world).await;
        world.memory.advance_secs(YOUNG_SECS);
        old_and_new(&world).await
    };
    let because = ReasonRequest { reason: "CVE-2026-1".into() };
    world.revoke_artifact().revoke(&old.artifact, &because).await.unwrap();
    let removals = Arc::new(Removals::default());
    prune(&world, &removals).await;
    world.memory.advance_secs(WAIT_SECS);
    prune(&world, &removals).await;

    world.sync(&app::document()).await;
    let built = world.build("build-3").await;
    world.settle().await;
    let request = CreateReleaseRequest { name: "late".parse().unwrap(), version: None };
    let refused = world.create_release().create(&demo(), &request).await.unwrap_err();

    assert!(built.workflow.is_some());
    assert!(refused.message.contains("`storage` was revoked: CVE-2026-1"), "{refused}");
}

#[tokio::test]
async fn an_install_that_is_gone_since_the_list_was_read_stops_no_prune() {
    let world = World::with_install().await;
    let (install, since) = ("gone".parse().unwrap(), world.now());
    let entry = InstallEntry { install, account: "222222222222".parse().unwrap() };
    let open = OpenWorkflow {
        workflow: WorkflowId::derive("gone", "a"),
        install: entry.install.clone(),
        since,
        next_sweep: None,
        due_by: String::new(),
    };
    let left = vec![put(&entry, Expect::Absent).unwrap(), put(&open, Expect::Absent).unwrap()];
    let before = prune(&world, &Arc::default()).await;

    let _ = world.memory.commit(left).await.unwrap();

    assert_eq!(prune(&world, &Arc::default()).await, before);
    assert!(before.kept > 0, "{before:?}");
}
