//! Acknowledging a difference: until it is another one, with who and why, and the refused requests.

use freehold_app::{Kind, read};
use freehold_protocol::api::{AcknowledgeDriftRequest, DetectDriftRequest};

use crate::support::{World, drifts, globex, member};

fn request(address: &str, reason: &str) -> AcknowledgeDriftRequest {
    AcknowledgeDriftRequest { address: address.to_owned(), component: None, reason: reason.to_owned() }
}

async fn drifted() -> World {
    let mut world = World::with_install().await;
    world.runner("globex").behaviours.insert("drift:storage".into(), drifts(&["aws_s3_bucket.a"]));
    world.detect_drift(&DetectDriftRequest::default(), "drift-1").await.unwrap();
    world.settle().await;
    world
}

async fn state(world: &World) -> String {
    read::list_drift(&*world.memory, &globex()).await.unwrap().parts[0].drift.state.clone()
}

#[tokio::test]
async fn an_acknowledged_difference_says_who_and_why_and_twice_is_once() {
    let world = drifted().await;
    let known = request("aws_s3_bucket.a", " until Friday ");

    world.acknowledge_drift().acknowledge(&globex(), &known, member()).await.unwrap();
    let before = world.memory.rows();
    world.acknowledge_drift().acknowledge(&globex(), &known, member()).await.unwrap();

    assert_eq!((state(&world).await.as_str(), world.memory.rows()), ("acknowledged", before));
    let found = read::list_drift(&*world.memory, &globex()).await.unwrap();
    let word = found.parts[0].drift.resources[0].acknowledged.clone().unwrap();
    assert_eq!((&word.by, word.reason.as_str()), (member(), "until Friday"));
    let history = read::show_history(&*world.memory, &globex(), None, world.now()).await.unwrap();
    let event = history.items.iter().find(|one| one.what.starts_with("drift acknowledged")).unwrap();
    assert_eq!((event.by.as_ref(), event.why.as_str()), (Some(member()), "until Friday"));
}

#[tokio::test]
async fn another_difference_of_the_same_part_is_drift_again() {
    let mut world = drifted().await;
    world
        .acknowledge_drift()
        .acknowledge(&globex(), &request("aws_s3_bucket.a", "until Friday"), member())
        .await
        .unwrap();

    world.runner("globex").behaviours.insert("drift:storage".into(), drifts(&["aws_s3_bucket.a", "aws_s3_bucket.b"]));
    world.detect_drift(&DetectDriftRequest::default(), "drift-2").await.unwrap();
    world.settle().await;

    assert_eq!(state(&world).await, "drifted");
    let found = read::list_drift(&*world.memory, &globex()).await.unwrap();
    let known: Vec<bool> = found.parts[0].drift.resources.iter().map(|one| one.acknowledged.is_some()).collect();
    assert_eq!(known, [true, false]);
}

#[tokio::test]
async fn what_does_not_differ_and_a_reason_of_two_lines_are_refused() {
    let world = drifted().await;
    let before = world.memory.rows();
    let acknowledge = world.acknowledge_drift();

    let other = acknowledge.acknowledge(&globex(), &request("aws_s3_bucket.b", "known"), member()).await.unwrap_err();
    let lines = acknowledge.acknowledge(&globex(), &request("aws_s3_bucket.a", "a\nb"), member()).await.unwrap_err();

    assert_eq!((other.kind, lines.kind), (Kind::NotFound, Kind::Invalid));
    assert!(other.message.starts_with("no check found that `aws_s3_bucket.b` differs"), "{other}");
    assert_eq!(world.memory.rows(), before);
}
