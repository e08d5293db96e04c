//! A runner's steps with one order: accept, journal, start, work, end, report, delete.

use crate::bug::seeded;
use crate::job::{Fence, Outcome};
use crate::protocol::Protocol;
use crate::report::{DISPATCHES, RUNNERS, Report, Says};
use crate::rule::Rule;
use crate::runner::{Attempt, Decision, Delivery, Entry, Phase, Redelivery, Runner, decide, learn, put_back};
use crate::world::World;

impl Protocol {
    /// Takes the answer of a receive request: drops it when its lease is over already, else decides.
    pub(crate) fn accept(&self, world: &mut World, r: usize, j: usize, noted: bool) -> Option<()> {
        let fence = world.runners[r].attempts[j].fence()?;
        if !self.believes_lease(world, r, j, fence) {
            world.runners[r].attempts[j] = Attempt::Idle;
            return Some(());
        }
        if self.was_seen_by_others(world, r, j, fence) {
            world.runners[r].attempts[j] = Attempt::Idle;
            world.order_mut(j, fence.dispatch).leave();
            return Some(());
        }
        let delivery = self.delivery(world, r, j, fence);
        let entry = learn(self.bounds.seed, world.runners[r].journal[j], delivery);
        world.runners[r].journal[j] = entry;
        let decision = decide(self.bounds.seed, entry, delivery);
        if let Decision::Interrupted | Decision::Cancelled | Decision::Again(_) = decision {
            self.record(world, r, j, fence);
        }
        if let Decision::Start | Decision::Resume = decision {
            world.watch_accept(entry, fence.dispatch, delivery.newer_accepted);
        }
        let comes_back = self.comes_back(world, j);
        let runner = &mut world.runners[r];
        match decision {
            Decision::Start | Decision::Resume => runner.attempts[j] = Attempt::Ready { fence },
            Decision::Interrupted => runner.end(r, j, fence, Outcome::Interrupted),
            Decision::Cancelled => runner.end(r, j, fence, Outcome::Cancelled),
            Decision::Again(outcome) => runner.end(r, j, fence, outcome),
            Decision::GiveBack if comes_back => self.give_back(world, r, j, noted),
            Decision::GiveBack | Decision::Replayed => {
                runner.attempts[j] = Attempt::Idle;
                world.order_mut(j, fence.dispatch).leave();
            }
        }
        Some(())
    }

    /// Puts an order back that waits for its turn or is about to start: the runner drains, is switched off or replaced, or
    /// loses the lease. The lease then ends, at once or by itself. The note for other machines may fail, and may come when
    /// another machine has the order already.
    pub(crate) fn put_back(&self, world: &mut World, r: usize, j: usize, noted: bool) -> Option<()> {
        let (Attempt::Coming { fence } | Attempt::Ready { fence }) = world.runners[r].attempts[j] else { return None };
        if !self.bounds.puts_back {
            return None;
        }
        let is_unstarted = self.let_go(world, r, j, fence);
        if noted {
            is_unstarted.then_some(())?;
            world.order_mut(j, fence.dispatch).note(fence.receive);
        }
        Some(())
    }

    /// Journals the start, spools its report, and starts the job's process.
    pub(crate) fn start(&self, world: &mut World, r: usize, j: usize) -> Option<()> {
        let Attempt::Ready { fence } = world.runners[r].attempts[j] else { return None };
        if !self.may_start(world, r, j, fence) {
            return None;
        }
        if self.was_seen_by_others(world, r, j, fence) {
            world.runners[r].attempts[j] = Attempt::Idle;
            world.order_mut(j, fence.dispatch).leave();
            return Some(());
        }
        self.record(world, r, j, fence);
        let runner = &mut world.runners[r];
        if !seeded!(self.bounds.seed, JournalAfterStart) {
            runner.accepted(j, fence);
            runner.journal[j].phase = Phase::Started;
        }
        runner.spool[j].add(Report { fence, runner: r as u8, says: Says::Started });
        runner.attempts[j] = Attempt::Working { fence, changed: false };
        let entry = runner.journal[j];
        world.watch_start(entry, fence.dispatch);
        Some(())
    }

    /// Lets go of an accepted order whose lease or time is over.
    pub(crate) fn drop_order(&self, world: &mut World, r: usize, j: usize) -> Option<()> {
        let Attempt::Ready { fence } = world.runners[r].attempts[j] else { return None };
        if self.may_start(world, r, j, fence) {
            return None;
        }
        if world.holds_lease(r, j, fence) {
            world.runners[r].attempts[j] = Attempt::Coming { fence };
            return self.accept(world, r, j, true);
        }
        world.runners[r].attempts[j] = Attempt::Idle;
        Some(())
    }

    /// Lets the job change something in the customer's account.
    pub(crate) fn effect(&self, world: &mut World, r: usize, j: usize) -> Option<()> {
        let Attempt::Working { fence, changed: false } = world.runners[r].attempts[j] else { return None };
        world.runners[r].attempts[j] = Attempt::Working { fence, changed: true };
        if self.bounds.progress {
            world.runners[r].spool[j].add(Report { fence, runner: r as u8, says: Says::Progress });
        }
        let leased = world.holds_lease(r, j, fence);
        world.watch(Rule::NoEffectWithoutLease, !leased);
        let expired = world.order(j, fence.dispatch).expired;
        world.watch(Rule::NoEffectAfterExpiry, expired);
        world.watch(Rule::NoEffectWhilePaused, world.paused);
        self.count_effect(world, j, fence);
        Some(())
    }

    /// Ends an attempt that works.
    pub(crate) fn finish(&self, world: &mut World, r: usize, j: usize, outcome: Outcome) -> Option<()> {
        let Attempt::Working { fence, .. } = world.runners[r].attempts[j] else { return None };
        world.runners[r].end(r, j, fence, outcome);
        Some(())
    }

    /// Stops the job because its lease is about to end; what follows is up to whoever gets the order next.
    pub(crate) fn stop_for_lease(&self, world: &mut World, r: usize, j: usize) -> Option<()> {
        if world.spent.lapses == self.bounds.lapses {
            return None;
        }
        world.spent.lapses += 1;
        world.runners[r].let_go(j);
        Some(())
    }

    /// Deletes the order once the report of its end is durable; with a lease that is over, SQS refuses.
    pub(crate) fn delete(&self, world: &mut World, r: usize, j: usize) -> Option<()> {
        let Attempt::Done { fence } = world.runners[r].attempts[j] else { return None };
        if world.runners[r].spool[j].ends(fence.dispatch) && !seeded!(self.bounds.seed, DeletedBeforeDurable) {
            return None;
        }
        world.runners[r].attempts[j] = Attempt::Idle;
        if world.holds_lease(r, j, fence) {
            let counts = fence.dispatch == world.jobs[j].job.dispatch;
            let part = &world.jobs[j];
            let returned = Report { fence, runner: r as u8, says: Says::Returned };
            // Nobody listens to a runner whose key was replaced.
            let unheard = usize::from(world.speaker) != r;
            let durable = unheard || part.ended_receive[r] > 0 || part.reports.has(returned) || part.job.has_ended();
            world.watch(Rule::DeletedWhenDurable, counts && !durable);
            world.order_mut(j, fence.dispatch).leave();
        }
        Some(())
    }

    /// Takes a cancel message: ends the attempt, or remembers not to start it.
    pub(crate) fn take_cancel(&self, world: &mut World, r: usize, j: usize) -> Option<()> {
        let dispatch = std::mem::take(&mut world.jobs[j].cancel);
        let runner = &mut world.runners[r];
        match runner.attempts[j] {
            Attempt::Ready { fence } | Attempt::Working { fence, .. } if fence.dispatch == dispatch => {
                runner.end(r, j, fence, Outcome::Cancelled);
            }
            Attempt::Idle
            | Attempt::Coming { .. }
            | Attempt::Ready { .. }
            | Attempt::Working { .. }
            | Attempt::Done { .. } => runner.journal[j].cancelled = dispatch,
        }
        Some(())
    }

    /// Stops an attempt that has lost, as a cancel does.
    pub(crate) fn take_stop(&self, world: &mut World, r: usize, j: usize) -> Option<()> {
        self.finish(world, r, j, Outcome::Cancelled)
    }

    /// Takes a delivery a second time; it is in hand, so nothing comes of it.
    pub(crate) fn receive_twice(&self, world: &mut World, r: usize, j: usize) -> Option<()> {
        let Attempt::Working { fence, changed: true } = world.runners[r].attempts[j] else { return None };
        seeded!(self.bounds.seed, DuplicateStarts)
            .then(|| world.runners[r].attempts[j] = Attempt::Working { fence, changed: false })
    }

    /// Returns whether the bounds allow one more order of the job to come back.
    fn comes_back(&self, world: &World, j: usize) -> bool {
        let job = &world.jobs[j].job;
        job.returned < self.bounds.returns && usize::from(job.dispatch) < DISPATCHES
    }

    /// Gives an order back that is too late to be started. The order is deleted when the reports queue has the report.
    fn give_back(&self, world: &mut World, r: usize, j: usize, noted: bool) {
        let Some(fence) = world.runners[r].attempts[j].fence() else { return };
        let delivery = self.delivery(world, r, j, fence);
        let runner = &mut world.runners[r];
        let unstarted = put_back(self.bounds.seed, runner.journal[j], delivery);
        runner.journal[j] = unstarted.unwrap_or(runner.journal[j]);
        runner.spool[j].add(Report { fence, runner: r as u8, says: Says::Returned });
        runner.attempts[j] = match seeded!(self.bounds.seed, GivenBackStarts) {
            true => Attempt::Ready { fence },
            false => Attempt::Done { fence },
        };
        if noted && unstarted.is_some() {
            world.order_mut(j, fence.dispatch).note(fence.receive);
        }
    }

    /// Lets the customer switch the runner off: it stops what works, and leaves its orders in the queue.
    pub(crate) fn switch_off(&self, world: &mut World) -> Option<()> {
        if world.paused || world.spent.pauses == self.bounds.pauses {
            return None;
        }
        world.spent.pauses += 1;
        world.paused = true;
        for r in 0..RUNNERS {
            for j in 0..self.bounds.jobs {
                self.stop_for_pause(world, r, j);
            }
        }
        Some(())
    }

    /// Lets the customer switch the runner on again.
    pub(crate) fn switch_on(world: &mut World) -> Option<()> {
        world.paused.then(|| world.paused = false)
    }

    /// Lets an order go that was not started here. Returns whether the journal then says that it is unstarted.
    fn let_go(&self, world: &mut World, r: usize, j: usize, fence: Fence) -> bool {
        let delivery = self.delivery(world, r, j, fence);
        let runner = &mut world.runners[r];
        let entry = learn(self.bounds.seed, runner.journal[j], delivery);
        let unstarted = put_back(self.bounds.seed, entry, delivery);
        runner.journal[j] = unstarted.unwrap_or(entry);
        runner.let_go(j);
        unstarted.is_some()
    }

    fn stop_for_pause(&self, world: &mut World, r: usize, j: usize) {
        match world.runners[r].attempts[j] {
            Attempt::Coming { fence } | Attempt::Ready { fence } => {
                if self.let_go(world, r, j, fence) {
                    world.order_mut(j, fence.dispatch).note(fence.receive);
                }
            }
            Attempt::Working { .. } if seeded!(self.bounds.seed, WorksWhilePaused) => {}
            Attempt::Working { fence, .. } => match world.jobs[j].redelivery {
                Redelivery::Resume => world.runners[r].let_go(j),
                Redelivery::Interrupted => world.runners[r].end(r, j, fence, Outcome::Interrupted),
            },
            Attempt::Idle | Attempt::Done { .. } => {}
        }
    }

    fn count_effect(&self, world: &mut World, j: usize, fence: Fence) {
        let part = &mut world.jobs[j];
        if part.redelivery == Redelivery::Resume {
            return;
        }
        let origin = part.origin[usize::from(fence.dispatch) - 1];
        let effects = &mut part.effects[usize::from(origin) - 1];
        *effects = effects.saturating_add(1);
        let twice = *effects > 1;
        world.watch(Rule::DoneOnce, twice);
    }

    /// Records in the audit chain of the install that a runner starts or ends this delivery.
    fn record(&self, world: &mut World, r: usize, j: usize, fence: Fence) {
        if self.bounds.kept > 0 {
            let order = world.order_mut(j, fence.dispatch);
            let recorded = &mut order.recorded[r];
            let message = if order.is_copy { &mut recorded.copy } else { &mut recorded.original };
            *message = fence.receive.max(*message);
        }
    }

    /// Returns whether another runner has recorded something in the audit chain that excludes this delivery: somebody kept
    /// the order. A runner looks before it decides, and its record of the start shows whether the chain has grown since then.
    fn was_seen_by_others(&self, world: &World, r: usize, j: usize, fence: Fence) -> bool {
        let order = world.order(j, fence.dispatch);
        let is_own = usize::from(order.made_for) == r;
        let looks = match seeded!(self.bounds.seed, OwnOrderIsNotLookedUp) {
            true => !is_own,
            false => true,
        };
        if self.bounds.kept == 0 || !looks || seeded!(self.bounds.seed, KeptOrderIsTakenForDelivery) {
            return false;
        }
        let mut others = order.recorded.iter().enumerate().filter(|(by, _)| *by != r);
        others.any(|(_, recorded)| recorded.excludes(order.is_copy, fence.receive))
    }

    fn may_start(&self, world: &World, r: usize, j: usize, fence: Fence) -> bool {
        let in_time = !world.order(j, fence.dispatch).expired || seeded!(self.bounds.seed, ExpiredOrderStarts);
        (in_time || seeded!(self.bounds.seed, GivenBackStarts)) && self.believes_lease(world, r, j, fence)
    }

    /// Returns whether the runner thinks that it holds the lease: as it counts from before its request was sent, it
    /// is never wrong in thinking so.
    fn believes_lease(&self, world: &World, r: usize, j: usize, fence: Fence) -> bool {
        world.holds_lease(r, j, fence) || seeded!(self.bounds.seed, LateAnswerStarts)
    }

    fn delivery(&self, world: &World, r: usize, j: usize, fence: Fence) -> Delivery {
        Delivery {
            fence,
            message: world.order(j, fence.dispatch).is_copy.into(),
            redelivery: world.jobs[j].redelivery,
            expired: world.order(j, fence.dispatch).expired,
            newer_accepted: self.has_newer(world, r, j),
            noted: match world.order(j, fence.dispatch).noted {
                0 => false,
                _ if seeded!(self.bounds.seed, AnyNoteCounts) => true,
                noted => noted & (1 << (fence.receive - 1)) != 0,
            },
        }
    }

    /// Returns whether the runner's journal holds a newer order of the job's group; a job's serial is its number.
    fn has_newer(&self, world: &World, r: usize, j: usize) -> bool {
        self.bounds.one_thing && (j + 1..self.bounds.jobs).any(|newer| world.runners[r].journal[newer].accepted)
    }
}

impl Runner {
    fn accepted(&mut self, j: usize, fence: Fence) {
        let entry = &mut self.journal[j];
        if entry.dispatch < fence.dispatch {
            *entry = Entry { dispatch: fence.dispatch, phase: Phase::Accepted, ..*entry };
        }
        entry.accepted = true;
    }

    /// Journals the end, then spools its report.
    fn end(&mut self, r: usize, j: usize, fence: Fence, outcome: Outcome) {
        self.accepted(j, fence);
        self.journal[j].phase = Phase::Finished(outcome);
        self.spool[j].add(Report { fence, runner: r as u8, says: Says::Finished(outcome) });
        self.attempts[j] = Attempt::Done { fence };
        self.stop[j] = false;
    }

    fn let_go(&mut self, j: usize) {
        self.attempts[j] = Attempt::Idle;
        self.stop[j] = false;
    }
}
