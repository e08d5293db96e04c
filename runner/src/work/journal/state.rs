//! The state that journal records describe, and the decision about an order that follows from it. This module uses
//! neither files nor a clock.

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::order::{Cancel, Order, Redelivery};
use freehold_protocol::report::{Fence, Outcome};
use freehold_protocol::{Group, JobId, Timestamp};
use serde::{Deserialize, Serialize};

/// The number of jobs and cancels that the state remembers. The newest order of each group, and what became of it, is
/// never forgotten: it excludes copies of older orders of the group, and a copy of itself must not start it again.
const REMEMBERED: usize = 1_000;

/// One event in the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    /// An order was verified and is the newest of its group.
    Accepted { group: Group, serial: u64, job: JobId, dispatch: u32 },
    /// A delivery was put back into the queue, and no attempt has started up to it.
    PutBack {
        job: JobId,
        fence: Fence,
        /// The time at which the queue took the message; absent in records of earlier versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sent_at: Option<Timestamp>,
    },
    /// The job's process is about to start.
    Started { job: JobId, fence: Fence },
    /// The attempt ended. Its outcome is reported or will be.
    Finished { job: JobId, fence: Fence, outcome: Outcome },
    /// The control plane cancelled the job.
    Cancelled { job: JobId, dispatch: u32, receive: Option<u32> },
}

/// The state that the records describe.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct State {
    groups: BTreeMap<Group, Head>,
    jobs: BTreeMap<JobId, Entry>,
    cancels: BTreeMap<(JobId, u32, Option<u32>), u64>,
    /// The number of applied records. It orders the entries by age, so that the oldest are forgotten first.
    age: u64,
}

#[derive(Debug, Clone, PartialEq)]
struct Head {
    serial: u64,
    job: JobId,
    dispatch: u32,
}

#[derive(Debug, Clone, PartialEq)]
struct Entry {
    dispatch: u32,
    phase: Phase,
    age: u64,
}

#[derive(Debug, Clone, PartialEq)]
enum Phase {
    Accepted,
    PutBack { fence: Fence, sent_at: Option<Timestamp> },
    Started { fence: Fence },
    Finished { fence: Fence, outcome: Outcome },
}

/// The decision about a verified order that is not in flight.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub enum Decision {
    /// No attempt has started: start one.
    Start,
    /// An earlier attempt may have started: run the job again, starting from the current state of its target.
    Resume,
    /// An earlier attempt may have started, and jobs of this kind never start twice.
    Interrupted,
    /// The job ended on this runner: report its outcome again.
    Again(Outcome),
    /// The control plane cancelled the order before it started.
    Cancelled,
    /// The runner has already accepted another order of the same group or job that excludes this one.
    Replayed { accepted: Accepted },
}

/// An accepted order because of which a later order counts as replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Accepted {
    /// An order of the same group with this higher serial.
    HigherSerial(u64),
    /// An order for this other job, with the same group and serial.
    OtherJob(JobId),
    /// A later dispatch of the same job, with this number.
    LaterDispatch(u32),
}

impl Accepted {
    /// Returns the reason why `order` is refused.
    pub fn refusal(&self, order: &Order) -> String {
        let Order { serial, group, job, dispatch, .. } = order;
        match self {
            Self::HigherSerial(accepted) => format!(
                "the order has serial {serial} of group `{group}`, and this runner has accepted the newer serial {accepted}"
            ),
            Self::OtherJob(accepted) => format!(
                "the order has serial {serial} of group `{group}`, which this runner has accepted for job `{accepted}`"
            ),
            Self::LaterDispatch(accepted) => format!(
                "the order is dispatch {dispatch} of job `{job}`, and this runner has accepted dispatch {accepted} of it"
            ),
        }
    }
}

impl State {
    /// Returns the decision about `order`. `receive` counts the deliveries of its message, which the queue took at
    /// `sent_at`.
    pub fn decide(&self, order: &Order, receive: u32, sent_at: Option<Timestamp>) -> Decision {
        if let Some(accepted) = self.groups.get(&order.group).and_then(|head| head.excludes(order)) {
            return Decision::Replayed { accepted };
        }
        let phase = match self.jobs.get(&order.job) {
            Some(entry) if entry.dispatch > order.dispatch => {
                return Decision::Replayed { accepted: Accepted::LaterDispatch(entry.dispatch) };
            }
            Some(entry) if entry.dispatch == order.dispatch => Some(&entry.phase),
            Some(_) | None => None,
        };
        if let Some(Phase::Finished { outcome, .. }) = phase {
            return Decision::Again(outcome.clone());
        }
        if self.is_cancelled(&order.job, order.dispatch, receive) {
            return Decision::Cancelled;
        }
        // An earlier delivery may have started on a runner whose journal is lost, unless this journal saw all of them.
        // Deliveries of another message with the order do not count.
        let is_message = |of: &Option<Timestamp>| of.zip(sent_at).is_none_or(|(known, own)| known == own);
        let unstarted = match phase {
            Some(Phase::PutBack { fence, sent_at }) if fence.dispatch == order.dispatch && is_message(sent_at) => {
                fence.receive
            }
            _ => 0,
        };
        let may_have_begun = matches!(phase, Some(Phase::Started { .. })) || receive > unstarted + 1;
        match (may_have_begun, order.redelivery) {
            (false, _) => Decision::Start,
            (true, Redelivery::Resume) => Decision::Resume,
            (true, Redelivery::Interrupted) => Decision::Interrupted,
        }
    }

    /// Returns the record of a delivery that goes back to the queue unstarted, so that the next delivery may start.
    /// `None` when an earlier attempt may have started.
    pub fn put_back(&self, order: &Order, receive: u32, sent_at: Option<Timestamp>) -> Option<Record> {
        let fence = Fence { dispatch: order.dispatch, receive };
        let is_unstarted = self.decide(order, receive, sent_at) == Decision::Start;
        is_unstarted.then(|| Record::PutBack { job: order.job.clone(), fence, sent_at })
    }

    /// Returns the delivery before the delivery `receive`, if only one thing prevents the start of the job: this
    /// journal does not have all earlier deliveries, and another machine may have received them and started the job.
    /// Returns `None` in all other cases.
    pub fn unseen(&self, order: &Order, receive: u32, sent_at: Option<Timestamp>) -> Option<Fence> {
        let entry = self.jobs.get(&order.job).filter(|entry| entry.dispatch == order.dispatch);
        let only_put_back = entry.is_none_or(|entry| matches!(entry.phase, Phase::PutBack { .. }));
        let unseen = only_put_back && self.decide(order, receive, sent_at) == Decision::Interrupted;
        unseen.then(|| Fence { dispatch: order.dispatch, receive: receive.saturating_sub(1) })
    }

    /// Returns whether this machine has already decided about this dispatch of the job, or about a later one. An order
    /// that was put back does not count.
    pub fn knows(&self, order: &Order) -> bool {
        let entry = self.jobs.get(&order.job).filter(|entry| entry.dispatch >= order.dispatch);
        entry.is_some_and(|entry| !matches!(entry.phase, Phase::PutBack { .. }))
    }

    /// Returns whether this order was given back for good ([`Record::given_back`]), and no later one has come.
    pub fn is_given_back(&self, order: &Order) -> bool {
        let given_back = Phase::PutBack { fence: after(order), sent_at: None };
        self.jobs.get(&order.job).is_some_and(|entry| entry.phase == given_back)
    }

    /// Returns whether this machine has started this attempt at a job, or a later one.
    pub fn has_attempted(&self, job: &JobId, fence: Fence) -> bool {
        match self.jobs.get(job).map(|entry| &entry.phase) {
            Some(Phase::Started { fence: own } | Phase::Finished { fence: own, .. }) => *own >= fence,
            Some(Phase::Accepted | Phase::PutBack { .. }) | None => false,
        }
    }

    /// Returns the attempt that ended a job, if it ended on this machine.
    pub fn ended_by(&self, job: &JobId) -> Option<Fence> {
        match self.jobs.get(job)?.phase {
            Phase::Finished { fence, .. } => Some(fence),
            Phase::Accepted | Phase::PutBack { .. } | Phase::Started { .. } => None,
        }
    }

    /// Returns whether the control plane has cancelled this delivery of a job.
    pub fn is_cancelled(&self, job: &JobId, dispatch: u32, receive: u32) -> bool {
        [None, Some(receive)].into_iter().any(|receive| self.cancels.contains_key(&(job.clone(), dispatch, receive)))
    }

    /// Applies one record.
    pub fn apply(&mut self, record: Record) {
        self.age += 1;
        let age = self.age;
        match record {
            Record::Accepted { group, serial, job, dispatch } => {
                let head = Head { serial, job: job.clone(), dispatch };
                let known = self.groups.entry(group).or_insert_with(|| head.clone());
                if (known.serial, known.dispatch) < (serial, dispatch) {
                    *known = head;
                }
                if self.jobs.get(&job).is_none_or(|entry| entry.dispatch < dispatch) {
                    self.jobs.insert(job, Entry { dispatch, phase: Phase::Accepted, age });
                }
            }
            Record::PutBack { job, fence, sent_at } => {
                let phase = Phase::PutBack { fence, sent_at };
                self.jobs.insert(job, Entry { dispatch: fence.dispatch, phase, age });
            }
            Record::Started { job, fence } => {
                self.jobs.insert(job, Entry { dispatch: fence.dispatch, phase: Phase::Started { fence }, age });
            }
            Record::Finished { job, fence, outcome } => {
                let phase = Phase::Finished { fence, outcome };
                self.jobs.insert(job, Entry { dispatch: fence.dispatch, phase, age });
            }
            Record::Cancelled { job, dispatch, receive } => {
                self.cancels.insert((job, dispatch, receive), age);
            }
        }
    }

    /// Returns the smallest list of records that describes this state, without entries that are too old to matter.
    pub fn to_records(&self) -> Vec<Record> {
        let mut records: Vec<(u64, Record)> = Vec::new();
        let oldest_job = oldest_kept(self.jobs.values().map(|entry| entry.age));
        let newest: BTreeSet<&JobId> = self.groups.values().map(|head| &head.job).collect();
        let is_kept = |job: &JobId, entry: &Entry| entry.age >= oldest_job || newest.contains(job);
        for (job, entry) in self.jobs.iter().filter(|(job, entry)| is_kept(job, entry)) {
            let job = job.clone();
            match &entry.phase {
                Phase::Accepted => {}
                Phase::PutBack { fence, sent_at } => {
                    records.push((entry.age, Record::PutBack { job, fence: *fence, sent_at: *sent_at }));
                }
                Phase::Started { fence } => records.push((entry.age, Record::Started { job, fence: *fence })),
                Phase::Finished { fence, outcome } => {
                    records.push((entry.age, Record::Finished { job, fence: *fence, outcome: outcome.clone() }));
                }
            }
        }
        let oldest_cancel = oldest_kept(self.cancels.values().copied());
        for ((job, dispatch, receive), age) in self.cancels.iter().filter(|(_, age)| **age >= oldest_cancel) {
            let (job, dispatch, receive) = (job.clone(), *dispatch, *receive);
            records.push((*age, Record::Cancelled { job, dispatch, receive }));
        }
        records.sort_by_key(|(age, _)| *age);
        let heads = self.groups.iter().map(|(group, head)| Record::Accepted {
            group: group.clone(),
            serial: head.serial,
            job: head.job.clone(),
            dispatch: head.dispatch,
        });
        records.into_iter().map(|(_, record)| record).chain(heads).collect()
    }
}

impl Head {
    fn excludes(&self, order: &Order) -> Option<Accepted> {
        if order.serial < self.serial {
            return Some(Accepted::HigherSerial(self.serial));
        }
        let is_other_job = order.serial == self.serial && order.job != self.job;
        let is_later = order.serial == self.serial && order.dispatch < self.dispatch;
        match (is_other_job, is_later) {
            (true, _) => Some(Accepted::OtherJob(self.job.clone())),
            (false, true) => Some(Accepted::LaterDispatch(self.dispatch)),
            (false, false) => None,
        }
    }
}

impl Record {
    /// Returns the record of a cancel.
    pub fn cancelled(cancel: &Cancel) -> Self {
        Self::Cancelled { job: cancel.job.clone(), dispatch: cancel.dispatch, receive: cancel.receive }
    }

    /// Returns the record that no attempt of `order` may start any more, since the control plane orders its work again:
    /// the next order of the job counts as put back before its first delivery.
    pub fn given_back(order: &Order) -> Self {
        Self::PutBack { job: order.job.clone(), fence: after(order), sent_at: None }
    }

    /// Returns the record that makes `order` the newest of its group.
    pub fn accepted(order: &Order) -> Self {
        Self::Accepted {
            group: order.group.clone(),
            serial: order.serial,
            job: order.job.clone(),
            dispatch: order.dispatch,
        }
    }
}

/// Returns the fence just below that of the first delivery of the job's next order, which comes after `order`.
const fn after(order: &Order) -> Fence {
    Fence { dispatch: order.dispatch.saturating_add(1), receive: 0 }
}

fn oldest_kept(ages: impl Iterator<Item = u64>) -> u64 {
    let mut ages: Vec<u64> = ages.collect();
    ages.sort_unstable_by(|a, b| b.cmp(a));
    ages.get(REMEMBERED).map_or(0, |age| age + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{job_id, order};

    fn state(records: impl IntoIterator<Item = Record>) -> State {
        let mut state = State::default();
        for record in records {
            state.apply(record);
        }
        state
    }

    fn replayed(state: &State, order: &Order) -> Option<Accepted> {
        match state.decide(order, 1, None) {
            Decision::Replayed { accepted } => Some(accepted),
            _ => None,
        }
    }

    fn fence(dispatch: u32, receive: u32) -> Fence {
        Fence { dispatch, receive }
    }

    #[test]
    fn a_first_delivery_starts() {
        assert_eq!(State::default().decide(&order(1, 7), 1, None), Decision::Start);
    }

    #[test]
    fn an_order_older_than_its_group_is_a_replay_and_the_same_one_is_not() {
        let state = state([Record::accepted(&order(2, 7))]);
        let mut other_group = order(1, 3);
        other_group.group = "component:other".parse().unwrap();

        assert_eq!(replayed(&state, &order(1, 6)), Some(Accepted::HigherSerial(7)));
        assert_eq!(replayed(&state, &order(3, 7)), Some(Accepted::OtherJob(job_id(2))));
        assert_eq!(state.decide(&order(2, 7), 1, None), Decision::Start);
        assert_eq!(state.decide(&order(3, 8), 1, None), Decision::Start);
        assert_eq!(state.decide(&other_group, 1, None), Decision::Start);
    }

    #[test]
    fn a_redelivery_after_a_start_means_what_the_kind_says() {
        let state = state([Record::accepted(&order(1, 7)), Record::Started { job: job_id(1), fence: fence(1, 1) }]);
        let mut action = order(1, 7);
        action.redelivery = Redelivery::Interrupted;

        assert_eq!(state.decide(&order(1, 7), 2, None), Decision::Resume);
        assert_eq!(state.decide(&action, 2, None), Decision::Interrupted);
    }

    #[test]
    fn a_redelivery_that_this_journal_never_saw_is_not_taken_for_a_first_delivery() {
        let mut action = order(1, 7);
        action.redelivery = Redelivery::Interrupted;

        assert_eq!(State::default().decide(&action, 2, None), Decision::Interrupted);
        assert_eq!(State::default().decide(&order(1, 7), 2, None), Decision::Resume);
    }

    #[test]
    fn a_finished_job_is_reported_again_and_a_new_dispatch_of_it_starts() {
        let outcome = Outcome::Failed { reason: "no".into(), partial: false };
        let state = state([
            Record::accepted(&order(1, 7)),
            Record::Started { job: job_id(1), fence: fence(1, 1) },
            Record::Finished { job: job_id(1), fence: fence(1, 1), outcome: outcome.clone() },
        ]);
        let mut next = order(1, 7);
        next.dispatch = 2;

        assert_eq!(state.decide(&order(1, 7), 2, None), Decision::Again(outcome));
        assert_eq!((state.ended_by(&job_id(1)), state.ended_by(&job_id(2))), (Some(fence(1, 1)), None));
        assert_eq!(state.decide(&next, 1, None), Decision::Start);
    }

    #[test]
    fn a_machine_has_attempted_what_it_started_and_nothing_later() {
        let state = state([Record::Started { job: job_id(1), fence: fence(2, 3) }]);
        let attempted = |job, (dispatch, receive)| state.has_attempted(&job_id(job), fence(dispatch, receive));

        assert_eq!(
            [(1, 9), (2, 2), (2, 3), (2, 4), (3, 1)].map(|of| attempted(1, of)),
            [true, true, true, false, false]
        );
        assert!(!attempted(2, (1, 1)));
    }

    #[test]
    fn a_superseded_dispatch_is_a_replay() {
        let mut second = order(1, 7);
        second.dispatch = 2;
        let of_group = state([Record::accepted(&second)]);
        let mut of_job = state([Record::Started { job: job_id(1), fence: fence(2, 1) }]);

        let by_group = replayed(&of_group, &order(1, 7));
        let by_job = replayed(&of_job, &order(1, 7));
        of_job.apply(Record::accepted(&order(1, 7)));

        assert_eq!((by_group, by_job), (Some(Accepted::LaterDispatch(2)), Some(Accepted::LaterDispatch(2))));
        assert_eq!(replayed(&of_job, &order(1, 7)), Some(Accepted::LaterDispatch(2)));
    }

    #[test]
    fn the_refusal_of_a_replay_names_what_excludes_it() {
        let order = order(1, 7);

        let lines = [Accepted::HigherSerial(9), Accepted::OtherJob(job_id(2)), Accepted::LaterDispatch(2)]
            .map(|accepted| accepted.refusal(&order));

        let (group, job, other) = (&order.group, &order.job, job_id(2));
        assert_eq!(
            lines,
            [
                format!("the order has serial 7 of group `{group}`, and this runner has accepted the newer serial 9"),
                format!("the order has serial 7 of group `{group}`, which this runner has accepted for job `{other}`"),
                format!("the order is dispatch 1 of job `{job}`, and this runner has accepted dispatch 2 of it"),
            ]
        );
    }

    #[test]
    fn a_cancel_that_comes_first_keeps_the_order_from_starting() {
        let all = state([Record::Cancelled { job: job_id(1), dispatch: 1, receive: None }]);
        let second = state([Record::Cancelled { job: job_id(1), dispatch: 1, receive: Some(2) }]);
        let mut next = order(1, 7);
        next.dispatch = 2;

        assert_eq!(all.decide(&order(1, 7), 1, None), Decision::Cancelled);
        assert_eq!(all.decide(&next, 1, None), Decision::Start);
        assert_eq!(second.decide(&order(1, 7), 1, None), Decision::Start);
        assert_eq!(second.decide(&order(1, 7), 2, None), Decision::Cancelled);
    }

    #[test]
    fn old_jobs_are_forgotten_and_heads_are_not() {
        let mut all = State::default();
        for n in 0..1_500 {
            all.apply(Record::Started { job: job_id(n), fence: fence(1, 1) });
        }
        all.apply(Record::accepted(&order(9_999, 7)));

        let kept = state(all.to_records());

        assert_eq!(kept.jobs.len(), REMEMBERED);
        assert_eq!(replayed(&kept, &order(1, 6)), Some(Accepted::HigherSerial(7)));
    }

    /// Jobs without a group of their own here come after it, as health checks come after the deploy of a component.
    #[test]
    fn a_copy_of_the_newest_order_of_a_group_starts_nothing_however_many_jobs_came_after_it() {
        let newest = order(9_999, 7);
        let mut all = state([Record::accepted(&newest), finished(9_999)]);
        for n in 0..1_500 {
            all.apply(finished(n));
        }

        let kept = state(all.to_records());

        assert_eq!(kept.jobs.len(), REMEMBERED + 1);
        assert_eq!(kept.decide(&newest, 2, None), Decision::Again(Outcome::Cancelled));
    }

    fn finished(job: u32) -> Record {
        Record::Finished { job: job_id(job), fence: fence(1, 1), outcome: Outcome::Cancelled }
    }
}
