//! Accepting invitations.

use std::sync::Arc;

use freehold_app::Kind;
use freehold_app::access::accept_invitation::AcceptInvitation;
use freehold_app::access::invite_member::INVITATION_SECS;
use freehold_app::access::{ParsedPolicies, Who, list_members};
use freehold_app::testing::Fault;
use freehold_protocol::api::AcceptInvitationRequest;
use freehold_protocol::order::AskedBy;

use crate::support::World;
use crate::support::access::{code, groups, invitation, name, person, role};
use crate::support::interleaving::Interleaved;
use crate::support::member;

#[tokio::test]
async fn who_accepts_is_the_member_and_the_same_person_gets_the_same_answer_again() {
    let world = World::new();
    world.invite("ana@example.com", &["developer"], 1).await;

    let first = world.accept(1, &person("7f3c")).await.unwrap();
    let rows = world.memory.rows();
    let again = world.accept(1, &person("7f3c")).await.unwrap();

    assert_eq!((first.who.as_str(), first.name.as_str(), first.is_member), ("person:7f3c", "ana@example.com", true));
    assert_eq!((&again, world.memory.rows()), (&first, rows));
    let listed = list_members(&*world.memory, None).await.unwrap().items.remove(0);
    assert_eq!((listed.who.as_deref(), listed.expires_at), (Some("person:7f3c"), None));
}

#[tokio::test]
async fn an_unknown_a_used_an_expired_and_a_removed_code_are_refused_alike() {
    let world = World::new();
    world.with_member("ana", &["developer"], 1).await;
    world.invite("ben", &["developer"], 2).await;
    world.invite("cleo", &["developer"], 3).await;
    world.remove_member(world.memory.clone()).remove(&name("cleo"), member()).await.unwrap();
    let (used, removed) = (world.accept(1, &person("eve")).await, world.accept(3, &person("eve")).await);
    let unknown = world.accept(9, &person("eve")).await;
    world.memory.advance_secs(INVITATION_SECS);
    let expired = world.accept(2, &person("eve")).await;
    let request = AcceptInvitationRequest { code: "x\n".to_owned() };
    let malformed = world.accept_invitation(world.memory.clone()).accept(&request, &person("eve")).await;

    let texts = [used, removed, unknown, expired, malformed].map(|refused| {
        let error = refused.unwrap_err();
        assert_eq!(error.kind, Kind::NotFound);
        error.message
    });

    assert!(texts.iter().all(|text| *text == texts[0]), "{texts:?}");
}

#[tokio::test]
async fn an_invitation_ends_with_the_permission_of_the_member_who_made_it() {
    let world = World::new();
    world.with_member("ana", &["owner"], 1).await;
    let by = AskedBy::Member { member: name("ana"), subject: "ana".parse().unwrap() };
    for (invited, number) in [("ben", 2), ("eve", 3), ("dan", 4)] {
        world.invite_member().invite(&invitation(invited, &["owner"]), code(number), &by).await.unwrap();
    }

    let while_owner = world.accept(2, &person("ben")).await;
    world.set_member(world.memory.clone()).set(&name("ana"), &groups(&["auditor"]), member()).await.unwrap();
    let after_demotion = world.accept(3, &person("eve")).await;
    world.remove_member(world.memory.clone()).remove(&name("ana"), member()).await.unwrap();
    let after_removal = world.accept(4, &person("ana")).await;

    assert_eq!(while_owner.unwrap().name, "ben");
    for refused in [after_demotion, after_removal] {
        assert_eq!(refused.unwrap_err().kind, Kind::NotFound);
    }
}

#[tokio::test]
async fn of_two_who_accept_at_once_one_is_the_member() {
    for at in 0..6 {
        let world = World::new();
        world.invite("ana", &["owner"], 1).await;
        let memory = world.memory.clone();
        let act = move || -> futures_util::future::BoxFuture<'static, ()> {
            let (store, clock) = (memory.clone(), memory.clone());
            Box::pin(async move {
                let eve = AcceptInvitation { store, clock, policies: ParsedPolicies::default() };
                let _ = eve.accept(&AcceptInvitationRequest { code: code(1) }, &person("eve")).await;
            })
        };
        let store = Arc::new(Interleaved::new(world.memory.clone(), at, Box::new(act)));

        let request = AcceptInvitationRequest { code: code(1) };
        let ana = world.accept_invitation(store).accept(&request, &person("ana")).await;

        let listed = list_members(&*world.memory, None).await.unwrap().items.remove(0);
        let expected = if ana.is_ok() { "person:ana" } else { "person:eve" };
        assert_eq!(listed.who.as_deref(), Some(expected), "before call {at}");
        let is_known = |who: &str| world.memory.rows().iter().any(|row| row.key.pk == format!("principal#{who}"));
        assert!(is_known("person:ana") != is_known("person:eve"), "before call {at}");
    }
}

#[tokio::test]
async fn a_lost_answer_is_repeated() {
    let world = World::new();
    world.invite("ana", &["owner"], 1).await;
    let mut lost = false;
    world
        .memory
        .faults
        .set(move |what| (what == "commit" && !std::mem::replace(&mut lost, true)).then_some(Fault::AnswerLost));

    let first = world.accept(1, &person("ana")).await;
    let again = world.accept(1, &person("ana")).await.unwrap();

    assert!(first.unwrap_err().is_transient());
    assert_eq!(again.groups, ["owner"]);
}

#[tokio::test]
async fn only_a_person_who_is_not_a_member_accepts() {
    let world = World::new();
    let ana = world.with_member("ana", &["developer"], 1).await;
    world.invite("ben", &["owner"], 2).await;

    let pipeline = Who::Pipeline { subject: "repo:acme/shop".to_owned() };
    for (who, kind) in [(role("ci"), Kind::Forbidden), (pipeline, Kind::Forbidden), (ana, Kind::Conflict)] {
        assert_eq!(world.accept(2, &who).await.unwrap_err().kind, kind, "{who}");
    }
    assert_eq!(world.accept(2, &person("ben")).await.unwrap().name, "ben");
}
