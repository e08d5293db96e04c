//! Approving a plan: a job waits for exactly the plan that it names, without an order or a look, and is ordered once.

use freehold_app::{Kind, read};
use freehold_protocol::api::{ApprovalOption, ApproveJobRequest, SetApprovalsRequest};
use freehold_protocol::approval::{ApprovalRule, CustomerDecision, PlanSummary, ProposedPlan, Side};
use freehold_protocol::limits::APPROVAL_SECS;
use freehold_protocol::order::Order;
use freehold_protocol::{Digest, Envelope, JobId, Payload as _, WorkflowId};

use crate::support::runner::Behaviour;
use crate::support::walk::At;
use crate::support::{World, globex, member, with_input};

/// Returns a plan that these sides have to approve.
pub(super) fn plan(world: &World, asks: &[Side]) -> ProposedPlan {
    ProposedPlan {
        plan: Digest::of(b"plan"),
        until: world.now().plus_secs(APPROVAL_SECS),
        asks: asks.iter().copied().collect(),
        summary: PlanSummary { create: 2, delete: 1, ..PlanSummary::default() },
        policies: Digest::of(b"policies"),
        instead: None,
    }
}

/// A world in which the plan of component `storage` waits for these sides.
pub(crate) async fn waiting(asks: &[Side]) -> (World, WorkflowId, JobId) {
    let mut world = World::with_install().await;
    let prompt = SetApprovalsRequest { approval_option: ApprovalOption::Prompt };
    world.set_approvals().set(&globex(), &prompt).await.unwrap();
    let plan = plan(&world, asks);
    world.runner("globex").behaviours.insert("storage".into(), Behaviour::Proposes(Box::new(plan)));
    let workflow = world.deploy(&with_input("days", 8), "deploy-1").await.unwrap();
    world.run().await;
    let job = world.workflow(&workflow).await.active_jobs().next().unwrap().clone();
    (world, workflow, job)
}

fn request(text: &str) -> ApproveJobRequest {
    ApproveJobRequest { plan: Digest::of(text.as_bytes()) }
}

fn orders_of(world: &World, name: &str) -> usize {
    world.runners["globex"].started.iter().filter(|started| *started == name).count()
}

async fn decides(world: &mut World, job: &JobId, approved: bool) {
    let decision = CustomerDecision {
        job: job.clone(),
        plan: Digest::of(b"plan"),
        approved,
        by: "arn:aws:iam::222222222222:user/eva".into(),
        at: world.now(),
        reason: "not today".into(),
    };
    world.memory.advance_secs(1);
    world.runner("globex").decisions = vec![decision];
    let hello = world.runners["globex"].hello(world.now());
    world.accept_report().accept(&hello, world.now()).await.unwrap();
}

#[tokio::test]
async fn a_job_whose_plan_waits_has_the_log_of_the_plan() {
    let (world, _, job) = waiting(&[Side::Vendor]).await;

    let page = read::list_logs(&*world.memory, &job, None).await.unwrap();

    assert!(!page.ended);
    assert_eq!(page.chunks.into_iter().map(|chunk| chunk.text).collect::<String>(), "done\n");
}

#[tokio::test]
async fn a_plan_waits_without_an_order_or_a_look_and_its_approval_orders_exactly_this_plan_once() {
    let (mut world, workflow, job) = waiting(&[Side::Vendor]).await;
    let before = orders_of(&world, "storage");

    let view = read::show_job(&*world.memory, &job, world.now()).await.unwrap();
    let install = read::show_install(&world.versions(), &globex(), world.now()).await.unwrap();
    let first = world.sweeper().sweep().await.unwrap();
    world.memory.advance_secs(3600);
    let quiet = world.sweeper().sweep().await.unwrap();
    world.approve_job().approve(&job, &request("plan"), member()).await.unwrap();
    world.approve_job().approve(&job, &request("plan"), member()).await.unwrap();
    let opened = world.sweeper().sweep().await.unwrap();
    world.run().await;

    assert_eq!((view.state.as_str(), view.plan.unwrap().waits_for), ("waiting_for_approval", vec![Side::Vendor]));
    assert!(view.reason.contains("2 to create"), "{}", view.reason);
    assert_eq!(install.approvals.iter().map(|one| &one.job).collect::<Vec<_>>(), [&job]);
    assert_eq!((first.opened, quiet.due), (0, 0), "nothing is looked at while it waits: {quiet:?}");
    assert_eq!(opened.opened, 1);
    assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"));
    assert_eq!(orders_of(&world, "storage"), before + 1);
    let approval = world.job(&job).await.approval.unwrap();
    assert_eq!((approval.plan, approval.by.as_ref()), (Digest::of(b"plan"), Some(member())));
    let envelopes = world
        .memory
        .orders
        .lock()
        .unwrap()
        .clone()
        .into_iter()
        .map(|(.., body)| Envelope::parse(body.as_bytes()).unwrap());
    let orders = envelopes.filter(|one| one.payload_type == Order::TYPE).map(|one| one.peek::<Order>().unwrap());
    let order = orders.into_iter().find(|order| order.job == job && order.dispatch == 2).unwrap();
    assert_eq!(order.approved.map(|approved| approved.plan), Some(Digest::of(b"plan")));
    assert_eq!((order.approval, order.must_understand.is_empty()), (Some(ApprovalRule::Prompt), false));
}

#[tokio::test]
async fn another_plan_or_a_job_that_waits_for_none_is_a_conflict() {
    let (world, _, job) = waiting(&[Side::Vendor]).await;

    let other = world.approve_job().approve(&job, &request("other"), member()).await.unwrap_err();
    world.approve_job().approve(&job, &request("plan"), member()).await.unwrap();
    world.memory.advance_secs(60);
    world.sweeper().sweep().await.unwrap();
    let late = world.approve_job().approve(&job, &request("other"), member()).await.unwrap_err();

    assert_eq!((other.kind, late.kind), (Kind::Conflict, Kind::Conflict));
    assert!(other.message.contains("waits for the approval of plan"), "{other}");
    assert!(late.message.contains("does not wait for an approval"), "{late}");
}

#[tokio::test]
async fn where_both_are_asked_both_have_to_approve() {
    let (mut world, workflow, job) = waiting(&[Side::Vendor, Side::Customer]).await;

    world.approve_job().approve(&job, &request("plan"), member()).await.unwrap();
    let half = world.sweeper().sweep().await.unwrap();
    let view = read::show_job(&*world.memory, &job, world.now()).await.unwrap().plan.unwrap();
    decides(&mut world, &job, true).await;
    decides(&mut world, &job, true).await;
    world.sweeper().sweep().await.unwrap();
    world.run().await;

    assert_eq!((half.opened, view.waits_for), (0, vec![Side::Customer]));
    assert_eq!(world.machines[&workflow].at, At::Ended("succeeded"));
}

#[tokio::test]
async fn a_customer_who_rejects_ends_the_job_and_the_workflow_hears_of_it() {
    let (mut world, workflow, job) = waiting(&[Side::Customer]).await;

    decides(&mut world, &job, false).await;
    world.run().await;

    let reason = world.job(&job).await.reason().unwrap();
    assert!(reason.contains("user/eva (customer) rejected the plan: not today"), "{reason}");
    assert_eq!(world.machines[&workflow].at, At::Ended("failed"));
}

#[tokio::test]
async fn a_plan_that_nobody_approves_ends_the_job_when_its_time_is_over() {
    let (mut world, workflow, job) = waiting(&[Side::Vendor]).await;

    world.memory.advance_secs(APPROVAL_SECS + 600);
    world.sweeper().sweep().await.unwrap();
    world.run().await;

    assert!(world.job(&job).await.reason().unwrap().contains("not all approvals of the plan came before"));
    assert_eq!(world.machines[&workflow].at, At::Ended("failed"));
}
