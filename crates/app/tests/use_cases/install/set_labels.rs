//! Setting labels: they are merged into the own labels of the install, and nothing else of the install changes.

use std::collections::BTreeMap;

use freehold_app::{Kind, read};
use freehold_protocol::api::{InstallView, SetLabelsRequest};
use freehold_protocol::limits::MAX_LABELS_BYTES;

use crate::support::{World, globex, member};

fn request(labels: &[(&str, Option<&str>)]) -> SetLabelsRequest {
    let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), value.map(str::to_owned))).collect();
    SetLabelsRequest { labels }
}

async fn set(world: &World, labels: &[(&str, Option<&str>)]) {
    world.set_labels().set(&globex(), &request(labels), member()).await.unwrap();
}

async fn view(world: &World) -> InstallView {
    read::show_install(&world.versions(), &globex(), world.now()).await.unwrap()
}

#[tokio::test]
async fn labels_are_set_and_removed_and_others_stay() {
    let world = World::with_install().await;
    let before = view(&world).await;

    set(&world, &[("env", Some("test")), ("team", Some("shop")), ("note", Some(""))]).await;
    set(&world, &[("env", Some("production")), ("team", None)]).await;
    let after = view(&world).await;
    let rows = world.memory.rows();
    set(&world, &[("env", Some("production")), ("team", None)]).await;
    set(&world, &[]).await;

    let own: BTreeMap<_, _> = [("env", "production"), ("note", "")].map(|(k, v)| (k.to_owned(), v.to_owned())).into();
    assert_eq!(after, InstallView { labels: own.clone(), own_labels: own, ..before });
    assert_eq!(world.memory.rows(), rows);
}

#[tokio::test]
async fn labels_that_no_install_can_have_change_nothing() {
    let world = World::with_install().await;
    let half = "x".repeat(MAX_LABELS_BYTES / 2);
    set(&world, &[("a", Some(half.as_str()))]).await;
    let rows = world.memory.rows();

    let mut refused = Vec::new();
    for labels in [&[("b", Some(half.as_str()))], &[("", Some("x"))]] {
        refused.push(world.set_labels().set(&globex(), &request(labels), member()).await.unwrap_err());
    }
    let unknown = world.set_labels().set(&"nobody".parse().unwrap(), &request(&[]), member()).await.unwrap_err();

    assert_eq!(refused.iter().map(|error| error.kind).collect::<Vec<_>>(), [Kind::Invalid; 2]);
    assert!(refused[0].message.starts_with("the labels have 4098 bytes in all"), "{}", refused[0]);
    assert!(refused[1].message.starts_with("a label has an empty key"), "{}", refused[1]);
    assert_eq!(unknown.kind, Kind::NotFound);
    assert_eq!(world.memory.rows(), rows);
}
