//! The control plane's steps: dispatch, reports, requests of users, and the sweep that ends jobs whose order has
//! expired.
//!
//! A step returns `None` when it cannot happen in this world.

use crate::bug::seeded;
use crate::job::{Answer, Event, Fence, Job, JobState};
use crate::protocol::Protocol;
use crate::report::{DISPATCHES, RUNNERS, Report, Says};
use crate::rule::Rule;
use crate::runner::Attempt;
use crate::world::{Order, Place, World};

impl Protocol {
    /// Sends the order of the job's current dispatch.
    pub(crate) fn dispatch(&self, world: &mut World, j: usize) -> Option<()> {
        world.sent += 1;
        let (nth, dispatch) = (world.sent, world.jobs[j].job.dispatch);
        let order = world.order_mut(j, dispatch);
        *order = Order { place: Place::Waiting, nth, ..*order };
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
            Answer::Changed(after) => world.watch_report(before, after, report),
            Answer::Stale | Answer::Held | Answer::Ended => {
                let lost = matches!(report.says, Says::Finished(_))
                    && answer == Answer::Ended
                    && !world.jobs[j].ended_by_report;
                world.watch(Rule::NoOutcomeLost, lost);
                world.tell_to_stop(j, report);
            }
            Answer::Already | Answer::NotYet | Answer::NeverDispatched | Answer::Exhausted | Answer::NotRetryable => {}
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

    /// Dispatches a job again that ended badly.
    pub(crate) fn retry(&self, world: &mut World, j: usize) -> Option<()> {
        let before = world.jobs[j].job;
        let Answer::Changed(after) = self.take(world, j, Event::Retry) else { return None };
        world.watch(Rule::DispatchFollowsEnd, !before.has_ended());
        world.watch(Rule::AttemptsAreBounded, after.dispatch > self.bounds.dispatches);
        if usize::from(after.dispatch) > DISPATCHES {
            world.jobs[j].job = before;
        }
        let part = &mut world.jobs[j];
        part.outlived = false;
        part.ended_by_report = false;
        part.ended_receive = [0; RUNNERS];
        Some(())
    }

    /// Ends the job if it outlived its order.
    pub(crate) fn sweep(&self, world: &mut World, j: usize) -> Option<()> {
        let before = world.jobs[j].job;
        let Answer::Changed(_) = self.take(world, j, Event::Expire) else { return None };
        world.watch_given_up(j, before);
        Some(())
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
        let part = &mut world.jobs[j];
        let answer = self.control.on(&part.job, &event, part.outlived);
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
                Event::Cancel | Event::Expire | Event::Retry => false,
            },
            _ => false,
        };
        self.watch(Rule::NoStaleReport, fence < current || repeated);
        self.watch(Rule::NoRetiredKey, runner != self.speaker);
        self.watch(Rule::EndAbsorbs, before.has_ended() && !before.is_lost() && before != after);
    }

    /// Sends word to an attempt that has lost; one that is over would ignore it.
    fn tell_to_stop(&mut self, j: usize, report: Report) {
        let runner = &mut self.runners[usize::from(report.runner)];
        if matches!(runner.attempts[j], Attempt::Working { fence, .. } if fence == report.fence) {
            runner.stop[j] = true;
        }
    }
}
