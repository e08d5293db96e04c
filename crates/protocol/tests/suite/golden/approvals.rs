//! The wire format of approvals: in orders, of the customer's decision, and in a notification.

use freehold_protocol::approval::{
    ApprovalRule, ChangeKind, FEATURE, OrderApproval, PlanSummary, PlannedChange, ProposedPlan, Side, WrittenDecision,
};
use freehold_protocol::notification::{Notification, NotificationKind};
use freehold_protocol::order::Demands;
use freehold_protocol::{NotificationId, RunId};

use super::*;

pub(super) fn proposed_plan() -> ProposedPlan {
    let change = PlannedChange { address: "aws_vpc.main".into(), kind: "aws_vpc".into(), change: ChangeKind::Replace };
    ProposedPlan {
        plan: Digest::of(b"record"),
        until: AT.plus_secs(604_800),
        asks: [Side::Vendor, Side::Customer].into(),
        summary: PlanSummary::of(vec![change]),
        policies: Digest::of(b"policies"),
        instead: Some("the state moved on".into()),
    }
}

#[test]
fn a_notification() {
    let notification = Notification {
        id: NotificationId::derive("approval-asked", &["job", "plan"]),
        kind: NotificationKind::ApprovalAsked,
        at: AT,
        install: Some("globex".parse().unwrap()),
        app: Some("shop".parse().unwrap()),
        workflow: Some(workflow()),
        job: Some(job()),
        run: Some(RunId::derive(&"globex".parse().unwrap(), "golden")),
        subject: "Freehold: globex: a plan of web waits for approval".into(),
        text: "Job web waits.".into(),
        command: format!("freehold job show {}", job()),
    };

    golden("notification", &notification);
}

#[test]
fn approvals() {
    let image = order(Work::ContainerImage(SyncImage { component: name("web"), artifact: artifact() }));
    let approval = OrderApproval {
        plan: Digest::of(b"record"),
        by: Some(AskedBy::Schedule),
        at: AT,
        until: AT.plus_secs(604_800),
        policies: Digest::of(b"policies"),
    };
    let must_understand = Demands::feature(FEATURE);
    let asks = Order { approval: Some(ApprovalRule::Prompt), must_understand, ..image };
    golden("order-approval", &asks);
    golden("order-approved", &Order { approved: Some(Box::new(approval)), ..asks });
    golden(
        "written-decision",
        &WrittenDecision {
            tenant: "acme".parse().unwrap(),
            install: "globex".parse().unwrap(),
            plan: Digest::of(b"record"),
            approved: false,
            by: "arn:aws:iam::222222222222:user/eva".into(),
            at: AT,
            reason: "after the audit".into(),
        },
    );
}
