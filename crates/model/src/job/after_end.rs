//! What events make of a job that has ended, or whose end is not known.

use crate::bug::seeded;
use crate::job::{Answer, Control, Event, Fence, Job, JobState, Time, ended};

impl Control {
    /// The reports of a lost job count as before, but it does not run again.
    pub(crate) fn when_lost(&self, job: &Job, last: Option<(u8, u8)>, event: &Event) -> Answer {
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
            Event::Finished { fence, runner, outcome } => ended(job, fence, runner, outcome),
            Event::Returned { .. }
            | Event::Kept { .. }
            | Event::Closed { .. }
            | Event::Opened
            | Event::Cancel
            | Event::Expire
            | Event::Wait => Answer::Already,
            Event::Word(word) => Self::word_elsewhere(job, word),
            Event::Retry if !job.is_retryable() => Answer::NotRetryable,
            Event::Retry => self.retry(job),
            Event::Resume => self.resume(job),
        }
    }

    pub(crate) fn when_ended(&self, job: &Job, event: &Event, time: Time) -> Answer {
        match *event {
            Event::Returned { fence, .. } if seeded!(self.seed, ReturnOverridesEnd) => {
                self.order_again(job, fence, time)
            }
            Event::Started { fence, .. }
            | Event::Progress { fence, .. }
            | Event::Finished { fence, .. }
            | Event::Returned { fence, .. }
            | Event::Kept { fence, .. } => {
                if seeded!(self.seed, EndDoesNotAbsorb) {
                    return self.while_open(job, event, time);
                }
                if job.receive() == Some(fence.receive) { Answer::Already } else { Answer::Ended }
            }
            Event::Closed { .. } | Event::Opened | Event::Cancel | Event::Expire | Event::Wait => Answer::Already,
            Event::Word(word) => Self::word_elsewhere(job, word),
            Event::Retry if !job.is_retryable() => Answer::NotRetryable,
            Event::Retry => self.retry(job),
            Event::Resume if !job.is_resumable() => Answer::NotRetryable,
            Event::Resume => self.resume(job),
        }
    }
}
