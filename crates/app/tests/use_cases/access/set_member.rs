//! Changing the groups of members.

use std::sync::Arc;

use freehold_app::Kind;
use freehold_app::access::set_member::SetMember;
use freehold_app::access::{About, ParsedPolicies, list_members};
use futures_util::future::BoxFuture;

use crate::support::access::{OWNERS, groups, name, policies};
use crate::support::interleaving::Interleaved;
use crate::support::{World, member};

#[tokio::test]
async fn the_next_request_is_decided_by_the_new_groups_and_a_repeated_change_changes_nothing() {
    let world = World::new();
    let ana = world.with_member("ana", &["auditor"], 1).await;
    let before = world.ask(&ana, "set_policies", &About::Tenant).await.map(|_| ()).unwrap_err();
    let change = world.set_member(world.memory.clone());

    let view = change.set(&name("ana"), &groups(&["owner"]), member()).await.unwrap();
    let rows = world.memory.rows();
    let again = change.set(&name("ana"), &groups(&["owner"]), member()).await.unwrap();

    assert_eq!(before.kind, Kind::Forbidden);
    assert!(world.ask(&ana, "set_policies", &About::Tenant).await.is_ok());
    assert_eq!((again, world.memory.rows()), (view, rows));
}

#[tokio::test]
async fn groups_of_an_invitation_count_once_it_is_accepted() {
    let world = World::new();
    world.invite("ana", &["auditor"], 1).await;

    world.set_member(world.memory.clone()).set(&name("ana"), &groups(&["operator"]), member()).await.unwrap();

    let accepted = world.accept(1, &crate::support::access::person("ana")).await.unwrap();
    assert_eq!(accepted.groups, ["operator"]);
}

#[tokio::test]
async fn the_last_owner_stays_an_owner_while_nobody_else_may_change_the_policies() {
    let world = World::new();
    world.with_member("ana", &["owner"], 1).await;
    world.set_policies(world.memory.clone()).set(&policies(OWNERS), member()).await.unwrap();

    let change = world.set_member(world.memory.clone());
    let error = change.set(&name("ana"), &groups(&["auditor"]), member()).await.unwrap_err();

    assert_eq!(error.kind, Kind::Conflict);
    assert!(error.message.contains("nobody could change the policies"), "{error}");
    world.with_member("ben", &["owner"], 2).await;
    assert!(change.set(&name("ana"), &groups(&["auditor"]), member()).await.is_ok());
}

#[tokio::test]
async fn of_two_owners_who_demote_each_other_at_once_one_stays() {
    for at in 0..8 {
        let world = World::new();
        world.with_member("ana", &["owner"], 1).await;
        world.with_member("ben", &["owner"], 2).await;
        world.set_policies(world.memory.clone()).set(&policies(OWNERS), member()).await.unwrap();
        let memory = world.memory.clone();
        let act = move || -> BoxFuture<'static, ()> {
            let (store, clock) = (memory.clone(), memory.clone());
            Box::pin(async move {
                let other = SetMember { store, clock, policies: ParsedPolicies::default() };
                let _ = other.set(&name("ana"), &groups(&["auditor"]), member()).await;
            })
        };
        let store = Arc::new(Interleaved::new(world.memory.clone(), at, Box::new(act)));

        let _ = world.set_member(store).set(&name("ben"), &groups(&["auditor"]), member()).await;

        let members = list_members(&*world.memory, None).await.unwrap().items;
        assert!(members.iter().any(|member| member.groups.contains("owner")), "before call {at}");
    }
}

#[tokio::test]
async fn an_unknown_member_and_a_wrong_group_are_refused() {
    let world = World::new();
    world.with_member("ana", &["auditor"], 1).await;
    let change = world.set_member(world.memory.clone());

    let unknown = change.set(&name("eve"), &groups(&["owner"]), member()).await.unwrap_err();
    let wrong = change.set(&name("ana"), &groups(&["on call"]), member()).await.unwrap_err();

    assert_eq!((unknown.kind, wrong.kind), (Kind::NotFound, Kind::Invalid));
}
