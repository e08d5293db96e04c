//! The job aggregate, small enough to be hashed millions of times; a test holds it equal to the real one.

use crate::bug::{Seed, seeded};

/// Which attempt speaks: compared as (dispatch, receive).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence {
    pub dispatch: u8,
    pub receive: u8,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    Succeeded,
    Failed,
    Blocked,
    Interrupted,
    Cancelled,
}

/// A job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Job {
    /// The dispatch that counts now.
    pub dispatch: u8,
    pub cancel_requested: bool,
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
    Started { fence: Fence, seq: u8, runner: u8 },
    Progress { fence: Fence, seq: u8, runner: u8 },
    Finished { fence: Fence, runner: u8, outcome: Outcome },
    Cancel,
    Expire,
    Retry,
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
}

impl Event {
    /// Returns the attempt that speaks, and its runner.
    pub const fn attempt(&self) -> Option<(Fence, u8)> {
        match *self {
            Self::Started { fence, runner, .. }
            | Self::Progress { fence, runner, .. }
            | Self::Finished { fence, runner, .. } => Some((fence, runner)),
            Self::Cancel | Self::Expire | Self::Retry => None,
        }
    }
}

impl Default for Job {
    fn default() -> Self {
        Self { dispatch: 1, cancel_requested: false, state: JobState::Queued }
    }
}

impl Job {
    /// Returns whether the job has ended.
    pub const fn has_ended(&self) -> bool {
        !matches!(self.state, JobState::Queued | JobState::Running { .. })
    }

    /// Returns whether the job ended in a way that allows another dispatch.
    pub const fn is_retryable(&self) -> bool {
        matches!(self.state, JobState::Failed { .. } | JobState::Interrupted { .. } | JobState::Lost { .. })
    }

    /// Returns whether the job ended without a report of its end, which may still come.
    pub const fn is_lost(&self) -> bool {
        matches!(self.state, JobState::Lost { .. } | JobState::Cancelled { unclaimed: true })
    }

    /// Returns the receive count and the runner of the attempt that spoke last, while no end is reported.
    pub const fn last(&self) -> Option<(u8, u8)> {
        match self.state {
            JobState::Running { receive, runner, .. } => Some((receive, runner)),
            JobState::Lost { last } => last,
            JobState::Queued
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
            JobState::Queued | JobState::Lost { .. } | JobState::Cancelled { .. } => None,
            JobState::Running { receive, .. }
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
    /// Returns what `event` makes of `job`; `outlived` says that its order has expired and the grace is over.
    pub fn on(&self, job: &Job, event: &Event, outlived: bool) -> Answer {
        if let Some((fence, _)) = event.attempt() {
            if fence.dispatch > job.dispatch {
                return Answer::NeverDispatched;
            }
            if fence.dispatch < job.dispatch && !seeded!(self.seed, OldDispatchAccepted) {
                return Answer::Stale;
            }
        }
        match job.state {
            JobState::Queued => self.while_open(job, event, outlived),
            JobState::Running { receive, runner, seq } => {
                let current = Fence { dispatch: job.dispatch, receive };
                self.refuse_attempt(current, runner, seq, event)
                    .unwrap_or_else(|| self.while_open(job, event, outlived))
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
            | JobState::Cancelled { .. } => self.when_ended(job, event, outlived),
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
            Event::Started { .. }
            | Event::Progress { .. }
            | Event::Finished { .. }
            | Event::Cancel
            | Event::Expire
            | Event::Retry => None,
        }
    }

    fn while_open(&self, job: &Job, event: &Event, outlived: bool) -> Answer {
        let changed = |state| Answer::Changed(Job { state, ..*job });
        match *event {
            Event::Started { fence, seq, runner } | Event::Progress { fence, seq, runner } => {
                changed(JobState::Running { receive: fence.receive, runner, seq })
            }
            Event::Finished { fence, outcome, .. } => changed(ended(fence.receive, outcome)),
            Event::Cancel if job.cancel_requested => Answer::Already,
            Event::Cancel => {
                let ends = seeded!(self.seed, CancelEndsQueued) && job.state == JobState::Queued;
                let state = if ends { JobState::Cancelled { unclaimed: false } } else { job.state };
                Answer::Changed(Job { cancel_requested: true, state, ..*job })
            }
            Event::Expire => self.expire(job, outlived),
            Event::Retry if seeded!(self.seed, RetryBeforeEnd) => self.retry(job),
            Event::Retry => Answer::NotRetryable,
        }
    }

    /// The reports of a lost job count as before, but it does not run again.
    fn when_lost(&self, job: &Job, last: Option<(u8, u8)>, event: &Event) -> Answer {
        let changed = |state| Answer::Changed(Job { state, ..*job });
        if let (Some((receive, runner)), Some((fence, speaker))) = (last, event.attempt()) {
            let current = Fence { dispatch: job.dispatch, receive };
            if fence < current && !seeded!(self.seed, FenceNotCompared) {
                return Answer::Stale;
            }
            if fence == current && speaker != runner && !seeded!(self.seed, EqualFenceSecondWins) {
                return Answer::Held;
            }
        }
        match *event {
            Event::Started { fence, .. } | Event::Progress { fence, .. }
                if last.is_some_and(|(receive, _)| receive == fence.receive) =>
            {
                Answer::Already
            }
            Event::Started { fence, runner, .. } | Event::Progress { fence, runner, .. } => {
                changed(JobState::Lost { last: Some((fence.receive, runner)) })
            }
            Event::Finished { fence, outcome, .. } => changed(ended(fence.receive, outcome)),
            Event::Cancel | Event::Expire => Answer::Already,
            Event::Retry if !job.is_retryable() => Answer::NotRetryable,
            Event::Retry => self.retry(job),
        }
    }

    fn when_ended(&self, job: &Job, event: &Event, outlived: bool) -> Answer {
        match *event {
            Event::Started { fence, .. } | Event::Progress { fence, .. } | Event::Finished { fence, .. } => {
                if seeded!(self.seed, EndDoesNotAbsorb) {
                    return self.while_open(job, event, outlived);
                }
                if job.receive() == Some(fence.receive) { Answer::Already } else { Answer::Ended }
            }
            Event::Cancel | Event::Expire => Answer::Already,
            Event::Retry if !job.is_retryable() => Answer::NotRetryable,
            Event::Retry => self.retry(job),
        }
    }

    fn expire(&self, job: &Job, outlived: bool) -> Answer {
        if !outlived && !seeded!(self.seed, LostBeforeExpiry) {
            return Answer::NotYet;
        }
        let running = matches!(job.state, JobState::Running { .. });
        let last = job.last();
        if running && seeded!(self.seed, RunningNeverExpires) {
            return Answer::Already;
        }
        let unclaimed = job.cancel_requested && !running;
        let state = if unclaimed { JobState::Cancelled { unclaimed } } else { JobState::Lost { last } };
        Answer::Changed(Job { state, ..*job })
    }

    fn retry(&self, job: &Job) -> Answer {
        if job.dispatch >= self.max_dispatches && !seeded!(self.seed, RetriesUnbounded) {
            return Answer::Exhausted;
        }
        Answer::Changed(Job { dispatch: job.dispatch + 1, cancel_requested: false, state: JobState::Queued })
    }
}

const fn ended(receive: u8, outcome: Outcome) -> JobState {
    match outcome {
        Outcome::Succeeded => JobState::Succeeded { receive },
        Outcome::Failed => JobState::Failed { receive },
        Outcome::Blocked => JobState::Blocked { receive },
        Outcome::Interrupted => JobState::Interrupted { receive },
        Outcome::Cancelled => JobState::Cancelled { unclaimed: false },
    }
}
