//! The model's job and the real aggregate give the same answers to the same events.

use freehold_domain::job::{self as real, ApprovalEvent, JobEvent, NewJob, Rejected, Step, WindowEvent};
use freehold_protocol::approval::{CustomerDecision, PlanSummary, ProposedPlan, Side};
use freehold_protocol::limits::{APPROVAL_SECS, LOST_GRACE_SECS, MAX_WINDOW_WAIT_SECS};
use freehold_protocol::order::{AskedBy, Mode};
use freehold_protocol::report::{self, Block};
use freehold_protocol::{Digest, KeyId, Timestamp, WorkflowId};
use proptest::prelude::*;

use crate::bug::Seed;
use crate::job::{Answer, Control, Event, Fence, Job, JobState, Outcome, Time};
use crate::word::{Approved, Word};

const CLAIM_WINDOW_SECS: u64 = 60;
const CONTROL: Control = Control { max_dispatches: real::MAX_DISPATCHES as u8, seed: Seed { bug: None } };

/// What happens, and how many seconds pass before it.
fn happenings() -> impl Strategy<Value = Vec<(u64, Event)>> {
    let fence = || (1..5_u8, 1..4_u8).prop_map(|(dispatch, receive)| Fence { dispatch, receive });
    let outcome = prop_oneof![
        1 => Just(Outcome::Succeeded),
        3 => Just(Outcome::Failed),
        1 => Just(Outcome::Blocked),
        2 => Just(Outcome::Interrupted),
        1 => Just(Outcome::Cancelled),
        4 => Just(Outcome::NeedsApproval),
    ];
    let event = prop_oneof![
        3 => (fence(), 1..4_u8, 0..2_u8).prop_map(|(fence, seq, runner)| Event::Started { fence, seq, runner }),
        3 => (fence(), 1..6_u8, 0..2_u8).prop_map(|(fence, seq, runner)| Event::Progress { fence, seq, runner }),
        3 => (fence(), 0..2_u8, outcome).prop_map(|(fence, runner, outcome)| Event::Finished { fence, runner, outcome }),
        3 => (fence(), 0..2_u8).prop_map(|(fence, runner)| Event::Returned { fence, runner }),
        2 => (fence(), 0..2_u8).prop_map(|(fence, runner)| Event::Kept { fence, runner }),
        2 => (1..5_u8).prop_map(|dispatch| Event::Closed { dispatch }),
        2 => Just(Event::Opened),
        1 => fence().prop_map(|fence| Event::Word(Word::Reject(fence))),
        1 => fence().prop_map(|fence| Event::Word(Word::CustomerRejects(fence))),
        3 => fence().prop_map(|fence| Event::Word(Word::Approve(fence))),
        3 => fence().prop_map(|fence| Event::Word(Word::CustomerApproves(fence))),
        3 => Just(Event::Word(Word::Proceed)),
        1 => Just(Event::Cancel),
        2 => Just(Event::Expire),
        3 => Just(Event::Wait),
        3 => Just(Event::Retry),
        2 => Just(Event::Resume),
    ];
    let pause =
        prop_oneof![40 => 0..20_u64, 10 => 100..400_u64, 1 => Just(MAX_WINDOW_WAIT_SECS), 1 => Just(APPROVAL_SECS)];
    prop::collection::vec((pause, event), 1..40)
}

fn new_job() -> real::Job {
    let new = NewJob {
        install: "globex".parse().unwrap(),
        workflow: WorkflowId::derive("globex", "model"),
        node: "web".into(),
        group: "component:web".parse().unwrap(),
        serial: 1,
        mode: Mode::Maintenance,
        role: None,
        timeout_secs: 60,
    };
    let limits = real::WaitLimits { order_secs: CLAIM_WINDOW_SECS, job_secs: 1_500 };
    real::Job::new(new, limits, Timestamp::from_millis(1))
}

fn key(runner: u8) -> KeyId {
    serde_json::from_value(["runner-a", "runner-b"][usize::from(runner)].into()).unwrap()
}

fn runner_of(key: &KeyId) -> u8 {
    u8::from(*key != self::key(0))
}

fn real_fence(fence: Fence) -> report::Fence {
    report::Fence { dispatch: fence.dispatch.into(), receive: fence.receive.into() }
}

fn plan(fence: Fence) -> Digest {
    Digest::of(format!("{}.{}", fence.dispatch, fence.receive).as_bytes())
}

fn real_word(word: Word) -> ApprovalEvent {
    let by = AskedBy::Schedule;
    let customer = |fence: Fence, approved| {
        ApprovalEvent::Customer(CustomerDecision {
            job: new_job().id,
            plan: plan(fence),
            approved,
            by: "eva".into(),
            at: Timestamp::default(),
            reason: String::new(),
        })
    };
    match word {
        Word::Approve(fence) => ApprovalEvent::Approve { plan: plan(fence), by },
        Word::Reject(fence) => ApprovalEvent::Reject { plan: plan(fence), by, reason: String::new() },
        Word::CustomerApproves(fence) => customer(fence, true),
        Word::CustomerRejects(fence) => customer(fence, false),
        Word::Proceed => ApprovalEvent::Proceed,
    }
}

/// Returns the plan that the attempt with this fence makes, which both sides have to approve until the time `until`.
fn proposed(fence: Fence, until: Timestamp) -> ProposedPlan {
    ProposedPlan {
        plan: plan(fence),
        until,
        asks: [Side::Vendor, Side::Customer].into(),
        summary: PlanSummary::default(),
        policies: Digest::of(b""),
        instead: None,
    }
}

fn real_event(event: Event, until: Timestamp) -> JobEvent {
    match event {
        Event::Started { fence, seq, runner } => {
            JobEvent::Started { fence: real_fence(fence), seq: seq.into(), runner: key(runner) }
        }
        Event::Progress { fence, seq, runner } => {
            JobEvent::Progress { fence: real_fence(fence), seq: seq.into(), runner: key(runner) }
        }
        Event::Finished { fence, runner, outcome } => {
            JobEvent::finished(real_fence(fence), key(runner), real_outcome(outcome, fence, until))
        }
        Event::Cancel => JobEvent::Cancel(Default::default()),
        Event::Returned { fence, runner } => JobEvent::Returned { fence: real_fence(fence), runner: key(runner) },
        Event::Kept { fence, runner } => JobEvent::Window(WindowEvent::Refused {
            fence: real_fence(fence),
            runner: key(runner),
            until: None,
            reason: String::new(),
        }),
        Event::Closed { dispatch } => {
            JobEvent::Window(WindowEvent::Closed { dispatch: dispatch.into(), until: None, reason: String::new() })
        }
        Event::Opened => JobEvent::Window(WindowEvent::Opened),
        Event::Word(word) => JobEvent::Approval(real_word(word)),
        Event::Expire => JobEvent::Expire,
        Event::Wait => JobEvent::Wait,
        Event::Retry => JobEvent::Retry,
        Event::Resume => JobEvent::Resume { why: String::new() },
    }
}

fn real_outcome(outcome: Outcome, fence: Fence, until: Timestamp) -> report::Outcome {
    let reason = String::new();
    match outcome {
        Outcome::Succeeded => {
            report::Outcome::Succeeded { outputs: Default::default(), sensitive: Default::default(), artifact: None }
        }
        Outcome::Failed => report::Outcome::Failed { reason, partial: true },
        Outcome::Blocked => report::Outcome::Blocked { block: Block::Policy, reason },
        Outcome::Interrupted => report::Outcome::Interrupted { reason },
        Outcome::Cancelled => report::Outcome::Cancelled,
        Outcome::NeedsApproval => report::Outcome::NeedsApproval { plan: Box::new(proposed(fence, until)) },
    }
}

fn small(n: u32) -> u8 {
    u8::try_from(n).unwrap()
}

/// Returns what of the real job the model has.
fn abstracted(job: &real::Job) -> Job {
    let state = match &job.state {
        real::JobState::Queued { .. } => JobState::Queued,
        real::JobState::Running { fence, runner, last_seq, .. } => JobState::Running {
            receive: small(fence.receive),
            runner: runner_of(runner),
            seq: u8::try_from(*last_seq).unwrap(),
        },
        real::JobState::WaitingForRunner { attempt, .. } => JobState::Waiting {
            last: attempt.as_ref().map(|last| (small(last.fence.receive), runner_of(&last.runner))),
        },
        real::JobState::WaitingForWindow { .. } => JobState::OutsideWindow,
        real::JobState::WaitingForApproval { fence, runner, vendor, customer, .. } => JobState::Approval {
            receive: small(fence.receive),
            runner: runner_of(runner),
            approved: Approved { vendor: vendor.is_some(), customer: customer.is_some() },
        },
        real::JobState::WaitingForChecks { .. } => panic!("no job of the model has required checks"),
        real::JobState::Succeeded { fence, .. } => JobState::Succeeded { receive: small(fence.receive) },
        real::JobState::Failed { fence, .. } => JobState::Failed { receive: small(fence.receive) },
        real::JobState::Blocked { fence, .. } => JobState::Blocked { receive: small(fence.receive) },
        real::JobState::Interrupted { fence, .. } => JobState::Interrupted { receive: small(fence.receive) },
        real::JobState::Lost { attempt, .. } => {
            JobState::Lost { last: attempt.as_ref().map(|last| (small(last.fence.receive), runner_of(&last.runner))) }
        }
        real::JobState::Cancelled { unclaimed, .. } => JobState::Cancelled { unclaimed: *unclaimed },
    };
    let cancel_requested = job.cancel_requested.is_some();
    let approval = job.approval.as_ref().map(|approval| {
        let all = (1..=u8::MAX).flat_map(|dispatch| (1..4).map(move |receive| Fence { dispatch, receive }));
        all.into_iter().find(|fence| plan(*fence) == approval.plan).unwrap()
    });
    let (dispatch, returned, earlier) = (small(job.state.dispatch()), small(job.returned), small(job.earlier));
    Job { dispatch, cancel_requested, returned, earlier, approval, state }
}

fn answer(result: &Result<Step, Rejected>) -> Answer {
    match result {
        Ok(Step::Changed { job, .. }) => Answer::Changed(abstracted(job)),
        Ok(Step::Already) => Answer::Already,
        Ok(Step::NotYet) => Answer::NotYet,
        Err(Rejected::Stale { .. }) => Answer::Stale,
        Err(Rejected::Held { .. }) => Answer::Held,
        Err(Rejected::Ended { .. }) => Answer::Ended,
        Err(Rejected::NeverDispatched { .. }) => Answer::NeverDispatched,
        Err(Rejected::Exhausted { .. }) => Answer::Exhausted,
        Err(Rejected::NotRetryable { .. }) => Answer::NotRetryable,
        Err(Rejected::NotWaiting { .. }) => Answer::NotWaiting,
        Err(Rejected::OtherPlan { .. }) => Answer::OtherPlan,
        Err(Rejected::ExpiredPlan { .. }) => Answer::ExpiredPlan,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn the_model_and_the_aggregate_answer_alike(happenings in happenings()) {
        let mut job = new_job();
        let mut now = Timestamp::default();

        for (pause, event) in happenings {
            now = now.plus_secs(pause);
            let time = Time {
                too_late: now.plus_secs(LOST_GRACE_SECS) >= job.start_by(),
                outlived: now >= job.not_after.plus_secs(LOST_GRACE_SECS),
                waited: now >= job.runner_wait_until(),
                begun: job.may_have_begun(),
                closed_too_long: now >= job.waits_until(),
                plan_expired: now > job.waits_until(),
                plan_over: now >= job.waits_until().plus_secs(LOST_GRACE_SECS),
            };
            let modelled = CONTROL.on(&abstracted(&job), &event, time);

            let decided = job.on(&real_event(event, now.plus_secs(APPROVAL_SECS)), now);

            prop_assert_eq!(answer(&decided), modelled, "{:?} after {:?}", event, job.state);
            if let Ok(Step::Changed { job: next, .. }) = decided {
                let silent = matches!(event, Event::Progress { .. }) && next.state.as_str() == job.state.as_str();
                prop_assert_eq!(next.history.len(), job.history.len() + usize::from(!silent));
                job = *next;
            }
        }
    }
}
