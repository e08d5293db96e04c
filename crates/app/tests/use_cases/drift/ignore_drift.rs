//! Rules that ignore drift: they count at once, are replaced by their scope, and have limits.

use freehold_app::{Kind, read};
use freehold_protocol::api::{DetectDriftRequest, IgnoreDriftRequest};

use crate::support::{World, drifts, globex, member};

fn rule(address: &str, attributes: &[&str]) -> IgnoreDriftRequest {
    IgnoreDriftRequest {
        address: address.to_owned(),
        component: None,
        attributes: attributes.iter().map(ToString::to_string).collect(),
        reason: "the autoscaler".to_owned(),
        remove: false,
    }
}

async fn state(world: &World) -> String {
    read::list_drift(&*world.memory, &globex()).await.unwrap().parts[0].drift.state.clone()
}

#[tokio::test]
async fn a_rule_counts_at_once_is_replaced_and_ends_when_it_is_removed() {
    let mut world = World::with_install().await;
    world.runner("globex").behaviours.insert("drift:storage".into(), drifts(&["aws_s3_bucket.a"]));
    world.detect_drift(&DetectDriftRequest::default(), "drift-1").await.unwrap();
    world.settle().await;
    let ignore = world.ignore_drift();

    let mut seen = vec![state(&world).await];
    for request in [
        rule("aws_s3_bucket.*", &["acl"]),
        rule("aws_s3_bucket.*", &["tags"]),
        IgnoreDriftRequest { remove: true, ..rule("aws_s3_bucket.*", &[]) },
    ] {
        ignore.ignore(&globex(), &request, member()).await.unwrap();
        seen.push(state(&world).await);
    }

    assert_eq!(seen, ["drifted", "drifted", "in_sync", "drifted"]);
    assert!(read::list_drift(&*world.memory, &globex()).await.unwrap().rules.is_empty());
}

#[tokio::test]
async fn what_is_ignored_is_still_listed_with_its_rule() {
    let mut world = World::with_install().await;
    world.runner("globex").behaviours.insert("drift:storage".into(), drifts(&["aws_s3_bucket.a"]));
    world.ignore_drift().ignore(&globex(), &rule("*", &[]), member()).await.unwrap();

    world.detect_drift(&DetectDriftRequest::default(), "drift-1").await.unwrap();
    world.settle().await;

    let found = read::list_drift(&*world.memory, &globex()).await.unwrap();
    assert_eq!(found.parts[0].drift.state, "in_sync");
    assert!(found.parts[0].drift.resources[0].ignored);
    assert_eq!((found.rules[0].reason.as_str(), &found.rules[0].by), ("the autoscaler", member()));
}

#[tokio::test]
async fn rules_that_are_too_large_together_are_refused() {
    let world = World::with_install().await;
    let ignore = world.ignore_drift();
    let names: Vec<String> = (0..20).map(|at| format!("{at:0200}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for at in 0..7 {
        ignore.ignore(&globex(), &rule(&format!("a{at}"), &names), member()).await.unwrap();
    }

    let large = ignore.ignore(&globex(), &rule("a7", &names), member()).await.unwrap_err();

    assert_eq!(large.kind, Kind::Conflict);
    assert!(large.message.ends_with("remove one with `freehold drift ignore --remove`"), "{large}");
    ignore.ignore(&globex(), &rule("a6", &[]), member()).await.unwrap();
    ignore.ignore(&globex(), &rule("a7", &names), member()).await.unwrap();
}

#[tokio::test]
async fn rules_that_are_wrong_absent_or_too_many_are_refused() {
    let world = World::with_install().await;
    let ignore = world.ignore_drift();
    for at in 0..50 {
        ignore.ignore(&globex(), &rule(&format!("a{at}"), &[]), member()).await.unwrap();
    }
    let before = world.memory.rows();

    let empty = ignore.ignore(&globex(), &rule("", &[]), member()).await.unwrap_err();
    let many = ignore.ignore(&globex(), &rule("one-more", &[]), member()).await.unwrap_err();
    let absent = IgnoreDriftRequest { remove: true, ..rule("other", &[]) };
    let absent = ignore.ignore(&globex(), &absent, member()).await.unwrap_err();

    assert_eq!((empty.kind, many.kind, absent.kind), (Kind::Invalid, Kind::Conflict, Kind::NotFound));
    assert!(many.message.starts_with("the install has 50 rules, which is the maximum"), "{many}");
    assert_eq!(world.memory.rows(), before);
    ignore.ignore(&globex(), &rule("a7", &["x"]), member()).await.unwrap();
}
