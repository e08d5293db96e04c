//! A job that waits for the approval of its plan. A plan is named by the attempt that made it, and both sides are asked.

use crate::bug::seeded;
use crate::job::{Answer, Control, Event, Fence, Job, JobState, Time, ended};
use crate::word::{Approved, Word};

impl Control {
    /// Returns what a word means for a job that does not wait for an approval.
    pub(crate) fn word_elsewhere(job: &Job, word: Word) -> Answer {
        match word {
            Word::Approve(plan) if job.approval == Some(plan) => Answer::Already,
            Word::Approve(_) | Word::Reject(_) => Answer::NotWaiting,
            Word::CustomerApproves(_) | Word::CustomerRejects(_) | Word::Proceed => Answer::Already,
        }
    }

    /// Returns what `event` makes of a job that waits for the approval of the plan `current`, which `runner` made.
    pub(crate) fn while_waiting_for_approval(
        &self,
        job: &Job,
        (current, runner, approved): (Fence, u8, Approved),
        event: &Event,
        time: Time,
    ) -> Answer {
        if let Some((fence, speaker)) = event.attempt() {
            if fence < current {
                return Answer::Stale;
            }
            if fence == current {
                return if speaker == runner { Answer::Already } else { Answer::Held };
            }
        }
        let changed = |state| Answer::Changed(Job { state, ..*job });
        let blocked = Answer::Changed(Job { state: JobState::Blocked { receive: current.receive }, ..*job });
        match *event {
            Event::Started { fence, seq, runner } | Event::Progress { fence, seq, runner } => {
                changed(JobState::Running { receive: fence.receive, runner, seq })
            }
            Event::Finished { fence, runner, outcome } => ended(job, fence, runner, outcome),
            Event::Cancel if job.cancel_requested => Answer::Already,
            Event::Cancel => Answer::Changed(Job { cancel_requested: true, ..*job }),
            Event::Expire | Event::Wait if job.cancel_requested => changed(JobState::Cancelled { unclaimed: false }),
            Event::Expire | Event::Wait if time.plan_over => blocked,
            Event::Expire | Event::Wait => Answer::NotYet,
            Event::Retry | Event::Resume => Answer::NotRetryable,
            Event::Returned { .. } | Event::Kept { .. } | Event::Closed { .. } | Event::Opened => Answer::Already,
            Event::Word(word) => self.word(job, (current, runner, approved), word, time),
        }
    }

    fn word(&self, job: &Job, (current, runner, approved): (Fence, u8, Approved), word: Word, time: Time) -> Answer {
        let is_other = |plan: Fence| plan != current && !seeded!(self.seed, ApprovalOfAnyPlan);
        let waiting = |approved| {
            let state = JobState::Approval { receive: current.receive, runner, approved };
            Answer::Changed(Job { state, ..*job })
        };
        let blocked = Answer::Changed(Job { state: JobState::Blocked { receive: current.receive }, ..*job });
        match word {
            Word::Approve(plan) | Word::Reject(plan) if is_other(plan) => Answer::OtherPlan,
            Word::CustomerApproves(plan) | Word::CustomerRejects(plan) if is_other(plan) => Answer::Already,
            Word::Approve(_) if time.plan_expired && !seeded!(self.seed, ExpiredPlanApproved) => Answer::ExpiredPlan,
            Word::Approve(_) if approved.vendor => Answer::Already,
            Word::Approve(_) => waiting(Approved { vendor: true, ..approved }),
            Word::CustomerApproves(_) if approved.customer => Answer::Already,
            Word::CustomerApproves(_) => waiting(Approved { customer: true, ..approved }),
            Word::Reject(_) | Word::CustomerRejects(_) if seeded!(self.seed, RejectionIgnored) => Answer::Already,
            Word::Reject(_) | Word::CustomerRejects(_) => blocked,
            Word::Proceed => {
                let both = approved.vendor && approved.customer;
                let one = approved.vendor || approved.customer;
                let enough = if seeded!(self.seed, OneApprovalSuffices) { one } else { both };
                let cancelled = job.cancel_requested && !seeded!(self.seed, CancelledIsApproved);
                if !enough || cancelled {
                    return Answer::Already;
                }
                Answer::Changed(Job {
                    dispatch: job.dispatch + 1,
                    returned: job.returned + 1,
                    approval: Some(current),
                    state: JobState::Queued,
                    ..*job
                })
            }
        }
    }
}
