//! Policies of an app: each order carries those that guard its work, and what they said is part of the job.

use std::collections::BTreeSet;

use freehold_domain::job::JobState;
use freehold_protocol::api::{DeployComponentsRequest, TeardownInstallRequest};
use freehold_protocol::app_version::{AppVersion, Policy, PolicyEngine};
use freehold_protocol::order::{Order, Work};
use freehold_protocol::policy::{PolicyOrigin, PolicyResult};
use freehold_protocol::report::{AttemptEvent, Block, Outcome};
use freehold_protocol::{Digest, Envelope};
use serde_json::json;

use super::{FIRST, accept, deploying};
use crate::support::runner::Behaviour;
use crate::support::{World, app, with_input};

fn policy(kind: &str, engine: PolicyEngine, components: &[&str]) -> Policy {
    Policy {
        name: format!("{kind}{}", components.join("-")),
        kind: kind.into(),
        engine,
        components: components.iter().map(|name| name.parse().unwrap()).collect(),
        contents: format!("package nuon\n# {kind}"),
    }
}

fn document() -> AppVersion {
    let mut document = app::document();
    document.policies = vec![
        policy("container_image", PolicyEngine::Opa, &[]),
        policy("kubernetes_cluster", PolicyEngine::Kyverno, &[]),
        policy("terraform_module", PolicyEngine::Opa, &[]),
        policy("terraform_module", PolicyEngine::Opa, &["settings"]),
    ];
    document
}

/// Returns the kinds of work that were ordered, each with the names of its policies.
fn ordered(world: &World) -> BTreeSet<(&'static str, Vec<String>)> {
    let orders = world.memory.orders.lock().unwrap();
    let order = |body: &str| Envelope::parse(body.as_bytes()).ok()?.peek::<Order>().ok();
    let found = orders.iter().filter_map(|(.., body)| order(body));
    let names = |order: &Order| {
        order.policies.iter().for_each(|policy| assert!(policy.text().unwrap().starts_with("package nuon")));
        order.policies.iter().map(|policy| policy.name.clone()).collect()
    };
    found.map(|order| (order.work.kind(), names(&order))).collect()
}

#[tokio::test]
async fn each_order_carries_the_policies_in_rego_that_guard_its_work() {
    let mut world = World::with_install().await;
    world.sync(&document()).await;
    world.build("build-policies").await;
    world.settle().await;
    world.forget_orders();

    world.deploy(&DeployComponentsRequest { all: true, ..with_input("days", 8) }, "deploy-1").await.unwrap();
    world.settle().await;

    let found = ordered(&world);
    let of = |kind: &str| -> Vec<Vec<String>> {
        found.iter().filter(|(found, _)| *found == kind).map(|(_, names)| names.clone()).collect()
    };
    assert_eq!(of("container_image"), [["container_image"]]);
    assert_eq!(of("terraform_module"), [["terraform_module"]]);
    assert_eq!(of("cloudformation_stack"), [Vec::<String>::new()]);
}

/// Returns the app with a component of each of these kinds, and a Kyverno policy with this text.
fn in_clusters(text: &str) -> AppVersion {
    let mut document = app::document();
    document.actions.clear();
    let specs = [
        ("chart", json!({ "kind": "helm_chart", "chart_name": "chart", "namespace": "n" })),
        ("manifest", json!({ "kind": "kubernetes_manifest", "namespace": "n", "manifest": "kind: A" })),
        ("migrate", json!({ "kind": "job", "image_url": "example/migrate", "tag": "1" })),
        ("module", json!({ "kind": "terraform_module", "terraform_version": "1.9.0" })),
    ];
    let component = |(name, spec)| {
        let source = json!({ "from": "image", "reference": format!("example/{name}:1") });
        serde_json::from_value(json!({ "name": name, "deploy_timeout_secs": 600, "spec": spec, "source": source }))
            .unwrap()
    };
    document.components = specs.into_iter().map(component).collect();
    let contents = format!("package nuon\n# {text}");
    document.policies = vec![Policy { contents, ..policy("kubernetes_cluster", PolicyEngine::Kyverno, &["chart"]) }];
    document
}

async fn next_version(world: &mut World, document: &AppVersion, cause: &str) {
    world.sync(document).await;
    world.settle().await;
    world.build(cause).await;
    world.settle().await;
    world.forget_orders();
}

/// Returns, for each removal that was ordered, whether it removes the policies of the cluster too.
fn removals(world: &World) -> Vec<bool> {
    let orders = world.memory.orders.lock().unwrap();
    let order = |body: &str| Envelope::parse(body.as_bytes()).ok()?.peek::<Order>().ok();
    let of_removal = |order: Order| {
        assert!(order.policies.is_empty(), "{:?}", order.policies);
        if let Work::Remove(work) = order.work { Some(work.removes_policies) } else { None }
    };
    orders
        .iter()
        .filter_map(|(.., body)| order(body))
        .filter(|order| matches!(order.work, Work::Remove(_)))
        .filter_map(of_removal)
        .collect()
}

#[tokio::test]
async fn kyverno_policies_go_where_something_is_deployed_into_a_cluster_and_leave_with_the_app() {
    let mut world = World::with_install().await;
    next_version(&mut world, &in_clusters("1"), "build-first").await;
    world.deploy(&DeployComponentsRequest::default(), "deploy-1").await.unwrap();
    world.settle().await;
    let first = ordered(&world);
    next_version(&mut world, &in_clusters("2"), "build-second").await;
    world.deploy(&DeployComponentsRequest::default(), "deploy-2").await.unwrap();
    world.settle().await;
    let changed = ordered(&world);
    world.forget_orders();

    let one = TeardownInstallRequest { component: Some("chart".parse().unwrap()), ..Default::default() };
    world.teardown(&one, "gone-1").await.unwrap();
    world.settle().await;
    let of_one = removals(&world);
    world.forget_orders();
    world.teardown(&TeardownInstallRequest::default(), "gone-2").await.unwrap();
    world.settle().await;
    let of_all = removals(&world);

    let policy = || vec!["kubernetes_clusterchart".to_owned()];
    let in_cluster = |kind: &'static str| (kind, policy());
    let of_first = ["helm_chart", "job", "kubernetes_manifest"].map(in_cluster);
    assert_eq!(first, of_first.into_iter().chain([("terraform_module", vec![])]).collect());
    assert_eq!(changed, ["helm_chart", "kubernetes_manifest"].map(in_cluster).into(), "a program does not run again");
    assert_eq!(of_one, [false]);
    assert!(of_all.len() >= 3 && of_all.iter().all(|removes| *removes), "{of_all:?}");
}

fn result_with(deny: Vec<String>) -> PolicyResult {
    let contents = Digest::of(b"text");
    PolicyResult {
        name: "no-eip".into(),
        origin: PolicyOrigin::Customer,
        contents,
        deny,
        warn: vec!["w".into()],
        failed: None,
    }
}

async fn ended(policies: Vec<PolicyResult>) -> freehold_domain::job::Job {
    let (world, _, job) = deploying(Behaviour::Hangs).await;
    let outcome = Outcome::Blocked { block: Block::Policy, reason: "policy `no-eip` denies this".into() };
    let end = AttemptEvent::Finished { outcome, log: String::new(), policies, roles_trusting_strangers: None };

    accept(&world, &world.runners["globex"].says(&job, FIRST, 2, end, world.now())).await.unwrap();

    world.job(&job).await
}

#[tokio::test]
async fn what_policies_said_is_part_of_the_job() {
    let job = ended(vec![result_with(vec!["it stays".into()])]).await;

    assert!(matches!(job.state, JobState::Blocked { block: Block::Policy, .. }), "{:?}", job.state);
    let now = job.created_at;
    assert_eq!(freehold_app::read::job_view(job, now).policies, [result_with(vec!["it stays".into()])]);
}

#[tokio::test]
async fn what_policies_said_is_bounded_and_each_keeps_a_message() {
    let long = result_with(vec!["x".repeat(1_500); 3]);

    let job = ended(vec![long; 150]).await;

    assert_eq!(job.policies.len(), 100);
    assert!(job.policies.iter().all(|one| one.stops() && one.deny[0].len() <= 1024));
    let bytes = serde_json::to_vec(&job.policies).unwrap().len();
    assert!(bytes < 200_000, "{bytes}");
}
