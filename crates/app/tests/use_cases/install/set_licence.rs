//! Setting a licence: each one gets the next serial, and orders bring the newest one to the install, signed once.

use freehold_app::ports::{Expect, Store as _};
use freehold_app::table::put;
use freehold_app::{Kind, read, table};
use freehold_domain::install::Install;
use freehold_protocol::Envelope;
use freehold_protocol::api::{InstallView, LicenceView, SetLicenceRequest};
use freehold_protocol::app_version::Reference;
use freehold_protocol::licence::Licence;
use freehold_protocol::order::Order;
use serde_json::{Value, json};

use crate::support::{World, app, globex, member, with_input};

fn seats(seats: u32) -> SetLicenceRequest {
    SetLicenceRequest { facts: [("seats".to_owned(), json!(seats))].into(), ..SetLicenceRequest::default() }
}

fn withdrawal() -> SetLicenceRequest {
    SetLicenceRequest { withdraw: true, ..SetLicenceRequest::default() }
}

async fn set(world: &World, request: &SetLicenceRequest) {
    world.set_licence().set(&globex(), request, member()).await.unwrap();
}

async fn view(world: &World) -> InstallView {
    read::show_install(&world.versions(), &globex(), world.now()).await.unwrap()
}

/// Returns the licence in each order that was sent after the first `before`; `None` for an order without one.
fn brought(world: &World, before: usize) -> Vec<Option<String>> {
    let orders = world.memory.orders.lock().unwrap();
    let orders = orders.iter().skip(before).map(|sent| Envelope::parse(sent.3.as_bytes()).unwrap());
    let orders = orders.filter_map(|envelope| envelope.peek::<Order>().ok());
    let licence = |order: Order| order.context.pointer("/nuon/install/licence").cloned();
    orders.map(|order| licence(order).and_then(|text| text.as_str().map(str::to_owned))).collect()
}

fn sent(world: &World) -> usize {
    world.memory.orders.lock().unwrap().len()
}

/// Deploys with `days`, and returns the licences in the orders of the deploy.
async fn deployed(world: &mut World, days: u32, cause: &str) -> Vec<Option<String>> {
    let before = sent(world);
    world.deploy(&with_input("days", days), cause).await.unwrap();
    world.settle().await;
    brought(world, before)
}

#[tokio::test]
async fn a_licence_is_set_and_withdrawn_and_the_same_again_changes_nothing() {
    let world = World::with_install().await;
    let before = view(&world).await;

    set(&world, &seats(50)).await;
    let first = view(&world).await;
    let rows = world.memory.rows();
    world.memory.advance_secs(60);
    set(&world, &seats(50)).await;
    let unchanged = world.memory.rows();
    set(&world, &withdrawal()).await;
    let withdrawn = view(&world).await.licence.unwrap();

    let expected = LicenceView {
        serial: 1,
        facts: seats(50).facts,
        not_after: None,
        withdrawn: false,
        issued_at: first.licence.as_ref().unwrap().issued_at,
        by: member().clone(),
        signed: None,
    };
    assert_eq!(first, InstallView { licence: Some(expected), ..before });
    assert_eq!(rows, unchanged);
    assert!(withdrawn.withdrawn && withdrawn.serial == 2 && withdrawn.not_after == Some(world.now()));
}

#[tokio::test]
async fn orders_bring_the_newest_licence_and_all_of_them_the_same_text() {
    let mut world = World::with_install().await;
    let none = deployed(&mut world, 8, "deploy-1").await;
    set(&world, &seats(50)).await;

    let first = deployed(&mut world, 9, "deploy-2").await;
    world.memory.advance_secs(3600);
    let later = deployed(&mut world, 10, "deploy-3").await;
    set(&world, &withdrawal()).await;
    let withdrawn = deployed(&mut world, 11, "deploy-4").await;

    assert!(none.len() > 1 && none.iter().all(Option::is_none));
    let text = first[0].clone().unwrap();
    assert!(first.iter().chain(&later).all(|one| one.as_ref() == Some(&text)));
    let licence = Licence::open_under(text.as_bytes(), &world.keys.public()).unwrap();
    assert_eq!((licence.serial, &licence.facts["seats"]), (1, &json!(50)));
    assert_eq!(licence.check_install(&world.tenant, &globex()), Ok(()));
    let text = withdrawn[0].clone().unwrap();
    let licence = Licence::open_under(text.as_bytes(), &world.keys.public()).unwrap();
    assert!(licence.withdrawn && licence.serial == 2 && licence.facts.is_empty());
    assert_eq!(view(&world).await.licence.unwrap().signed, Some(text));
}

#[tokio::test]
async fn a_row_that_lost_its_licence_gets_one_above_the_licence_that_orders_have_brought() {
    let mut world = World::with_install().await;
    set(&world, &seats(50)).await;
    deployed(&mut world, 8, "deploy-1").await;
    let row = table::install(&*world.memory, &globex()).await.unwrap();
    let lost = Install { licence: None, ..row.value };
    let _ = world.memory.commit(vec![put(&lost, Expect::Rev(row.rev)).unwrap()]).await.unwrap();

    set(&world, &seats(50)).await;
    let brought = deployed(&mut world, 9, "deploy-2").await;

    let text = brought[0].clone().unwrap();
    assert_eq!(Licence::open_under(text.as_bytes(), &world.keys.public()).unwrap().serial, 2);
}

#[tokio::test]
async fn a_part_that_reads_the_licence_is_deployed_again_after_the_licence_has_changed() {
    let mut world = World::with_install().await;
    let mut version = app::document();
    version.components[0].references.insert(Reference::Licence);
    world.sync(&version).await;
    world.build("build-2").await;
    world.settle().await;
    set(&world, &seats(50)).await;
    deployed(&mut world, 8, "deploy-1").await;

    let unchanged = deployed(&mut world, 8, "deploy-2").await;
    set(&world, &seats(60)).await;
    let changed = deployed(&mut world, 8, "deploy-3").await;

    assert_eq!(unchanged, Vec::new());
    let text = changed.first().cloned().flatten().unwrap();
    assert_eq!(Licence::open_under(text.as_bytes(), &world.keys.public()).unwrap().serial, 2);
}

#[tokio::test]
async fn a_licence_that_no_install_can_have_changes_nothing() {
    let world = World::with_install().await;
    let rows = world.memory.rows();
    let nested = SetLicenceRequest {
        facts: [("limits".to_owned(), json!({ "seats": Value::Null }))].into(),
        ..SetLicenceRequest::default()
    };

    let invalid = world.set_licence().set(&globex(), &nested, member()).await.unwrap_err();
    let unknown = world.set_licence().set(&"nobody".parse().unwrap(), &seats(1), member()).await.unwrap_err();

    assert_eq!((invalid.kind, unknown.kind), (Kind::Invalid, Kind::NotFound));
    assert!(invalid.message.starts_with("fact `limits` is not a text"), "{invalid}");
    assert_eq!(world.memory.rows(), rows);
}
