//! The model's runner decides about a delivery as the real journal does.

use freehold_protocol::order::{Mode, Order, Redelivery as RealRedelivery, RunAction, Work};
use freehold_protocol::report::{self, Outcome as RealOutcome};
use freehold_protocol::{JobId, Timestamp, WorkflowId};
use freehold_runner::work::journal::{Decision as RealDecision, Record, State};
use proptest::prelude::*;

use crate::bug::Seed;
use crate::job::{Fence, Outcome};
use crate::runner::{Decision, Delivery, Entry, Phase, Redelivery, decide, is_unseen, learn, put_back};

/// What the journal takes in: of two jobs of one group, with serial 0 and 1. Each has two messages with its order.
#[derive(Debug, Clone, Copy)]
struct Taken {
    job: u8,
    fence: Fence,
    message: u8,
    what: What,
}

#[derive(Debug, Clone, Copy)]
enum What {
    Accepted,
    PutBack,
    Learned,
    Started,
    Finished(Outcome),
    Cancelled,
}

fn fences() -> impl Strategy<Value = Fence> {
    (1..4_u8, 1..4_u8).prop_map(|(dispatch, receive)| Fence { dispatch, receive })
}

fn taken() -> impl Strategy<Value = Taken> {
    let outcome = prop_oneof![Just(Outcome::Cancelled), Just(Outcome::Interrupted), Just(Outcome::Failed)];
    let what = prop_oneof![
        1 => Just(What::Accepted),
        3 => Just(What::PutBack),
        2 => Just(What::Learned),
        1 => Just(What::Started),
        1 => outcome.prop_map(What::Finished),
        1 => Just(What::Cancelled),
    ];
    (0..2_u8, fences(), 0..2_u8, what).prop_map(|(job, fence, message, what)| Taken { job, fence, message, what })
}

fn job_id(job: u8) -> JobId {
    format!("job_{job:020x}").parse().unwrap()
}

fn order(job: u8, fence: Fence, redelivery: Redelivery) -> Order {
    Order {
        tenant: "acme".parse().unwrap(),
        install: "globex".parse().unwrap(),
        workflow: WorkflowId::derive("globex", "model"),
        job: job_id(job),
        dispatch: fence.dispatch.into(),
        group: "action:check".parse().unwrap(),
        serial: job.into(),
        issued_at: Timestamp::default(),
        start_by: None,
        not_after: Timestamp::default(),
        timeout_secs: 60,
        mode: Mode::Maintenance,
        role: None,
        asked_by: None,
        asker: None,
        asked_why: None,
        now: false,
        runner: None,
        redelivery: match redelivery {
            Redelivery::Resume => RealRedelivery::Resume,
            Redelivery::Interrupted => RealRedelivery::Interrupted,
        },
        work: Work::Action(RunAction {
            action: "check".parse().unwrap(),
            steps: Vec::new(),
            directories: Vec::new(),
            env_vars: Default::default(),
            idempotent: false,
            cluster: None,
            image: String::new(),
        }),
        context: serde_json::Value::Null,
        skip_noops: false,
        sensitive_inputs: Vec::new(),
        sealed_inputs: std::collections::BTreeMap::new(),
        secrets: Vec::new(),
        kept_outputs: Vec::new(),
        tool_image: None,
        terms: None,
        receipt: None,
        policies: Vec::new(),
        approval: None,
        approved: None,
        must_understand: Default::default(),
    }
}

fn real_fence(fence: Fence) -> report::Fence {
    report::Fence { dispatch: fence.dispatch.into(), receive: fence.receive.into() }
}

/// Returns the time at which the queue took the message.
fn sent_at(message: u8) -> Option<Timestamp> {
    Some(Timestamp::from_millis(message.into()))
}

fn real_outcome(outcome: Outcome) -> RealOutcome {
    let reason = String::new();
    match outcome {
        Outcome::Succeeded => {
            RealOutcome::Succeeded { outputs: Default::default(), sensitive: Default::default(), artifact: None }
        }
        Outcome::Failed | Outcome::Blocked => RealOutcome::Failed { reason, partial: true },
        Outcome::Interrupted => RealOutcome::Interrupted { reason },
        Outcome::Cancelled => RealOutcome::Cancelled,
        Outcome::NeedsApproval => panic!("no runner of these worlds makes a plan"),
    }
}

/// The records in the order in which a runner can write them: accepted first, and never an older dispatch later.
fn record(state: &mut State, entries: &mut [Entry; 2], taken: Taken) {
    let Taken { job, fence, message, what } = taken;
    let delivery = delivery(entries, (job, message), fence, Redelivery::Interrupted);
    let entry = &mut entries[usize::from(job)];
    let (delivered, sent_at) = (order(job, fence, Redelivery::Interrupted), sent_at(message));
    match what {
        What::PutBack => {
            let real = state.put_back(&delivered, fence.receive.into(), sent_at);
            let modelled = put_back(Seed::default(), *entry, delivery);
            assert_eq!(real.is_some(), modelled.is_some(), "{entry:?} {delivery:?}");
            real.into_iter().for_each(|record| state.apply(record));
            *entry = modelled.unwrap_or(*entry);
            return;
        }
        What::Learned => {
            let before = state.unseen(&delivered, fence.receive.into(), sent_at);
            assert_eq!(before.is_some(), is_unseen(Seed::default(), *entry, delivery), "{entry:?} {delivery:?}");
            let learned = before.map(|fence| Record::PutBack { job: job_id(job), fence, sent_at });
            learned.into_iter().for_each(|record| state.apply(record));
            *entry = learn(Seed::default(), *entry, delivery);
            return;
        }
        What::Cancelled => {
            entry.cancelled = fence.dispatch;
            state.apply(Record::Cancelled { job: job_id(job), dispatch: fence.dispatch.into(), receive: None });
            return;
        }
        What::Accepted | What::Started | What::Finished(_) if fence.dispatch < entry.dispatch => return,
        What::Accepted | What::Started | What::Finished(_) => {}
    }
    state.apply(Record::accepted(&order(job, fence, Redelivery::Resume)));
    if entry.dispatch < fence.dispatch {
        *entry = Entry { dispatch: fence.dispatch, phase: Phase::Accepted, ..*entry };
    }
    entry.accepted = true;
    match what {
        What::Accepted | What::PutBack | What::Learned | What::Cancelled => {}
        What::Started => {
            entry.phase = Phase::Started;
            state.apply(Record::Started { job: job_id(job), fence: real_fence(fence) });
        }
        What::Finished(outcome) => {
            entry.phase = Phase::Finished(outcome);
            let outcome = real_outcome(outcome);
            state.apply(Record::Finished { job: job_id(job), fence: real_fence(fence), outcome });
        }
    }
}

fn delivery(entries: &[Entry; 2], (job, message): (u8, u8), fence: Fence, redelivery: Redelivery) -> Delivery {
    let newer_accepted = job == 0 && entries[1].accepted;
    Delivery { fence, message, redelivery, expired: false, newer_accepted, noted: true }
}

fn alike(modelled: Decision, real: &RealDecision) -> bool {
    match (modelled, real) {
        (Decision::Start, RealDecision::Start)
        | (Decision::Resume, RealDecision::Resume)
        | (Decision::Interrupted, RealDecision::Interrupted)
        | (Decision::Cancelled, RealDecision::Cancelled)
        | (Decision::Replayed, RealDecision::Replayed { .. }) => true,
        (Decision::Again(outcome), RealDecision::Again(real)) => real_outcome(outcome) == *real,
        (
            Decision::Start
            | Decision::Resume
            | Decision::Interrupted
            | Decision::Cancelled
            | Decision::Replayed
            | Decision::Again(_)
            | Decision::GiveBack,
            _,
        ) => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn the_model_and_the_journal_decide_alike(
        history in prop::collection::vec(taken(), 0..8),
        job in 0..2_u8,
        message in 0..2_u8,
        fence in fences(),
        interrupted in any::<bool>(),
    ) {
        let redelivery = if interrupted { Redelivery::Interrupted } else { Redelivery::Resume };
        let (mut state, mut entries) = (State::default(), [Entry::default(); 2]);
        for taken in history {
            // The model remembers one cancelled dispatch, the journal all of them.
            if matches!(taken.what, What::Cancelled) && entries[usize::from(taken.job)].cancelled > 0 {
                continue;
            }
            record(&mut state, &mut entries, taken);
        }
        let delivery = delivery(&entries, (job, message), fence, redelivery);

        let real = state.decide(&order(job, fence, redelivery), fence.receive.into(), sent_at(message));

        let modelled = decide(Seed::default(), entries[usize::from(job)], delivery);
        prop_assert!(alike(modelled, &real), "the model says {:?}, the journal {:?}", modelled, real);
    }
}
