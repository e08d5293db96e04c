//! The job aggregate, small enough to be hashed millions of times; a test holds it equal to the real one.

mod after_end;
mod approval;

use crate::bug::{Seed, seeded};
pub use crate::fence::Fence;
pub use crate::time::Time;
use crate::word::{Approved, Word};

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    Succeeded,
    Failed,
    Blocked,
    Interrupted,
    Cancelled,
    NeedsApproval,
}

/// A job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Job {
    /// The dispatch that counts now.
    pub dispatch: u8,
    pub cancel_requested: bool,
    /// How many of its orders a runner gave back.
    pub returned: u8,
    /// How many dispatches, without those that were given back, it had when its workflow was last continued.
    pub earlier: u8,
    /// The attempt whose plan the present order applies.
    pub approval: Option<Fence>,
    pub state: JobState,
}

/// Where a job stands; `receive` is the second half of the fence that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobState {
    Queued,
    Running {
        receive: u8,
        runner: u8,
        seq: u8,
    },
    /// The order has expired, and the runner is away; with the receive count and the runner of the attempt that spoke last.
    Waiting {
        last: Option<(u8, u8)>,
    },
    /// The customer lets no change start now.
    OutsideWindow,
    /// People have to approve the plan that an attempt made.
    Approval {
        receive: u8,
        runner: u8,
        approved: Approved,
    },
    Succeeded {
        receive: u8,
    },
    Failed {
        receive: u8,
    },
    Blocked {
        receive: u8,
    },
    Interrupted {
        receive: u8,
    },
    /// With the receive count and the runner of the attempt that spoke last, if one has.
    Lost {
        last: Option<(u8, u8)>,
    },
    Cancelled {
        unclaimed: bool,
    },
}

/// Something that happens to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    Started {
        fence: Fence,
        seq: u8,
        runner: u8,
    },
    Progress {
        fence: Fence,
        seq: u8,
        runner: u8,
    },
    Finished {
        fence: Fence,
        runner: u8,
        outcome: Outcome,
    },
    /// A runner gave the expired order back.
    Returned {
        fence: Fence,
        runner: u8,
    },
    /// A runner gave the order back, since the customer lets no change start now.
    Kept {
        fence: Fence,
        runner: u8,
    },
    /// The control plane does not send the order of this dispatch, since the customer lets no change start now.
    Closed {
        dispatch: u8,
    },
    /// Changes may start.
    Opened,
    Cancel,
    /// Time has passed, and the runner is there.
    Expire,
    /// Time has passed, and the runner is away.
    Wait,
    Retry,
    /// A person continues the workflow that the job had ended.
    Resume,
    /// Somebody says something about a plan.
    Word(Word),
}

/// What an event makes of a job; the refusals have the real aggregate's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use]
pub enum Answer {
    Changed(Job),
    Already,
    NotYet,
    Stale,
    Held,
    Ended,
    NeverDispatched,
    Exhausted,
    NotRetryable,
    NotWaiting,
    OtherPlan,
    ExpiredPlan,
}

impl Event {
    /// Returns the attempt that speaks, and its runner.
    pub const fn attempt(&self) -> Option<(Fence, u8)> {
        match *self {
            Self::Started { fence, runner, .. }
            | Self::Progress { fence, runner, .. }
            | Self::Finished { fence, runner, .. }
            | Self::Returned { fence, runner }
            | Self::Kept { fence, runner } => Some((fence, runner)),
            Self::Closed { .. }
            | Self::Opened
            | Self::Cancel
            | Self::Expire
            | Self::Wait
            | Self::Retry
            | Self::Resume
            | Self::Word(_) => None,
        }
    }
}

impl Default for Job {
    fn default() -> Self {
        Self { dispatch: 1, cancel_requested: false, returned: 0, earlier: 0, approval: None, state: JobState::Queued }
    }
}

impl Job {
    /// Returns how many dispatches count against the maximum.
    pub const fn tries(&self) -> u8 {
        self.dispatch.saturating_sub(self.returned).saturating_sub(self.earlier)
    }

    /// Returns whether the job has ended.
    pub const fn has_ended(&self) -> bool {
        !matches!(
            self.state,
            JobState::Queued
                | JobState::Running { .. }
                | JobState::Waiting { .. }
                | JobState::OutsideWindow
                | JobState::Approval { .. }
        )
    }

    /// Returns whether the job ended in a way that allows another dispatch.
    pub const fn is_retryable(&self) -> bool {
        matches!(self.state, JobState::Failed { .. } | JobState::Interrupted { .. } | JobState::Lost { .. })
    }

    /// Returns whether a person may let the job run again: it ended without success.
    pub const fn is_resumable(&self) -> bool {
        self.is_retryable() || matches!(self.state, JobState::Blocked { .. } | JobState::Cancelled { .. })
    }

    /// Returns whether the job ended without a report of its end, which may still come.
    pub const fn is_lost(&self) -> bool {
        matches!(self.state, JobState::Lost { .. } | JobState::Cancelled { unclaimed: true })
    }

    /// Returns the receive count and the runner of the attempt that spoke last, while no end is reported.
    pub const fn last(&self) -> Option<(u8, u8)> {
        match self.state {
            JobState::Running { receive, runner, .. } => Some((receive, runner)),
            JobState::Waiting { last } | JobState::Lost { last } => last,
            JobState::Queued
            | JobState::OutsideWindow
            | JobState::Approval { .. }
            | JobState::Succeeded { .. }
            | JobState::Failed { .. }
            | JobState::Blocked { .. }
            | JobState::Interrupted { .. }
            | JobState::Cancelled { .. } => None,
        }
    }

    /// Returns the receive count of the fence that counts, if an attempt has spoken.
    pub const fn receive(&self) -> Option<u8> {
        match self.state {
            JobState::Waiting { last: Some((receive, _)) } => Some(receive),
            JobState::Queued
            | JobState::OutsideWindow
            | JobState::Waiting { last: None }
            | JobState::Lost { .. }
            | JobState::Cancelled { .. } => None,
            JobState::Running { receive, .. }
            | JobState::Approval { receive, .. }
            | JobState::Succeeded { receive }
            | JobState::Failed { receive }
            | JobState::Blocked { receive }
            | JobState::Interrupted { receive } => Some(receive),
        }
    }
}

/// What the control plane decides by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Control {
    pub max_dispatches: u8,
    pub seed: Seed,
}

impl Control {
    /// Returns what `event` makes of `job` at this time.
    pub fn on(&self, job: &Job, event: &Event, time: Time) -> Answer {
        if let Some((fence, _)) = event.attempt() {
            if fence.dispatch > job.dispatch {
                return Answer::NeverDispatched;
            }
            let is_return = matches!(event, Event::Returned { .. });
            let excused = match is_return {
                true => seeded!(self.seed, StaleReturnCounts),
                false => seeded!(self.seed, OldDispatchAccepted),
            };
            if fence.dispatch < job.dispatch && !excused {
                return Answer::Stale;
            }
        }
        if let (Event::Word(word), false) = (event, matches!(job.state, JobState::Approval { .. })) {
            return Self::word_elsewhere(job, *word);
        }
        match job.state {
            JobState::Queued => self.while_open(job, event, time),
            JobState::Running { receive, runner, seq } => {
                let current = Fence { dispatch: job.dispatch, receive };
                self.refuse_attempt(current, runner, seq, event).unwrap_or_else(|| self.while_open(job, event, time))
            }
            JobState::Waiting { last } => self.while_waiting(job, last, event, time),
            JobState::OutsideWindow => self.while_outside_window(job, event, time),
            JobState::Approval { receive, runner, approved } => {
                let current = Fence { dispatch: job.dispatch, receive };
                self.while_waiting_for_approval(job, (current, runner, approved), event, time)
            }
            JobState::Lost { last } if !seeded!(self.seed, LateOutcomeDropped) => self.when_lost(job, last, event),
            JobState::Cancelled { unclaimed: true } if !seeded!(self.seed, LateOutcomeDropped) => {
                self.when_lost(job, None, event)
            }
            JobState::Succeeded { .. }
            | JobState::Failed { .. }
            | JobState::Blocked { .. }
            | JobState::Interrupted { .. }
            | JobState::Lost { .. }
            | JobState::Cancelled { .. } => self.when_ended(job, event, time),
        }
    }

    fn refuse_attempt(&self, current: Fence, holder: u8, last_seq: u8, event: &Event) -> Option<Answer> {
        let (fence, runner) = event.attempt()?;
        if fence < current && !seeded!(self.seed, FenceNotCompared) {
            return Some(Answer::Stale);
        }
        if fence == current && runner != holder && !seeded!(self.seed, EqualFenceSecondWins) {
            return Some(Answer::Held);
        }
        match *event {
            Event::Started { seq, .. } | Event::Progress { seq, .. }
                if fence == current && seq <= last_seq && !seeded!(self.seed, SequenceIgnored) =>
            {
                Some(Answer::Already)
            }
            Event::Returned { .. } | Event::Kept { .. } if fence == current => Some(Answer::Already),
            Event::Started { .. }
            | Event::Progress { .. }
            | Event::Finished { .. }
            | Event::Returned { .. }
            | Event::Kept { .. }
            | Event::Closed { .. }
            | Event::Opened
            | Event::Cancel
            | Event::Expire
            | Event::Wait
            | Event::Retry
            | Event::Resume
            | Event::Word(_) => None,
        }
    }

    pub(crate) fn while_open(&self, job: &Job, event: &Event, time: Time) -> Answer {
        let changed = |state| Answer::Changed(Job { state, ..*job });
        match *event {
            Event::Started { fence, seq, runner } | Event::Progress { fence, seq, runner } => {
                changed(JobState::Running { receive: fence.receive, runner, seq })
            }
            Event::Finished { fence, runner, outcome } => ended(job, fence, runner, outcome),
            Event::Cancel if job.cancel_requested => Answer::Already,
            Event::Cancel => {
                let ends = seeded!(self.seed, CancelEndsQueued) && job.state == JobState::Queued;
                let state = if ends { JobState::Cancelled { unclaimed: false } } else { job.state };
                Answer::Changed(Job { cancel_requested: true, state, ..*job })
            }
            Event::Returned { fence, .. } => self.order_again(job, fence, time),
            Event::Kept { fence, .. } => keep(job, fence),
            Event::Closed { dispatch } if job.state == JobState::Queued && dispatch == job.dispatch => {
                changed(JobState::OutsideWindow)
            }
            Event::Closed { .. } | Event::Opened => Answer::Already,
            Event::Expire => self.expire(job, time),
            Event::Wait => self.wait(job, time),
            Event::Word(word) => Self::word_elsewhere(job, word),
            Event::Retry if seeded!(self.seed, RetryBeforeEnd) => self.retry(job),
            Event::Resume if seeded!(self.seed, ResumeBeforeEnd) => self.resume(job),
            Event::Retry | Event::Resume => Answer::NotRetryable,
        }
    }

    /// The reports of a job that waits count as before.
    fn while_waiting(&self, job: &Job, last: Option<(u8, u8)>, event: &Event, time: Time) -> Answer {
        let changed = |state| Answer::Changed(Job { state, ..*job });
        if let (Some((receive, runner)), Some((fence, speaker))) = (last, event.attempt()) {
            let current = Fence { dispatch: job.dispatch, receive };
            if fence < current {
                return Answer::Stale;
            }
            if fence == current && speaker != runner {
                return Answer::Held;
            }
        }
        let of_last = |fence: Fence| last.is_some_and(|(receive, _)| receive == fence.receive);
        match *event {
            Event::Started { fence, .. }
            | Event::Progress { fence, .. }
            | Event::Returned { fence, .. }
            | Event::Kept { fence, .. }
                if of_last(fence) =>
            {
                Answer::Already
            }
            Event::Started { fence, runner, .. } | Event::Progress { fence, runner, .. } => {
                changed(JobState::Waiting { last: Some((fence.receive, runner)) })
            }
            Event::Finished { .. } if seeded!(self.seed, WaitingIgnoresOutcome) => Answer::Ended,
            Event::Finished { fence, runner, outcome } => ended(job, fence, runner, outcome),
            Event::Returned { fence, .. } => self.order_again(job, fence, time),
            Event::Kept { fence, .. } => keep(job, fence),
            Event::Closed { .. } | Event::Opened => Answer::Already,
            Event::Cancel if job.cancel_requested => Answer::Already,
            Event::Cancel => Answer::Changed(Job { cancel_requested: true, ..*job }),
            Event::Expire => self.expire(job, time),
            Event::Wait if job.cancel_requested || time.waited => self.expire(job, time),
            Event::Wait => Answer::NotYet,
            Event::Word(word) => Self::word_elsewhere(job, word),
            Event::Retry | Event::Resume => Answer::NotRetryable,
        }
    }

    /// No order is in the queue, unless the window closed while one was being sent: then the runner's word counts.
    fn while_outside_window(&self, job: &Job, event: &Event, time: Time) -> Answer {
        match *event {
            Event::Expire | Event::Wait if job.cancel_requested => {
                Answer::Changed(Job { state: JobState::Cancelled { unclaimed: !time.begun }, ..*job })
            }
            Event::Expire | Event::Wait if time.closed_too_long => {
                Answer::Changed(Job { state: JobState::Failed { receive: 0 }, ..*job })
            }
            Event::Expire | Event::Wait => Answer::NotYet,
            Event::Opened if job.cancel_requested => Answer::Already,
            Event::Opened => Answer::Changed(Job { state: JobState::Queued, ..*job }),
            Event::Kept { .. } => Answer::Already,
            Event::Started { .. }
            | Event::Progress { .. }
            | Event::Finished { .. }
            | Event::Returned { .. }
            | Event::Closed { .. }
            | Event::Cancel
            | Event::Word(_)
            | Event::Retry
            | Event::Resume => self.while_open(job, event, time),
        }
    }

    /// Lets a job whose order has expired wait, unless somebody wants it cancelled or it has waited long enough.
    fn wait(&self, job: &Job, time: Time) -> Answer {
        if !time.outlived {
            return Answer::NotYet;
        }
        if job.cancel_requested || time.waited {
            return self.expire(job, time);
        }
        Answer::Changed(Job { state: JobState::Waiting { last: job.last() }, ..*job })
    }

    /// Orders the work again whose order came back, or ends a job that somebody wants cancelled.
    pub(crate) fn order_again(&self, job: &Job, fence: Fence, time: Time) -> Answer {
        if !time.too_late {
            return Answer::NotYet;
        }
        if job.cancel_requested && !seeded!(self.seed, CancelledIsOrderedAgain) {
            return Answer::Changed(Job { state: JobState::Cancelled { unclaimed: false }, ..*job });
        }
        let dispatch = if seeded!(self.seed, StaleReturnCounts) { job.dispatch } else { fence.dispatch } + 1;
        Answer::Changed(Job { dispatch, returned: job.returned + 1, state: JobState::Queued, ..*job })
    }

    fn expire(&self, job: &Job, time: Time) -> Answer {
        if !time.outlived && !seeded!(self.seed, LostBeforeExpiry) {
            return Answer::NotYet;
        }
        let last = job.last();
        let running = last.is_some();
        if matches!(job.state, JobState::Running { .. }) && seeded!(self.seed, RunningNeverExpires) {
            return Answer::Already;
        }
        let unclaimed = job.cancel_requested && !running;
        let state = if unclaimed { JobState::Cancelled { unclaimed } } else { JobState::Lost { last } };
        Answer::Changed(Job { state, ..*job })
    }

    pub(crate) fn retry(&self, job: &Job) -> Answer {
        if job.tries() >= self.max_dispatches && !seeded!(self.seed, RetriesUnbounded) {
            return Answer::Exhausted;
        }
        Answer::Changed(Job {
            dispatch: job.dispatch + 1,
            cancel_requested: false,
            approval: None,
            state: JobState::Queued,
            ..*job
        })
    }

    /// Queues a job again whose workflow was continued.
    pub(crate) fn resume(&self, job: &Job) -> Answer {
        let dispatch = if seeded!(self.seed, ResumeReusesDispatch) { job.dispatch } else { job.dispatch + 1 };
        let earlier = job.dispatch.saturating_sub(job.returned);
        let state = JobState::Queued;
        Answer::Changed(Job { dispatch, cancel_requested: false, earlier, approval: None, state, ..*job })
    }
}

/// Lets a job whose order a runner did not start wait for the customer's window, or ends it if somebody wants it cancelled.
const fn keep(job: &Job, fence: Fence) -> Answer {
    if job.cancel_requested {
        return Answer::Changed(Job { state: JobState::Cancelled { unclaimed: false }, ..*job });
    }
    let (dispatch, returned) = (fence.dispatch + 1, job.returned + 1);
    Answer::Changed(Job { dispatch, returned, state: JobState::OutsideWindow, ..*job })
}

/// Returns what the end of an attempt makes of a job. A job that is over does not wait for an approval.
pub(crate) fn ended(job: &Job, fence: Fence, runner: u8, outcome: Outcome) -> Answer {
    let receive = fence.receive;
    let (approval, state) = match outcome {
        Outcome::NeedsApproval if job.cancel_requested => (job.approval, JobState::Cancelled { unclaimed: false }),
        Outcome::NeedsApproval if job.has_ended() => (job.approval, JobState::Blocked { receive }),
        Outcome::NeedsApproval => (None, JobState::Approval { receive, runner, approved: Approved::default() }),
        Outcome::Succeeded => (job.approval, JobState::Succeeded { receive }),
        Outcome::Failed => (job.approval, JobState::Failed { receive }),
        Outcome::Blocked => (job.approval, JobState::Blocked { receive }),
        Outcome::Interrupted => (job.approval, JobState::Interrupted { receive }),
        Outcome::Cancelled => (job.approval, JobState::Cancelled { unclaimed: false }),
    };
    Answer::Changed(Job { approval, state, ..*job })
}
