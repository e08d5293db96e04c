//! Removing members.

use std::sync::Arc;

use freehold_app::Kind;
use freehold_app::access::remove_member::RemoveMember;
use freehold_app::access::{About, ParsedPolicies, list_members};
use futures_util::future::BoxFuture;

use crate::support::access::{OWNERS, name, policies};
use crate::support::interleaving::Interleaved;
use crate::support::{World, member};

#[tokio::test]
async fn the_next_request_of_a_removed_member_is_refused() {
    let world = World::new();
    let ana = world.with_member("ana", &["owner"], 1).await;
    assert!(world.ask(&ana, "show_tenant", &About::Tenant).await.is_ok());

    let removed = world.remove_member(world.memory.clone()).remove(&name("ana"), member()).await.unwrap();

    assert_eq!(removed.member, name("ana"));
    let error = world.ask(&ana, "show_tenant", &About::Tenant).await.map(|_| ()).unwrap_err();
    assert_eq!(error.kind, Kind::Forbidden);
    assert!(error.message.contains("you are not a member of tenant `acme`"), "{error}");
    let again = world.remove_member(world.memory.clone()).remove(&name("ana"), member()).await.unwrap_err();
    assert_eq!(again.kind, Kind::NotFound);
}

#[tokio::test]
async fn the_last_owner_is_not_removed_while_nobody_else_may_change_the_policies() {
    let world = World::new();
    world.with_member("ana", &["owner"], 1).await;
    world.set_policies(world.memory.clone()).set(&policies(OWNERS), member()).await.unwrap();

    let error = world.remove_member(world.memory.clone()).remove(&name("ana"), member()).await.unwrap_err();

    assert_eq!(error.kind, Kind::Conflict);
    assert!(error.message.contains("nobody could change the policies"), "{error}");
}

#[tokio::test]
async fn of_two_owners_who_remove_each_other_at_once_one_stays() {
    for at in 0..8 {
        let world = World::new();
        world.with_member("ana", &["owner"], 1).await;
        world.with_member("ben", &["owner"], 2).await;
        world.set_policies(world.memory.clone()).set(&policies(OWNERS), member()).await.unwrap();
        let memory = world.memory.clone();
        let act = move || -> BoxFuture<'static, ()> {
            let (store, clock) = (memory.clone(), memory.clone());
            Box::pin(async move {
                let other = RemoveMember { store, clock, policies: ParsedPolicies::default() };
                let _ = other.remove(&name("ana"), member()).await;
            })
        };
        let store = Arc::new(Interleaved::new(world.memory.clone(), at, Box::new(act)));

        let _ = world.remove_member(store).remove(&name("ben"), member()).await;

        let members = list_members(&*world.memory, None).await.unwrap().items;
        assert_eq!(members.len(), 1, "before call {at}");
    }
}
