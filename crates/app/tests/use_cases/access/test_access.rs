//! Testing what the policies decide.

use freehold_app::Kind;
use freehold_protocol::api::TestAccessRequest;

use crate::support::access::{name, policies};
use crate::support::{World, member};

fn request(action: &str) -> TestAccessRequest {
    TestAccessRequest {
        who: None,
        member: Some(name("ana")),
        action: action.to_owned(),
        app: None,
        install: None,
        run_action: None,
    }
}

#[tokio::test]
async fn the_decision_about_a_member_and_about_its_principal_is_the_same() {
    let world = World::new();
    world.with_member("ana", &["operator"], 1).await;
    let by_who = TestAccessRequest { who: Some("person:ana".to_owned()), member: None, ..request("set_policies") };

    let denied = world.test_access().test(&request("set_policies")).await.unwrap();
    let permitted = world.test_access().test(&request("list_members")).await.unwrap();

    assert_eq!(world.test_access().test(&by_who).await.unwrap(), denied);
    assert_eq!((denied.is_allowed, denied.policies, denied.groups), (false, Vec::new(), vec!["owner".to_owned()]));
    assert!(permitted.is_allowed && !permitted.policies.is_empty(), "{permitted:?}");
}

#[tokio::test]
async fn the_environment_of_the_install_and_the_name_of_what_runs_count() {
    let world = World::with_install().await;
    world.with_member("ana", &["data_scientist"], 1).await;
    let run = |action: &str| TestAccessRequest {
        install: Some(crate::support::globex()),
        run_action: Some(action.parse().unwrap()),
        ..request("run_action")
    };

    let report = world.test_access().test(&run("report-usage")).await.unwrap();
    let other = world.test_access().test(&run("check")).await.unwrap();

    assert_eq!([report.is_allowed, other.is_allowed], [true, false]);
}

#[tokio::test]
async fn a_person_who_is_not_a_member_is_refused_also_by_policies_about_all_people() {
    let world = World::new();
    let text = "@id(\"all\") permit (principal, action, resource);";
    world.set_policies(world.memory.clone()).set(&policies(text), member()).await.unwrap();
    let of = |who: &str| TestAccessRequest { who: Some(who.to_owned()), member: None, ..request("show_tenant") };

    let stranger = world.test_access().test(&of("person:eve")).await.unwrap();
    let pipeline = world.test_access().test(&of("pipeline:repo:acme/shop")).await.unwrap();

    assert_eq!((stranger.is_allowed, stranger.policies), (false, Vec::new()));
    assert!(pipeline.is_allowed);
}

#[tokio::test]
async fn a_request_that_names_no_principal_no_action_or_no_install_is_refused() {
    let world = World::new();
    world.with_member("ana", &["operator"], 1).await;
    let both = TestAccessRequest { who: Some("person:ana".to_owned()), ..request("show_tenant") };
    let neither = TestAccessRequest { member: None, ..request("show_tenant") };
    let unknown = TestAccessRequest { install: Some("initech".parse().unwrap()), ..request("show_install") };
    let stranger = TestAccessRequest { member: Some(name("eve")), ..request("show_tenant") };

    for (wrong, kind) in [
        (both, Kind::Invalid),
        (neither, Kind::Invalid),
        (request("fly"), Kind::Invalid),
        (request("deploy_components"), Kind::Invalid),
        (unknown, Kind::NotFound),
        (stranger, Kind::NotFound),
    ] {
        assert_eq!(world.test_access().test(&wrong).await.unwrap_err().kind, kind, "{wrong:?}");
    }
}
