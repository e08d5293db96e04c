//! Read operations: each returns what the use cases wrote.

use freehold_app::app_version::show_toggles::show_toggles;
use freehold_app::{Kind, read, table};
use freehold_protocol::AppName;
use freehold_protocol::api::{CreateReleaseRequest, WorkflowView};

use crate::support::{World, app, globex};

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
    let apps = read::list_apps(&*world.memory, None).await.unwrap();
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
