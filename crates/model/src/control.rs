//! The control plane's steps: dispatch, reports, requests of users, and the sweep that ends jobs whose order has
//! expired.
//!
//! A step returns `None` when it cannot happen in this world.

use crate::bug::seeded;
use crate::job::{Answer, Event, Fence, Job, JobState};
use crate::protocol::Protocol;
use crate::report::{DISPATCHES, Report, Says};
use crate::rule::Rule;
use crate::runner::Attempt;
use crate::world::{Order, Place, World};

impl Protocol {
    /// Sends the order of the job's current dispatch.
    pub(crate) fn dispatch(&self, world: &mut World, j: usize) -> Option<()> {
        world.sent += 1;
        let (nth, dispatch) = (world.sent, world.jobs[j].job.dispatch);
        let made_for = if self.bounds.kept > 0 { world.speaker } else { 0 };
        let order = world.order_mut(j, dispatch);
        *order = Order { place: Place::Waiting, nth, made_for, ..*order };
        Some(())
    }

    /// Sends the current order once more, as after a lost answer. With one deduplication id per dispatch nothing
    /// comes of it.
    pub(crate) fn send_again(&self, world: &mut World, j: usize) -> Option<()> {
        let dispatch = world.jobs[j].job.dispatch;
        let order = world.order_mut(j, dispatch);
        let in_queue = matches!(order.place, Place::Waiting | Place::InFlight { .. });
        (seeded!(self.bounds.seed, DeduplicationIgnored) && in_queue && order.copies == 0).then(|| order.copies = 1)
    }

    /// Handles one report; its acknowledgement may be lost, so that it comes again.
    pub(crate) fn deliver(&self, world: &mut World, j: usize, report: Report, acknowledged: bool) -> Option<()> {
        if acknowledged {
            world.jobs[j].reports.remove(report);
        } else {
            world.spent.acks += 1;
        }
        if report.runner != world.speaker && !seeded!(self.bounds.seed, RetiredKeyAccepted) {
            return Some(());
        }
        let before = world.jobs[j].job;
        let answer = self.take(world, j, report.event());
        match answer {
            Answer::Changed(after) => {
                world.watch_report(before, after, report);
                if after.dispatch > before.dispatch {
                    world.watch(Rule::NoOrderAfterCancel, before.cancel_requested);
                    world.ordered_again(j, before);
                }
            }
            Answer::Stale | Answer::Held | Answer::Ended => {
                let lost = matches!(report.says, Says::Finished(_))
                    && answer == Answer::Ended
                    && !world.jobs[j].ended_by_report;
                world.watch(Rule::NoOutcomeLost, lost);
                world.tell_to_stop(j, report);
            }
            Answer::Already
            | Answer::NotYet
            | Answer::NeverDispatched
            | Answer::Exhausted
            | Answer::NotRetryable
            | Answer::NotWaiting
            | Answer::OtherPlan
            | Answer::ExpiredPlan => {}
        }
        Some(())
    }

    /// Loses a report that was acknowledged before its change was committed.
    pub(crate) fn handler_dies(&self, world: &mut World, j: usize, report: Report) -> Option<()> {
        (seeded!(self.bounds.seed, AcknowledgedBeforeCommit)).then(|| world.jobs[j].reports.remove(report))
    }

    /// Accepts the second runner's hello.
    pub(crate) fn enrol(world: &mut World) -> Option<()> {
        (world.speaker == 0 && world.runners[1].is_up()).then(|| world.speaker = 1)
    }

    /// Takes someone's wish to cancel, and passes it on.
    pub(crate) fn cancel(&self, world: &mut World, j: usize) -> Option<()> {
        world.spent.cancels += 1;
        let Answer::Changed(after) = self.take(world, j, Event::Cancel) else { return None };
        world.watch(Rule::CancelAsksOnly, after.has_ended());
        world.jobs[j].cancel = after.dispatch;
        Some(())
    }

    /// Dispatches a job again that ended badly: a retry, or a person who resumes its workflow.
    pub(crate) fn retry(&self, world: &mut World, j: usize, again: Event) -> Option<()> {
        let before = world.jobs[j].job;
        let Answer::Changed(after) = self.take(world, j, again) else { return None };
        world.watch(Rule::DispatchFollowsEnd, !before.has_ended());
        // People may resume a workflow more often; here, the world has no place for more dispatches.
        let is_retry = again == Event::Retry;
        world.watch(Rule::AttemptsAreBounded, is_retry && after.tries() > self.bounds.dispatches);
        if usize::from(after.dispatch) > DISPATCHES {
            world.jobs[j].job = before;
            return Some(());
        }
        world.jobs[j].dispatched(after.dispatch);
        world.jobs[j].waited = false;
        Some(())
    }

    /// Ends the job if it outlived its order, and its runner must have received the order: it is not in the queue.
    pub(crate) fn sweep(&self, world: &mut World, j: usize) -> Option<()> {
        let before = world.jobs[j].job;
        let is_gone = world.order(j, before.dispatch).place == Place::Gone;
        if !is_gone && !seeded!(self.bounds.seed, LostWhileItWaits) {
            return None;
        }
        // What the runner reported about its order has had hours to arrive, unless one of the late reports is it.
        if world.will_hear_of(j) && (self.bounds.waits || world.spent.lates == 0) {
            return None;
        }
        let Answer::Changed(_) = self.take(world, j, Event::Expire) else { return None };
        world.watch_given_up(j, before, false);
        Some(())
    }

    /// Lets the job wait for its runner past the expiry of its order, or ends it when it has waited long enough.
    pub(crate) fn wait(&self, world: &mut World, j: usize) -> Option<()> {
        let before = world.jobs[j].job;
        if !self.bounds.waits {
            return None;
        }
        let Answer::Changed(after) = self.take(world, j, Event::Wait) else { return None };
        if after.has_ended() {
            // The runner may be back at this moment. What it reports then still counts.
            world.watch_given_up(j, before, true);
        } else {
            world.watch_outlived(j, before);
        }
        Some(())
    }

    /// Lets the time pass for which a job waits.
    pub(crate) fn wait_ends(&self, world: &mut World, j: usize) -> Option<()> {
        let part = &world.jobs[j];
        let can_end = self.bounds.waits && part.outlived && !part.waited && !part.job.has_ended();
        can_end.then(|| world.jobs[j].waited = true)
    }

    /// Lets an order's `not_after` pass. A runner ends its attempt before, so none works then.
    pub(crate) fn order_expires(&self, world: &mut World, j: usize, dispatch: u8) -> Option<()> {
        let earlier = (1..dispatch).all(|earlier| world.order(j, earlier).expired);
        let stopped = !world.is_worked_on(j, dispatch) || seeded!(self.bounds.seed, RunsPastExpiry);
        (earlier && stopped).then(|| world.order_mut(j, dispatch).expired = true)
    }

    /// Lets the grace after the expiry pass: time enough for every report, unless one is very late.
    pub(crate) fn grace_ends(&self, world: &mut World, j: usize) -> Option<()> {
        let part = &world.jobs[j];
        let dispatch = part.job.dispatch;
        let in_hand = world.attempts(j, dispatch).any(|(_, attempt)| matches!(attempt, Attempt::Ready { .. }));
        if part.outlived || part.job.has_ended() || in_hand || !world.order(j, dispatch).expired {
            return None;
        }
        if world.will_hear_of(j) {
            if world.spent.lates == self.bounds.lates {
                return None;
            }
            world.spent.lates += 1;
        }
        world.jobs[j].outlived = true;
        Some(())
    }

    /// Lets the aggregate decide, and keeps what it says.
    fn take(&self, world: &mut World, j: usize, event: Event) -> Answer {
        let time = world.time(j);
        let part = &mut world.jobs[j];
        let answer = self.control.on(&part.job, &event, time);
        if let Answer::Changed(after) = answer {
            part.ended_by_report |= event.attempt().is_some() && after.has_ended() && !after.is_lost();
            part.job = after;
        }
        answer
    }
}

impl World {
    /// Watches a report change a job: it must be the newest, of the holder, from the runner that speaks.
    fn watch_report(&mut self, before: Job, after: Job, report: Report) {
        let Report { fence, runner, .. } = report;
        let receive = before.last().map_or(before.receive(), |(receive, _)| Some(receive)).unwrap_or(0);
        let current = Fence { dispatch: before.dispatch, receive };
        let repeated = match before.state {
            JobState::Running { runner: holder, seq, .. } if fence == current => match report.event() {
                Event::Started { seq: reported, .. } | Event::Progress { seq: reported, .. } => {
                    reported <= seq || runner != holder
                }
                Event::Finished { .. } => runner != holder,
                Event::Returned { .. } | Event::Kept { .. } => true,
                Event::Closed { .. }
                | Event::Opened
                | Event::Cancel
                | Event::Expire
                | Event::Wait
                | Event::Retry
                | Event::Resume
                | Event::Word(_) => false,
            },
            _ => false,
        };
        self.watch(Rule::NoStaleReport, fence < current || repeated);
        self.watch(Rule::NoRetiredKey, runner != self.speaker);
        self.watch(Rule::EndAbsorbs, before.has_ended() && !before.is_lost() && before != after);
    }

    /// Begins a dispatch that follows from an order that came back.
    fn ordered_again(&mut self, j: usize, before: Job) {
        if usize::from(self.jobs[j].job.dispatch) > DISPATCHES {
            self.jobs[j].job = before;
            return;
        }
        let origin = self.jobs[j].origin[usize::from(before.dispatch) - 1];
        self.jobs[j].dispatched(origin);
    }

    /// Sends word to an attempt that has lost; one that is over would ignore it.
    fn tell_to_stop(&mut self, j: usize, report: Report) {
        let runner = &mut self.runners[usize::from(report.runner)];
        if matches!(runner.attempts[j], Attempt::Working { fence, .. } if fence == report.fence) {
            runner.stop[j] = true;
        }
    }
}
