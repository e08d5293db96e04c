use std::collections::BTreeSet;

use freehold_protocol::JobId;
use freehold_protocol::approval::{CustomerDecision, PlanSummary};
use freehold_protocol::limits::{APPROVAL_SECS, MAX_WAIT_SECS};
use serde_json::Value;

use super::*;
use crate::job::WaitLimits;
use crate::job::tests::new_job;

const HOUR: u64 = 3600;
const BOTH: [Side; 2] = [Side::Vendor, Side::Customer];

fn at(secs: u64) -> Timestamp {
    Timestamp::from_millis(1_000_000_000).plus_secs(secs)
}

fn runner() -> KeyId {
    serde_json::from_value(Value::from("a")).unwrap()
}

fn ana() -> AskedBy {
    AskedBy::Caller { arn: "arn:aws:sts::111111111111:assumed-role/deployer/ana".parse().unwrap() }
}

fn plan(text: &str, asks: &[Side]) -> ProposedPlan {
    ProposedPlan {
        plan: Digest::of(text.as_bytes()),
        until: at(APPROVAL_SECS),
        asks: asks.iter().copied().collect::<BTreeSet<_>>(),
        summary: PlanSummary { create: 1, ..PlanSummary::default() },
        policies: Digest::of(b"policies"),
        instead: None,
    }
}

fn proposes(dispatch: u32, receive: u32, plan: ProposedPlan) -> JobEvent {
    let outcome = Outcome::NeedsApproval { plan: Box::new(plan) };
    JobEvent::finished(Fence { dispatch, receive }, runner(), outcome)
}

fn approves(text: &str) -> JobEvent {
    JobEvent::Approval(ApprovalEvent::Approve { plan: Digest::of(text.as_bytes()), by: ana() })
}

fn rejects(text: &str) -> JobEvent {
    let (plan, reason) = (Digest::of(text.as_bytes()), "not today".to_owned());
    JobEvent::Approval(ApprovalEvent::Reject { plan, by: ana(), reason })
}

fn customer(text: &str, approved: bool) -> JobEvent {
    JobEvent::Approval(ApprovalEvent::Customer(CustomerDecision {
        job: JobId::derive(&new_job().workflow, "web"),
        plan: Digest::of(text.as_bytes()),
        approved,
        by: "arn:aws:iam::222222222222:user/eva".into(),
        at: at(7),
        reason: "too much".into(),
    }))
}

const PROCEED: JobEvent = JobEvent::Approval(ApprovalEvent::Proceed);

fn changed(job: &Job, event: &JobEvent, now: Timestamp) -> Job {
    match job.on(event, now) {
        Ok(Step::Changed { job, .. }) => *job,
        other => panic!("{other:?}"),
    }
}

fn waiting(asks: &[Side]) -> Job {
    let job = Job::new(new_job(), WaitLimits { order_secs: HOUR, job_secs: MAX_WAIT_SECS }, at(0));
    changed(&job, &proposes(1, 1, plan("a", asks)), at(5))
}

#[test]
fn a_job_waits_for_everybody_who_is_asked_and_is_ordered_once_with_the_plan_that_they_approved() {
    let waiting = waiting(&BOTH);
    let half = changed(&waiting, &customer("a", true), at(8));
    let whole = changed(&half, &approves("a"), at(9));
    let ordered = changed(&whole, &PROCEED, at(HOUR));

    assert_eq!((waiting.state.as_str(), waiting.waits_for()), ("waiting_for_approval", BOTH.to_vec()));
    assert!(waiting.is_left_to_wait() && !waiting.state.is_terminal());
    assert_eq!((half.waits_for(), half.is_left_to_wait()), (vec![Side::Vendor], true));
    assert!(matches!(half.on(&PROCEED, at(9)), Ok(Step::Already)), "one of two is not enough");
    assert_eq!((whole.is_approved(), whole.is_left_to_wait()), (true, false));
    assert_eq!((&ordered.state, ordered.returned), (&JobState::Queued { dispatch: 2 }, 1));
    assert_eq!((ordered.created_at, ordered.start_by()), (at(HOUR), at(2 * HOUR)));
    let approval = ordered.approval.clone().unwrap();
    assert_eq!((approval.plan, approval.by, approval.at), (Digest::of(b"a"), Some(ana()), at(9)));
    assert!(matches!(ordered.on(&PROCEED, at(HOUR)), Ok(Step::Already)));
    assert!(matches!(ordered.on(&approves("a"), at(HOUR)), Ok(Step::Already)));
}

#[test]
fn an_approval_counts_for_no_other_plan() {
    let waiting = waiting(&[Side::Vendor]);
    let later = changed(&waiting, &approves("a"), at(6));
    let ordered = changed(&later, &PROCEED, at(7));
    let anew = changed(&ordered, &proposes(2, 1, plan("b", &[Side::Vendor])), at(8));

    assert!(matches!(waiting.on(&approves("b"), at(6)), Err(Rejected::OtherPlan { .. })));
    assert!(matches!(waiting.on(&rejects("b"), at(6)), Err(Rejected::OtherPlan { .. })));
    assert!(matches!(waiting.on(&customer("b", true), at(6)), Ok(Step::Already)));
    assert_eq!((anew.is_approved(), anew.approval.clone()), (false, None));
    assert!(matches!(anew.on(&approves("a"), at(9)), Err(Rejected::OtherPlan { .. })));
}

#[test]
fn who_rejects_a_plan_ends_the_job_which_has_changed_nothing() {
    let vendor = changed(&waiting(&BOTH), &rejects("a"), at(6));
    let customer = changed(&waiting(&BOTH), &customer("a", false), at(6));

    for (job, by) in [(vendor, "deployer/ana (vendor) rejected the plan: not today"), (customer, "eva (customer)")] {
        let reason = job.reason().unwrap();
        assert!(matches!(job.state, JobState::Blocked { block: Block::NotApproved, .. }), "{:?}", job.state);
        assert!(reason.contains(by) && job.changed_nothing(), "{reason}");
    }
}

#[test]
fn a_plan_that_nobody_approves_in_time_ends_the_job_and_is_approved_no_more() {
    let waiting = waiting(&BOTH);
    let (last, late) = (at(APPROVAL_SECS), at(APPROVAL_SECS + LOST_GRACE_SECS));

    assert!(matches!(waiting.on(&JobEvent::Expire, last), Ok(Step::NotYet)));
    assert!(matches!(waiting.on(&approves("a"), late), Err(Rejected::ExpiredPlan { .. })));
    let ended = changed(&changed(&waiting, &approves("a"), at(9)), &JobEvent::Wait, late);

    assert!(ended.reason().unwrap().contains("missing: customer"), "{:?}", ended.reason());
    assert_eq!((ended.state.as_str(), ended.changed_nothing()), ("blocked", true));
    assert!(matches!(ended.on(&approves("a"), late), Err(Rejected::NotWaiting { .. })));
}

#[test]
fn a_cancel_ends_a_job_that_waits_and_an_approved_one_is_not_ordered() {
    let cancelled =
        changed(&changed(&waiting(&BOTH), &approves("a"), at(6)), &JobEvent::Cancel(Default::default()), at(7));
    let approved = changed(&cancelled, &customer("a", true), at(8));

    assert!(matches!(approved.on(&PROCEED, at(9)), Ok(Step::Already)));
    assert_eq!(changed(&approved, &JobEvent::Expire, at(9)).state.as_str(), "cancelled");
}

#[test]
fn a_report_that_comes_again_changes_nothing_and_a_later_delivery_plans_anew() {
    let waiting = changed(&waiting(&[Side::Vendor]), &approves("a"), at(6));
    let started = JobEvent::Started { fence: Fence { dispatch: 1, receive: 2 }, seq: 1, runner: runner() };

    assert!(matches!(waiting.on(&proposes(1, 1, plan("a", &BOTH)), at(7)), Ok(Step::Already)));
    let again = changed(&waiting, &started, at(7));
    let anew = changed(&again, &proposes(1, 2, plan("b", &BOTH)), at(8));

    assert_eq!((anew.waits_for(), anew.state.as_str()), (BOTH.to_vec(), "waiting_for_approval"));
}

#[test]
fn a_plan_of_a_job_that_is_over_or_cancelled_waits_for_nobody() {
    let job = Job::new(new_job(), WaitLimits { order_secs: HOUR, job_secs: MAX_WAIT_SECS }, at(0));
    let lost = changed(&job, &JobEvent::Expire, at(10 * HOUR));
    let stopped = changed(&job, &JobEvent::Cancel(Default::default()), at(1));

    assert_eq!(changed(&lost, &proposes(1, 1, plan("a", &BOTH)), at(10 * HOUR)).state.as_str(), "blocked");
    assert_eq!(changed(&stopped, &proposes(1, 1, plan("a", &BOTH)), at(5)).state.as_str(), "cancelled");
}

#[test]
fn a_plan_that_is_reported_again_keeps_who_has_approved_it() {
    let half = changed(&waiting(&BOTH), &approves("a"), at(8));

    let again = changed(&half, &proposes(1, 2, plan("a", &BOTH)), at(40));
    let other = changed(&half, &proposes(1, 2, plan("b", &BOTH)), at(40));

    assert_eq!(again.waits_for(), [Side::Customer]);
    assert!(matches!(again.state, JobState::WaitingForApproval { since, .. } if since == at(5)), "{:?}", again.state);
    assert_eq!(other.waits_for(), BOTH);
}

#[test]
fn a_plan_that_asks_nobody_ends_its_job() {
    let job = Job::new(new_job(), WaitLimits { order_secs: HOUR, job_secs: MAX_WAIT_SECS }, at(0));

    let ended = changed(&job, &proposes(1, 1, plan("a", &[])), at(5));

    assert!(matches!(ended.state, JobState::Failed { partial: false, .. }), "{:?}", ended.state);
    assert!(ended.state.reason().unwrap().contains("asked nobody"), "{:?}", ended.state);
}

#[test]
fn a_runner_cannot_let_a_plan_wait_for_longer_than_plans_wait() {
    let job = Job::new(new_job(), WaitLimits { order_secs: HOUR, job_secs: MAX_WAIT_SECS }, at(0));
    let proposed = ProposedPlan { until: at(1_000 * APPROVAL_SECS), ..plan("a", &BOTH) };

    let waiting = changed(&job, &proposes(1, 1, proposed), at(5));

    let JobState::WaitingForApproval { plan, .. } = &waiting.state else { panic!("{:?}", waiting.state) };
    assert_eq!(plan.until, at(5 + APPROVAL_SECS + HOUR));
}

#[test]
fn a_job_that_was_ordered_again_too_often_asks_for_no_other_approval() {
    let job = Job::new(new_job(), WaitLimits { order_secs: HOUR, job_secs: MAX_WAIT_SECS }, at(0));

    let ended = changed(&Job { returned: 500, ..job }, &proposes(1, 1, plan("a", &BOTH)), at(5));

    assert!(matches!(ended.state, JobState::Blocked { block: Block::NotApproved, .. }), "{:?}", ended.state);
}
