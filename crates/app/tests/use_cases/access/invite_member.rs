//! Inviting members.

use freehold_app::Kind;
use freehold_app::access::invite_member::INVITATION_SECS;
use freehold_app::access::list_members;
use freehold_protocol::api::InviteMemberRequest;

use crate::support::access::{code, invitation, person};
use crate::support::{World, member};

const ROLE: &str = "arn:aws:iam::111111111111:role/ci";

fn iam(groups: &[&str]) -> InviteMemberRequest {
    InviteMemberRequest { iam: Some(ROLE.to_owned()), ..invitation("ci", groups) }
}

#[tokio::test]
async fn somebody_is_invited_by_a_code_that_the_table_does_not_have() {
    let world = World::new();

    let invited = world.invite("ana@example.com", &["developer"], 7).await;

    assert_eq!(invited.code, Some(code(7)));
    let view = &invited.member;
    assert_eq!((view.who.as_ref(), view.accepted_at, &view.invited_by), (None, None, member()));
    assert_eq!(view.expires_at, Some(view.invited_at.plus_secs(INVITATION_SECS)));
    assert_eq!(list_members(&*world.memory, None).await.unwrap().items, [invited.member]);
    assert!(world.memory.rows().iter().all(|row| !format!("{row:?}").contains(&code(7))));
}

#[tokio::test]
async fn a_name_that_differs_from_another_by_case_alone_is_refused() {
    let world = World::new();
    world.invite("ana@example.com", &["developer"], 1).await;

    let request = invitation("Ana@Example.com", &["owner"]);
    let error = world.invite_member().invite(&request, code(2), member()).await.unwrap_err();

    assert_eq!(error.kind, Kind::Conflict);
    assert!(error.message.contains("differs from the member `ana@example.com` by the case"), "{error}");
}

#[tokio::test]
async fn another_invitation_replaces_the_code_of_the_first_one() {
    let world = World::new();
    world.invite("ana", &["developer"], 1).await;

    world.invite("ana", &["operator"], 2).await;

    assert_eq!(world.accept(1, &person("ana")).await.unwrap_err().kind, Kind::NotFound);
    assert_eq!(world.accept(2, &person("ana")).await.unwrap().groups, ["operator"]);
}

#[tokio::test]
async fn an_iam_principal_is_a_member_at_once_and_the_same_request_changes_nothing() {
    let world = World::new();

    let first = world.invite_member().invite(&iam(&["operator"]), code(1), member()).await.unwrap();
    let rows = world.memory.rows();
    let again = world.invite_member().invite(&iam(&["operator"]), code(2), member()).await.unwrap();

    assert_eq!((first.code.as_ref(), first.member.who.as_deref()), (None, Some(format!("iam:{ROLE}").as_str())));
    assert_eq!((&again, world.memory.rows()), (&first, rows));
}

#[tokio::test]
async fn a_member_is_not_invited_again_and_a_principal_is_one_member() {
    let world = World::new();
    world.with_member("ana", &["developer"], 1).await;
    world.invite_member().invite(&iam(&["operator"]), code(2), member()).await.unwrap();
    let twice = InviteMemberRequest { member: "other".parse().unwrap(), ..iam(&["operator"]) };

    for (request, text) in [
        (invitation("ana", &["owner"]), "`ana` is a member already"),
        (iam(&["owner"]), "`ci` is a member already"),
        (twice, "is the member `ci` already"),
    ] {
        let error = world.invite_member().invite(&request, code(3), member()).await.unwrap_err();

        assert_eq!(error.kind, Kind::Conflict);
        assert!(error.message.contains(text), "{error}");
    }
}

#[tokio::test]
async fn what_is_neither_a_group_nor_a_principal_is_refused() {
    let world = World::new();
    let arn = |arn: &str| InviteMemberRequest { iam: Some(arn.to_owned()), ..invitation("ana", &[]) };

    for request in [invitation("ana", &["on call"]), arn("ana"), arn("arn:aws:s3:::bucket")] {
        let error = world.invite_member().invite(&request, code(1), member()).await.unwrap_err();

        assert_eq!(error.kind, Kind::Invalid, "{error}");
    }
    assert!(world.memory.rows().is_empty());
}
