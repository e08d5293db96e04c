//! What each action does to a world.

use crate::bug::seeded;
use crate::copies::chain::{Chain, Delivery, End, Exclusion, Record};
use crate::copies::rules::Rule;
use crate::copies::world::{
    Action, COPY, MACHINES, MESSAGES, Machine, Message, ORIGINAL, OWNER, Place, Space, Stage, World,
};
use crate::job::{Fence, Outcome};
use crate::runner::{self, Decision, Entry, Phase, Redelivery, decide};

/// One step. A method that returns `None` cannot happen in this world.
pub(super) struct Step<'a> {
    pub(super) space: &'a Space,
    pub(super) world: &'a mut World,
}

/// Takes one of the times that the bounds allow.
fn take(times: &mut u8, most: u8) -> Option<()> {
    (*times < most).then(|| *times += 1)
}

impl Step<'_> {
    pub(super) fn perform(&mut self, action: Action) -> Option<()> {
        match action {
            Action::SendCopy => {
                (self.world.messages[COPY].place == Place::Unsent).then_some(())?;
                self.world.messages[COPY].place = Place::Waiting;
                Some(())
            }
            Action::LeaseEnds { m } => self.lease_ends(m),
            Action::Receive { r, m } => self.receive(r, m),
            Action::Decide { r } => self.decide(r),
            Action::Announce { r } => {
                let delivery = self.leased(r, Stage::Accepted)?;
                self.record(r, delivery, End::None);
                self.hold(r, Stage::Announced, delivery);
                Some(())
            }
            Action::Start { r } => self.start(r),
            Action::Drop { r } => self.let_go(r, false),
            Action::PutBack { r } => {
                take(&mut self.world.put_backs, self.space.put_backs)?;
                self.let_go(r, true)
            }
            Action::GiveBack { r } => self.give_back(r),
            Action::StopForLease { r } => {
                self.at(r, Stage::Working)?;
                take(&mut self.world.lapses, self.space.lapses)?;
                self.world.machines[r].attempt = None;
                Some(())
            }
            Action::Finish { r } => {
                let delivery = self.at(r, Stage::Working)?;
                self.end(r, delivery, true);
                Some(())
            }
            Action::Conclude { r } => self.conclude(r),
            Action::Delete { r } => self.delete(r),
            Action::Crash { r } => {
                self.world.machines[r].attempt?;
                take(&mut self.world.crashes, self.space.crashes)?;
                self.world.machines[r].attempt = None;
                Some(())
            }
            Action::Lose { r } => {
                take(&mut self.world.losses, self.space.losses)?;
                self.world.machines[r] = Machine::ABSENT;
                Some(())
            }
        }
    }

    /// Ends the lease of a message. A machine that lives has stopped its job before.
    fn lease_ends(&mut self, m: usize) -> Option<()> {
        let Place::InFlight { machine } = self.world.messages[m].place else { return None };
        let r = usize::from(machine);
        let attempt = self.world.machines[r].attempt;
        match attempt.filter(|(_, held)| usize::from(held.message) == m && self.world.has_lease(r, *held)) {
            Some((Stage::Working, _)) => return None,
            Some(_) => take(&mut self.world.lapses, self.space.lapses)?,
            None => {}
        }
        self.go_back(m);
        Some(())
    }

    /// Takes a delivery. A machine that has the order in flight by another message refuses it if the job has started,
    /// and leaves it in the queue before.
    fn receive(&mut self, r: usize, m: usize) -> Option<()> {
        self.world.is_deliverable(self.space, r, m).then_some(())?;
        let receive = self.world.messages[m].receives + 1;
        let delivery = Delivery { message: m as u8, receive };
        let attempt = self.world.machines[r].attempt;
        attempt.is_none_or(|(_, held)| held.message != delivery.message).then_some(())?;
        if m == COPY && !self.space.accepts_copy() && !seeded!(self.space.seed, GroupIsNotCompared) {
            self.leave(delivery, Place::Deleted);
            return Some(());
        }
        self.world.messages[m] = Message { place: Place::InFlight { machine: r as u8 }, receives: receive };
        match attempt {
            None => self.hold(r, Stage::Taken, delivery),
            Some((stage, held)) if seeded!(self.space.seed, CopyTakesOverLease) => {
                self.hold(r, stage, delivery);
                if self.world.has_lease(r, held) {
                    self.go_back(usize::from(held.message));
                }
            }
            Some((Stage::Working | Stage::Done { started: true }, _)) => self.refuse(r, delivery),
            Some(_) if seeded!(self.space.seed, CopyIsRefusedBeforeStart) => self.refuse(r, delivery),
            Some((Stage::Taken | Stage::Accepted | Stage::Announced | Stage::Done { started: false }, _)) => {}
            Some((Stage::GoesBack | Stage::GivenBack, _)) => {}
        }
        Some(())
    }

    /// Decides about the delivery in hand. For an order of its own key, or one that its journal knows, the machine
    /// looks into the chain only when it has recorded the start, or if no start would follow.
    fn decide(&mut self, r: usize) -> Option<()> {
        let delivery = self.leased(r, Stage::Taken)?;
        (!self.world.machines[r].gave_back).then_some(())?;
        self.learn(r, delivery);
        let machine = self.world.machines[r];
        let decision = decide(self.space.seed, machine.journal, self.delivery(delivery));
        let is_ended = decision == Decision::Interrupted && !machine.knows_order();
        let looks = !self.is_ours(r) || (is_ended && !seeded!(self.space.seed, InterruptedIsNotLookedUp));
        let seen = if looks { self.seen(r, delivery) } else { None };
        match seen {
            None => {}
            Some(Exclusion::GivenBack { .. }) => {
                self.hold(r, Stage::GoesBack, delivery);
                return Some(());
            }
            Some(_) => {
                self.refuse_as_excluded(r, delivery);
                return Some(());
            }
        }
        match decision {
            Decision::Start | Decision::Resume => self.hold(r, Stage::Accepted, delivery),
            Decision::Interrupted => {
                self.watch_interruption(r);
                self.end(r, delivery, false);
            }
            Decision::Again(_) => self.end(r, delivery, false),
            Decision::Cancelled | Decision::GiveBack | Decision::Replayed => return None,
        }
        Some(())
    }

    /// Journals the start and starts the job, unless the chain has something before the record of the start that
    /// excludes it.
    fn start(&mut self, r: usize) -> Option<()> {
        let delivery = self.leased(r, Stage::Announced)?;
        let before = self.world.chain.before(Record { machine: r as u8, delivery, end: End::None });
        let looks = !seeded!(self.space.seed, StartIsNotLookedUp);
        let seen = if looks { before.excluding(self.space.seed, Some(r as u8), delivery) } else { None };
        match seen {
            None => {}
            Some(Exclusion::GivenBack { .. }) => {
                self.record(r, delivery, End::Excluded);
                self.hold(r, Stage::GoesBack, delivery);
                return Some(());
            }
            Some(_) => {
                self.refuse_as_excluded(r, delivery);
                return Some(());
            }
        }
        self.watch_start(r, delivery, before);
        self.journal(r, Phase::Started);
        self.hold(r, Stage::Working, delivery);
        Some(())
    }

    /// Takes the next step of a machine that gives the order back, as long as no start of the order is known to it. It
    /// may have lost the lease without noticing it.
    fn give_back(&mut self, r: usize) -> Option<()> {
        let (stage, delivery) = self.world.machines[r].attempt?;
        match stage {
            Stage::Taken => return self.look_before_give_back(r),
            Stage::GoesBack => {
                self.record(r, delivery, End::GivenBack);
                self.hold(r, Stage::GivenBack, delivery);
            }
            Stage::GivenBack if self.world.machines[r].gave_back => {
                if self.world.has_lease(r, delivery) {
                    self.leave(delivery, Place::Deleted);
                }
                self.world.machines[r].attempt = None;
            }
            Stage::GivenBack => self.report_give_back(r, delivery),
            Stage::Accepted | Stage::Announced | Stage::Working | Stage::Done { .. } => return None,
        }
        Some(())
    }

    /// Looks into the chain before the order is given back. An order that its machine has given back is given back
    /// again.
    fn look_before_give_back(&mut self, r: usize) -> Option<()> {
        let delivery = self.leased(r, Stage::Taken)?;
        if !self.world.machines[r].gave_back {
            take(&mut self.world.give_backs, self.space.give_backs)?;
            self.learn(r, delivery);
            let machine = self.world.machines[r];
            match decide(self.space.seed, machine.journal, self.delivery(delivery)) {
                Decision::Start => {}
                Decision::Resume if !machine.knows_order() => {}
                Decision::Resume | Decision::Interrupted | Decision::Again(_) => return None,
                Decision::Cancelled | Decision::GiveBack | Decision::Replayed => return None,
            }
        }
        match self.seen(r, delivery) {
            None | Some(Exclusion::GivenBack { .. }) => self.hold(r, Stage::GoesBack, delivery),
            Some(_) => self.refuse_as_excluded(r, delivery),
        }
        Some(())
    }

    /// Journals and reports that the order is given back, unless the chain has something before the record of it that
    /// excludes this.
    fn report_give_back(&mut self, r: usize, delivery: Delivery) {
        let before = self.world.chain.before(Record { machine: r as u8, delivery, end: End::GivenBack });
        let excluding = before.excluding(self.space.seed, Some(r as u8), delivery);
        let is_excluded = excluding.is_some_and(|one| !one.is_given_back());
        if is_excluded && !seeded!(self.space.seed, GivenBackIsNotLookedUp) {
            if self.world.has_lease(r, delivery) {
                self.refuse_as_excluded(r, delivery);
            } else {
                self.record(r, delivery, End::Excluded);
                self.world.machines[r].attempt = None;
            }
            return;
        }
        self.watch_give_back(r);
        self.world.machines[r].gave_back = true;
        self.world.is_given_back = true;
    }

    /// Lets go of a delivery that is not started, and journals and notes that. The machine has its lease or not, as
    /// `has_lease` says.
    fn let_go(&mut self, r: usize, has_lease: bool) -> Option<()> {
        let (stage, delivery) = self.world.machines[r].attempt?;
        (self.world.has_lease(r, delivery) == has_lease).then_some(())?;
        match stage {
            Stage::Taken | Stage::Accepted => {}
            Stage::Announced => self.record(r, delivery, End::PutBack),
            Stage::GoesBack | Stage::GivenBack if has_lease => return None,
            Stage::GoesBack | Stage::GivenBack => {
                self.world.machines[r].attempt = None;
                return Some(());
            }
            Stage::Working | Stage::Done { .. } => return None,
        }
        if self.world.machines[r].gave_back {
            self.world.machines[r].attempt = None;
            return Some(());
        }
        self.learn(r, delivery);
        let entry = self.world.machines[r].journal;
        if let Some(entry) = runner::put_back(self.space.seed, entry, self.delivery(delivery)) {
            self.world.machines[r].journal = entry;
            if self.world.redelivery == Redelivery::Interrupted {
                self.world.noted[usize::from(delivery.message)] |= 1 << delivery.receive;
            }
        }
        self.world.machines[r].attempt = None;
        Some(())
    }

    /// Returns whether the order was made for the key of the machine, or its journal has it.
    fn is_ours(&self, r: usize) -> bool {
        r == OWNER || self.world.machines[r].knows_order()
    }

    /// Returns how the chain excludes the delivery to machine `r`.
    fn seen(&self, r: usize, delivery: Delivery) -> Option<Exclusion> {
        self.world.chain.excluding(self.space.seed, self.is_ours(r).then_some(r as u8), delivery)
    }

    /// Looks for the note of another machine about the delivery before this one.
    fn learn(&mut self, r: usize, delivery: Delivery) {
        let entry = self.world.machines[r].journal;
        self.world.machines[r].journal = runner::learn(self.space.seed, entry, self.delivery(delivery));
    }

    fn conclude(&mut self, r: usize) -> Option<()> {
        let delivery = self.done(r)?;
        let record = Record { machine: r as u8, delivery, end: End::Outcome };
        (!self.world.chain.has(record)).then_some(())?;
        let may_continue = |one: Record| {
            let is_later = one.delivery.message != delivery.message || one.delivery.receive > delivery.receive;
            one.machine != record.machine && one.end == End::None && is_later
        };
        self.world.has_ended |= !self.world.chain.records().any(may_continue);
        self.world.chain.add(record);
        Some(())
    }

    /// Deletes the message once the chain has the outcome. Without a lease, the machine only lets go of it.
    fn delete(&mut self, r: usize) -> Option<()> {
        let delivery = self.done(r)?;
        if self.world.has_lease(r, delivery) {
            let record = Record { machine: r as u8, delivery, end: End::Outcome };
            self.world.chain.has(record).then_some(())?;
            self.leave(delivery, Place::Deleted);
        }
        self.world.machines[r].attempt = None;
        Some(())
    }

    /// Ends the job, which `started` in this attempt or not. The reports queue has the outcome then.
    fn end(&mut self, r: usize, delivery: Delivery, started: bool) {
        self.journal(r, Phase::Finished(Outcome::Succeeded));
        self.hold(r, Stage::Done { started }, delivery);
        self.world.newest_outcome = self.world.newest_outcome.max(delivery.receive);
    }

    fn refuse(&mut self, r: usize, delivery: Delivery) {
        self.record(r, delivery, End::Excluded);
        self.leave(delivery, Place::Deleted);
    }

    fn refuse_as_excluded(&mut self, r: usize, delivery: Delivery) {
        self.refuse(r, delivery);
        self.world.machines[r].attempt = None;
        self.watch_refusal(delivery);
    }

    /// Puts a message back into the queue, or into the dead-letter queue.
    fn go_back(&mut self, m: usize) {
        let message = &mut self.world.messages[m];
        if message.receives < self.space.receives {
            message.place = Place::Waiting;
        } else {
            *message = Message { place: Place::Dead, receives: 0 };
        }
    }

    fn leave(&mut self, delivery: Delivery, place: Place) {
        self.world.messages[usize::from(delivery.message)] = Message { place, receives: 0 };
    }

    fn record(&mut self, r: usize, delivery: Delivery, end: End) {
        self.world.chain.add(Record { machine: r as u8, delivery, end });
    }

    fn hold(&mut self, r: usize, stage: Stage, delivery: Delivery) {
        self.world.machines[r].attempt = Some((stage, delivery));
    }

    fn journal(&mut self, r: usize, phase: Phase) {
        self.world.machines[r].journal = Entry { dispatch: 1, phase, cancelled: 0, accepted: true };
    }

    /// Returns the delivery of machine `r`, if it is as far as `stage`.
    fn at(&self, r: usize, stage: Stage) -> Option<Delivery> {
        let (is_at, delivery) = self.world.machines[r].attempt?;
        (is_at == stage).then_some(delivery)
    }

    /// The same, if the machine has the lease too.
    fn leased(&self, r: usize, stage: Stage) -> Option<Delivery> {
        self.at(r, stage).filter(|delivery| self.world.has_lease(r, *delivery))
    }

    /// Returns the delivery under which the job ended on machine `r`.
    fn done(&self, r: usize) -> Option<Delivery> {
        self.at(r, Stage::Done { started: true }).or_else(|| self.at(r, Stage::Done { started: false }))
    }

    /// Returns the delivery as the journal decides about it: the order does not expire, and it is the only one.
    fn delivery(&self, delivery: Delivery) -> runner::Delivery {
        let Delivery { message, receive } = delivery;
        let noted = match seeded!(self.space.seed, NoteNamesNoMessage) {
            true => self.world.noted.iter().fold(0_u8, |all, one| all | *one),
            false => self.world.noted[usize::from(message)],
        };
        runner::Delivery {
            fence: Fence { dispatch: 1, receive },
            message,
            redelivery: self.world.redelivery,
            expired: false,
            newer_accepted: false,
            noted: noted & (1 << (receive - 1)) != 0,
        }
    }

    fn watch(&mut self, rule: Rule, is_broken: bool) {
        if is_broken {
            self.world.broken |= rule.bit();
        }
    }

    /// Watches a start, before which the chain was as in `before`. A machine that has gone over to this message, or has
    /// put its last delivery back, does not count as one that works by the other message.
    fn watch_start(&mut self, r: usize, delivery: Delivery, before: Chain) {
        let (started, m) = (self.world.started, usize::from(delivery.message));
        let is_second = self.world.redelivery == Redelivery::Interrupted && started != [0; MESSAGES];
        let keeps_other = |q: usize| {
            let counted = before.records().filter(|one| usize::from(one.machine) == q && one.end != End::Excluded);
            counted.last().is_some_and(|last| last.end != End::PutBack && last.delivery.message != delivery.message)
        };
        let has_started = |q: usize| started[MESSAGES - 1 - m] & (1 << q) != 0;
        let is_copy = (0..MACHINES).any(|q| q != r && has_started(q) && keeps_other(q));
        self.watch(Rule::StartsOnce, is_second);
        self.watch(Rule::EndedStartsNoMore, self.world.has_ended);
        self.watch(Rule::CopyStartsNothing, is_copy);
        self.watch(Rule::GivenBackStartsNothing, self.world.is_given_back);
        self.world.started[m] |= 1 << r;
        self.world.newest_start = self.world.newest_start.max(delivery.receive);
    }

    /// Watches machine `r` reporting that the order is given back.
    fn watch_give_back(&mut self, r: usize) {
        let is_second = self.world.redelivery == Redelivery::Interrupted && self.world.started != [0; MESSAGES];
        self.watch(Rule::StartedIsNotGivenBack, is_second || self.is_worked_on_beside(r));
    }

    /// Watches machine `r` ending the job as interrupted.
    fn watch_interruption(&mut self, r: usize) {
        self.watch(Rule::InterruptsNobody, self.is_worked_on_beside(r));
    }

    /// Returns whether another machine than `r` works on the order.
    fn is_worked_on_beside(&self, r: usize) -> bool {
        let mut others = self.world.machines.iter().enumerate().filter(|(q, _)| *q != r);
        others.any(|(_, machine)| matches!(machine.attempt, Some((Stage::Working, _))))
    }

    /// Watches a machine refusing a delivery because of the chain. If a machine that began the order went over to the
    /// copy, the original may be refused.
    fn watch_refusal(&mut self, delivery: Delivery) {
        let [under_original, under_copy] = self.world.started;
        let went_over = |one: Record| {
            let has_begun = under_original & (1 << one.machine) != 0;
            let is_started = matches!(one.end, End::None | End::Outcome);
            has_begun && is_started && usize::from(one.delivery.message) == COPY
        };
        let is_begun = under_original != 0 && under_copy == 0 && !self.world.chain.records().any(went_over);
        let is_original = usize::from(delivery.message) == ORIGINAL;
        self.watch(Rule::BegunIsResumed, is_original && is_begun && !self.world.has_outcome());
    }
}
