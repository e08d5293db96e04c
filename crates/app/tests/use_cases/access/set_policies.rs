//! Changing the policies.

use std::sync::Arc;

use freehold_app::Kind;
use freehold_app::access::set_policies::SetPolicies;
use freehold_app::access::{About, show_policies};
use freehold_protocol::Digest;
use freehold_protocol::api::SetPoliciesRequest;
use futures_util::future::BoxFuture;

use crate::support::access::{OWNERS, policies, role};
use crate::support::interleaving::Interleaved;
use crate::support::{World, member};

/// Policies by which the IAM principals of the account may do everything.
const IAM: &str = "@id(\"iam\")\npermit (principal is Freehold::Iam, action, resource);\n";

#[tokio::test]
async fn a_new_tenant_has_the_ready_made_policies_and_a_change_counts_at_once() {
    let world = World::new();
    world.with_member("ana", &["owner"], 1).await;
    let first = show_policies(&*world.memory).await.unwrap();
    let change = world.set_policies(world.memory.clone());

    let view = change.set(&policies(OWNERS), member()).await.unwrap();
    let rows = world.memory.rows();
    let again = change.set(&policies(OWNERS), member()).await.unwrap();

    assert_eq!((first.number, first.changed_at, first.digest), (0, None, Digest::of(first.policies.as_bytes())));
    assert_eq!((view.number, view.changed_by.as_ref(), view.policies.as_str()), (1, Some(member()), OWNERS));
    assert_eq!((&again, &show_policies(&*world.memory).await.unwrap(), world.memory.rows()), (&view, &view, rows));
    let error = world.ask(&role("deployer"), "show_tenant", &About::Tenant).await.map(|_| ()).unwrap_err();
    assert_eq!(error.kind, Kind::Forbidden);
}

#[tokio::test]
async fn policies_that_somebody_has_changed_meanwhile_are_not_replaced() {
    let world = World::new();
    world.with_member("ana", &["owner"], 1).await;
    let change = world.set_policies(world.memory.clone());
    let read = show_policies(&*world.memory).await.unwrap();
    change.set(&policies(OWNERS), member()).await.unwrap();

    let late = SetPoliciesRequest { expected: Some(read.digest.clone()), ..policies(IAM) };
    let repeated = SetPoliciesRequest { expected: Some(read.digest), ..policies(OWNERS) };

    assert_eq!(change.set(&late, member()).await.unwrap_err().kind, Kind::Conflict);
    assert!(change.set(&repeated, member()).await.is_ok(), "the same request was performed before");
}

#[tokio::test]
async fn policies_with_a_mistake_and_those_that_lock_everybody_out_are_refused() {
    let world = World::new();
    let change = world.set_policies(world.memory.clone());

    let wrong = change.set(&policies("permit (principal, action, resource"), member()).await.unwrap_err();
    let unknown = change.set(&policies(&IAM.replace("Iam", "Robot")), member()).await.unwrap_err();
    let locked = change.set(&policies(OWNERS), member()).await.unwrap_err();

    assert_eq!([wrong.kind, unknown.kind, locked.kind], [Kind::Invalid, Kind::Invalid, Kind::Conflict]);
    assert!(locked.message.contains("nobody could change the policies"), "{locked}");
    assert_eq!(show_policies(&*world.memory).await.unwrap().number, 0);
}

#[tokio::test]
async fn of_two_changes_at_once_with_the_same_digest_one_is_made() {
    for at in 0..4 {
        let world = World::new();
        world.with_member("ana", &["owner"], 1).await;
        let digest = show_policies(&*world.memory).await.unwrap().digest;
        let request = |text: &str| SetPoliciesRequest { expected: Some(digest.clone()), ..policies(text) };
        let (memory, other) = (world.memory.clone(), request(IAM));
        let act = move || -> BoxFuture<'static, ()> {
            let (change, other) = (SetPolicies { store: memory.clone(), clock: memory.clone() }, other.clone());
            Box::pin(async move { drop(change.set(&other, member()).await.unwrap()) })
        };
        let store = Arc::new(Interleaved::new(world.memory.clone(), at, Box::new(act)));

        let refused = world.set_policies(store).set(&request(OWNERS), member()).await.unwrap_err();

        assert_eq!(refused.kind, Kind::Conflict, "before call {at}");
        let kept = show_policies(&*world.memory).await.unwrap();
        assert_eq!((kept.number, kept.policies.as_str()), (1, IAM), "before call {at}");
    }
}
