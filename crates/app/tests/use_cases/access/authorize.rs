//! The decision about requests: the caller, the resource, and what a denial says.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use freehold_app::Kind;
use freehold_app::access::{About, Act, Permits, Who, actions, show_caller};
use freehold_app::ports::{Expect, Key, Store as _, Write};
use freehold_app::read;
use freehold_protocol::WorkflowId;
use freehold_protocol::api::{InviteMemberRequest, SetLabelsRequest, TestAccessRequest};

use crate::support::access::{OWNERS, code, invitation, person, policies, role};
use crate::support::{World, globex, member, with_input};

fn install(id: &str) -> About {
    About::Install(id.parse().unwrap())
}

async fn refusal(world: &World, who: &Who, action: &str, about: &About) -> (Kind, String) {
    let error = world.ask(who, action, about).await.map(|_| ()).unwrap_err();
    (error.kind, error.message)
}

/// Gives `globex` the environment `staging`.
async fn stage(world: &World) {
    let labels = SetLabelsRequest { labels: [("environment".to_owned(), Some("staging".to_owned()))].into() };
    world.set_labels().set(&globex(), &labels, member()).await.unwrap();
}

#[tokio::test]
async fn an_iam_principal_may_do_everything_by_two_reads_until_somebody_changes_the_policies() {
    let world = World::with_install().await;
    let reads = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&reads);
    world.memory.faults.set(move |what| {
        counted.fetch_add(usize::from(what == "get" || what == "query"), Ordering::Relaxed);
        None
    });

    world.ask(&role("deployer"), "forget_install", &install("globex")).await.unwrap();
    let count = reads.load(Ordering::Relaxed);

    assert_eq!(count, 2, "the policies and the caller");
    world.with_member("ana", &["owner"], 1).await;
    world.set_policies(world.memory.clone()).set(&policies(OWNERS), member()).await.unwrap();
    let (kind, _) = refusal(&world, &role("deployer"), "forget_install", &About::Tenant).await;
    assert_eq!(kind, Kind::Forbidden);
}

#[tokio::test]
async fn the_ready_made_policies_permit_an_iam_principal_everything_as_it_is_assumed() {
    let world = World::with_install().await;
    for action in actions() {
        let about = action.about.as_str();
        let request = TestAccessRequest {
            who: Some(role("deployer").to_string()),
            member: None,
            action: action.name.to_owned(),
            app: (about == "app").then(|| "demo".parse().unwrap()),
            install: (about == "install").then(globex),
            run_action: None,
        };

        let decided = world.test_access().test(&request).await.unwrap();

        assert_eq!((decided.is_allowed, decided.policies), (true, vec!["iam-principals-of-the-account".to_owned()]));
    }
}

#[tokio::test]
async fn an_iam_principal_that_is_a_limited_member_is_limited() {
    let world = World::with_install().await;
    let installs = ["initech".parse().unwrap()].into();
    let arn = "arn:aws:iam::111111111111:role/ci".to_owned();
    let request = InviteMemberRequest { installs, iam: Some(arn), ..invitation("ci", &["operator"]) };
    world.invite_member().invite(&request, code(1), member()).await.unwrap();

    let (kind, _) = refusal(&world, &role("ci"), "deploy_components", &install("globex")).await;

    assert_eq!(kind, Kind::NotFound);
    assert!(world.ask(&role("deployer"), "deploy_components", &install("globex")).await.is_ok());
}

#[tokio::test]
async fn a_denial_names_the_permission_the_groups_and_who_can_give_it() {
    let world = World::with_install().await;
    let ana = world.with_member("ana@example.com", &["developer"], 1).await;
    world.with_member("ben@example.com", &["owner"], 2).await;

    let (kind, message) = refusal(&world, &ana, "deploy_components", &install("globex")).await;

    assert_eq!(kind, Kind::Forbidden);
    assert_eq!(
        message,
        "`ana@example.com` may not deploy components of install `globex` (environment `production`): this needs the \
         permission `deploy_components`, which the groups `operator` and `owner` have; ask somebody who may change \
         members: ben@example.com"
    );
    stage(&world).await;
    assert!(world.ask(&ana, "deploy_components", &install("globex")).await.is_ok());
}

#[tokio::test]
async fn a_denial_names_members_only_to_somebody_who_may_list_them() {
    let world = World::with_install().await;
    world.with_member("ben@example.com", &["owner"], 1).await;
    let eve = world.with_member("eve", &["data_scientist"], 2).await;

    let (kind, message) = refusal(&world, &eve, "deploy_components", &install("globex")).await;

    assert_eq!(kind, Kind::Forbidden);
    assert!(message.ends_with("ask somebody who may change members: an owner of the tenant"), "{message}");
}

#[tokio::test]
async fn without_an_owner_a_denial_names_the_account() {
    let world = World::new();
    let ana = world.with_member("ana", &["auditor"], 1).await;

    let (_, message) = refusal(&world, &ana, "set_policies", &About::Tenant).await;

    assert!(message.starts_with("`ana` may not set policies of tenant `acme`"), "{message}");
    assert!(message.ends_with("ask somebody who may change members: an IAM principal of the tenant's account"));
}

#[tokio::test]
async fn somebody_who_is_not_a_member_learns_nothing_and_may_see_who_they_are() {
    let world = World::with_install().await;
    let eve = person("eve");
    for (action, about) in
        [("show_tenant", About::Tenant), ("show_install", install("globex")), ("show_install", install("initech"))]
    {
        let (kind, message) = refusal(&world, &eve, action, &about).await;

        assert_eq!(kind, Kind::Forbidden);
        assert!(message.contains("`freehold member accept CODE`"), "{message}");
    }
    let people = format!("{OWNERS}@id(\"people\")\npermit (principal is Freehold::Person, action, resource);\n");
    world.with_member("ana", &["owner"], 1).await;
    world.set_policies(world.memory.clone()).set(&policies(&people), member()).await.unwrap();
    let act = Act { action: "show_caller", run: "", permits: Permits::Everybody };
    let access = world.authorize().authorize(eve, &act, &About::Tenant).await.unwrap();
    let view = show_caller(&access).await;
    assert_eq!((view.who.as_str(), view.is_member, view.permissions), ("person:eve", false, Vec::new()));
}

#[tokio::test]
async fn what_a_customer_may_not_see_is_answered_as_what_does_not_exist() {
    let mut world = World::with_install().await;
    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.settle().await;
    let view = read::show_workflow(&*world.memory, &workflow, world.now()).await.unwrap();
    let job = view.nodes.iter().find_map(|node| node.job.clone()).unwrap();
    let installs = ["initech".parse().unwrap()].into();
    let request = InviteMemberRequest { installs, ..invitation("eve", &["customer"]) };
    world.invite_member().invite(&request, code(1), member()).await.unwrap();
    world.accept(1, &person("eve")).await.unwrap();
    let (missing, no_job) = (WorkflowId::derive("globex", "no"), "job_00000000000000000000".parse().unwrap());

    for (action, unseen, absent, names) in [
        ("show_install", install("globex"), install("nobody"), ("globex".to_owned(), "nobody".to_owned())),
        (
            "show_workflow",
            About::Workflow(workflow.clone()),
            About::Workflow(missing.clone()),
            (workflow.to_string(), missing.to_string()),
        ),
        (
            "show_job",
            About::Job(job.clone()),
            About::Job(no_job),
            (job.to_string(), "job_00000000000000000000".to_owned()),
        ),
        (
            "show_app",
            About::App("demo".parse().unwrap()),
            About::App("none".parse().unwrap()),
            ("demo".to_owned(), "none".to_owned()),
        ),
    ] {
        let (kind, hidden) = refusal(&world, &person("eve"), action, &unseen).await;
        let (absent_kind, absent) = refusal(&world, &person("eve"), action, &absent).await;

        assert_eq!((kind, absent_kind), (Kind::NotFound, Kind::NotFound), "{action}");
        assert_eq!(hidden.replace(&names.0, "X"), absent.replace(&names.1, "X"), "{action}");
    }
}

#[tokio::test]
async fn policies_that_cannot_be_read_permit_nothing_but_their_repair() {
    let world = World::new();
    let ana = world.with_member("ana", &["owner"], 1).await;
    let key = Key { pk: "access".to_owned(), sk: "policies".to_owned() };
    let body = serde_json::json!({
        "policies": "@id(\"a\") permit (principal, action == Freehold::Action::\"gone\", resource);", "number": 1,
        "changed_at": 1, "changed_by": { "by": "sweep" },
    });
    let write = Write::Put { key, body: body.to_string(), expect: Expect::Any, expires: None };
    let _ = world.memory.commit(vec![write]).await.unwrap();

    for (who, action) in [(&ana, "show_policies"), (&role("deployer"), "show_tenant")] {
        let (kind, message) = refusal(&world, who, action, &About::Tenant).await;

        assert_eq!(kind, Kind::Internal);
        assert!(message.contains("the policies of the tenant cannot be read"), "{message}");
    }
    for action in ["show_policies", "set_policies"] {
        assert!(world.ask(&role("deployer"), action, &About::Tenant).await.is_ok(), "{action}");
    }
}
