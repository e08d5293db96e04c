//! Read operations: each returns what the use cases wrote.

use std::collections::BTreeSet;

use freehold_app::app_version::show_toggles::show_toggles;
use freehold_app::ports::{Committed, Expect, Store as _, Write};
use freehold_app::read::List;
use freehold_app::table::{DeployedRecord, RunEntry, WorkflowEntry, put, put_workflow};
use freehold_app::{Kind, read, table};
use freehold_domain::Workflow;
use freehold_domain::plan::Deployed;
use freehold_domain::runbook::{Resumed, Run};
use freehold_domain::workflow::WorkflowState;
use freehold_protocol::api::{CreateReleaseRequest, WorkflowView};
use freehold_protocol::limits::MAX_OUTPUTS_BYTES;
use freehold_protocol::{AppName, ComponentName, RunId, Timestamp, WorkflowId};
use serde::Serialize;

use crate::support::{World, app, globex, member};

fn demo() -> AppName {
    "demo".parse().unwrap()
}

#[tokio::test]
async fn an_app_is_shown_and_listed_with_its_latest_version() {
    let world = World::new();
    let latest = app::with_source("storage", "example/storage:2");
    world.sync(&app::document()).await;
    world.sync(&latest).await;

    let view = read::show_app(&*world.memory, &demo()).await.unwrap();
    let apps = read::list_apps(&*world.memory, None, &|_| true).await.unwrap();
    let unknown = read::show_app(&*world.memory, &"other".parse().unwrap()).await.unwrap_err();

    assert_eq!((view.number, &view.latest), (2, &latest.digest().unwrap()));
    assert_eq!((apps.items, apps.next), (vec![view], None));
    assert_eq!(unknown.kind, Kind::NotFound);
}

#[tokio::test]
async fn builds_are_listed_as_the_request_for_them_answers() {
    let world = World::with_app().await;
    let started = world.build("build-2").await;

    let mut builds = read::list_builds(&*world.memory, &demo(), None).await.unwrap().items;

    builds.sort_by(|one, other| one.component.cmp(&other.component));
    assert_eq!((builds.len(), builds), (3, started.builds));
}

#[tokio::test]
async fn a_release_is_shown_and_listed_as_it_was_created() {
    let world = World::with_app().await;
    let request = CreateReleaseRequest { name: "2026.11".parse().unwrap(), version: None };
    let created = world.create_release().create(&demo(), &request).await.unwrap();

    let view = read::show_release(&*world.memory, &demo(), &request.name).await.unwrap();
    let releases = read::list_releases(&*world.memory, &demo(), None).await.unwrap();
    let unknown = read::show_release(&*world.memory, &demo(), &"other".parse().unwrap()).await.unwrap_err();

    assert_eq!(view, created);
    assert_eq!((releases.items, releases.next), (vec![created], None));
    assert_eq!(unknown.kind, Kind::NotFound);
}

#[tokio::test]
async fn a_workflow_is_shown_with_its_nodes_and_listed_without_them() {
    let world = World::with_install().await;

    let workflows = read::list_workflows(&*world.memory, &globex(), None).await.unwrap().items;
    let view = read::show_workflow(&*world.memory, &workflows[0].workflow, world.now()).await.unwrap();

    assert!(!view.nodes.is_empty());
    assert_eq!(workflows, [WorkflowView { nodes: Vec::new(), ..view }]);
}

/// The maximum size of the response of a Lambda function, in bytes.
const MAX_RESPONSE_BYTES: usize = 6 * 1024 * 1024;

/// Returns the size of an answer as a string in the response of a function, in bytes.
fn size(answer: &impl Serialize) -> usize {
    serde_json::to_string(&serde_json::to_string(answer).unwrap()).unwrap().len()
}

async fn store(world: &World, writes: Vec<Write>) {
    assert_eq!(world.memory.commit(writes).await.unwrap(), Committed::Done);
}

#[tokio::test]
async fn workflows_with_long_reasons_are_on_pages_that_fit_into_a_response() {
    let world = World::with_install().await;
    let first = world.provisioning("globex").await;
    let known = world.workflow(&first).await;
    let mut all = BTreeSet::from([first]);
    for at in 0..60 {
        let (id, created_at) = (WorkflowId::derive("globex", &at.to_string()), Timestamp::from_millis(at));
        // Each quote takes four bytes in the response.
        let state = WorkflowState::Failed { ended_at: created_at, reason: "\"".repeat(100 * 1024) };
        let failed = Workflow { id: id.clone(), created_at, state, nodes: Vec::new(), ..known.clone() };
        let entry = WorkflowEntry { workflow: id.clone(), install: globex(), created_at };
        store(&world, vec![put_workflow(&failed, Expect::Absent).unwrap(), put(&entry, Expect::Absent).unwrap()]).await;
        all.insert(id);
    }

    let (mut listed, mut shown, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
    let (mut after, mut history_after) = (Some(String::new()), Some(String::new()));
    while let Some(place) = after {
        let place = Some(place.as_str()).filter(|place| !place.is_empty());
        let page = read::list_workflows(&*world.memory, &globex(), place).await.unwrap();
        sizes.push(size(&page));
        listed.extend(page.items.into_iter().map(|view| view.workflow));
        after = page.next;
    }
    while let Some(place) = history_after {
        let place = Some(place.as_str()).filter(|place| !place.is_empty());
        let page = read::show_history(&*world.memory, &globex(), place, world.now()).await.unwrap();
        sizes.push(size(&page));
        shown
            .extend(page.items.into_iter().filter(|entry| entry.kind == "workflow").filter_map(|entry| entry.workflow));
        history_after = page.next;
    }

    assert!(sizes.len() > 4 && sizes.iter().all(|size| *size < MAX_RESPONSE_BYTES), "{sizes:?}");
    for found in [listed, shown] {
        assert_eq!((found.len(), found.into_iter().collect::<BTreeSet<_>>()), (all.len(), all.clone()));
    }
}

#[tokio::test]
async fn runs_with_long_reasons_are_on_pages_of_the_history_that_fit_into_a_response() {
    let world = World::with_runbook(&app::with_runbook()).await;
    let known = world.run_runbook("fix", "run-0").await.unwrap();
    let mut all = BTreeSet::from([known.id.clone()]);
    for at in 0..60 {
        // All of them are older than the workflows of the install, so the last page would have them all, and some of
        // them began in the same millisecond.
        let (id, created_at) = (RunId::derive(&globex(), &at.to_string()), Timestamp::from_millis(at / 4));
        let reason = "\"".repeat(100 * 1024);
        let resumed = Resumed { at: created_at, by: member().clone(), reason, cause: "c".into(), after: String::new() };
        let run = Run { id: id.clone(), created_at, resumed: vec![resumed], ..known.clone() };
        let entry = RunEntry { run: id.clone(), install: globex(), created_at };
        store(&world, vec![put(&run, Expect::Absent).unwrap(), put(&entry, Expect::Absent).unwrap()]).await;
        all.insert(id);
    }

    let (mut shown, mut sizes, mut after) = (Vec::new(), Vec::new(), Some(String::new()));
    while let Some(place) = after {
        let place = List::Workflows.place(Some(place.as_str())).unwrap();
        let page = read::show_history(&*world.memory, &globex(), place, world.now()).await.unwrap();
        sizes.push(size(&page));
        shown.extend(page.items.into_iter().filter(|entry| entry.kind == "run").filter_map(|entry| entry.run));
        after = page.next;
    }

    assert!(sizes.len() > 3 && sizes.iter().all(|size| *size < MAX_RESPONSE_BYTES), "{sizes:?}");
    assert_eq!((shown.len(), shown.into_iter().collect::<BTreeSet<_>>()), (all.len(), all));
}

#[tokio::test]
async fn components_that_do_not_fit_into_a_response_are_shown_after_the_others() {
    let world = World::with_install().await;
    let parts = table::parts(&*world.memory, &globex()).await.unwrap();
    let known = parts.values().next().unwrap();
    let mut all: Vec<ComponentName> = parts.keys().cloned().collect();
    for at in 0..100 {
        let component: ComponentName = format!("part-{at:03}").parse().unwrap();
        let outputs = [("text".to_owned(), "x".repeat(MAX_OUTPUTS_BYTES).into())].into();
        let deployed = Deployed { component: component.clone(), outputs, ..known.clone() };
        store(&world, vec![put(&DeployedRecord { install: globex(), deployed }, Expect::Absent).unwrap()]).await;
        all.push(component);
    }
    all.sort();

    let first = read::show_install(&world.versions(), &globex(), world.now()).await.unwrap();
    let place = first.next.as_deref();
    let rest = read::show_install_after(&world.versions(), &globex(), place, world.now()).await.unwrap();

    assert!(size(&first) < MAX_RESPONSE_BYTES, "{}", size(&first));
    assert!(first.components.len() > 50, "{}", first.components.len());
    let shown = first.components.iter().chain(&rest.components).map(|one| one.component.clone());
    assert_eq!((shown.collect::<Vec<_>>(), &rest.next), (all, &None));
}

#[tokio::test]
async fn toggles_are_shown_as_their_change_answers() {
    let world = World::with_toggles().await;
    let changed = world.switch(&[("info", false)]).await.unwrap();

    let install = table::install(&*world.memory, &globex()).await.unwrap().value;
    let view = show_toggles(&world.versions(), &install).await.unwrap();

    assert_eq!(view, changed);
}

#[tokio::test]
async fn the_tenant_is_shown_with_its_root_key() {
    let world = World::new();

    let view = world.show_tenant().show_tenant().await.unwrap();

    assert_eq!((view.tenant, view.tenant_key), (world.tenant, world.keys.public()));
}
