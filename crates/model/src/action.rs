//! The interface to the checker: the actions that are possible in a world, and the world after each.

use stateright::{Model, Property};

use crate::bug::seeded;
use crate::job::{Event, Outcome};
use crate::protocol::Protocol;
use crate::report::{DISPATCHES, RUNNERS, Report};
use crate::rule::Rule;
use crate::rules;
use crate::runner::{Attempt, Redelivery};
use crate::world::{Place, World};

/// Something that happens; `j` is a job, `r` a runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    // The control plane.
    Dispatch {
        j: usize,
    },
    SendAgain {
        j: usize,
    },
    Deliver {
        j: usize,
        report: Report,
        acknowledged: bool,
    },
    /// The report's handler dies before it has committed anything.
    HandlerDies {
        j: usize,
        report: Report,
    },
    /// The second runner's hello is accepted; the first one's key is retired.
    Enrol,
    Cancel {
        j: usize,
    },
    Retry {
        j: usize,
    },
    Resume {
        j: usize,
    },
    Sweep {
        j: usize,
    },
    Wait {
        j: usize,
    },
    // Time.
    OrderExpires {
        j: usize,
        dispatch: u8,
    },
    GraceEnds {
        j: usize,
    },
    WaitEnds {
        j: usize,
    },
    LeaseEnds {
        j: usize,
        dispatch: u8,
    },
    /// Somebody sends an order again that they kept.
    SendKept {
        j: usize,
        dispatch: u8,
    },
    // The customer.
    SwitchOff,
    SwitchOn,
    // Machines.
    Boot,
    LoseMachine,
    Crash {
        r: usize,
    },
    // The runner.
    Receive {
        r: usize,
        j: usize,
        dispatch: u8,
    },
    /// A delivery that one runner has reaches the other one too.
    Twin {
        j: usize,
        dispatch: u8,
    },
    /// The same delivery comes a second time.
    ReceiveTwice {
        r: usize,
        j: usize,
    },
    /// Decides about a delivery. The note about an order that is given back may fail.
    Accept {
        r: usize,
        j: usize,
        noted: bool,
    },
    Start {
        r: usize,
        j: usize,
    },
    /// What is not started yet goes back to the queue, with a note for other machines or without.
    PutBack {
        r: usize,
        j: usize,
        noted: bool,
    },
    /// What was accepted can no longer be started.
    Drop {
        r: usize,
        j: usize,
    },
    Effect {
        r: usize,
        j: usize,
    },
    Finish {
        r: usize,
        j: usize,
        outcome: Outcome,
    },
    /// The lease cannot be renewed: the runner stops its job before the lease ends.
    StopForLease {
        r: usize,
        j: usize,
    },
    Send {
        r: usize,
        j: usize,
    },
    Delete {
        r: usize,
        j: usize,
    },
    TakeCancel {
        r: usize,
        j: usize,
    },
    TakeStop {
        r: usize,
        j: usize,
    },
}

impl Protocol {
    fn control_plane_actions(&self, world: &World, j: usize, actions: &mut Vec<Action>) {
        let (part, bounds) = (&world.jobs[j], &self.bounds);
        let dispatch = part.job.dispatch;
        if world.order(j, dispatch).place == Place::Unsent {
            actions.push(Action::Dispatch { j });
        } else if seeded!(bounds.seed, DeduplicationIgnored) {
            actions.push(Action::SendAgain { j });
        }
        for report in part.reports.iter().filter(|report| report.runner <= world.speaker) {
            actions.push(Action::Deliver { j, report, acknowledged: true });
            if world.spent.acks < bounds.acks {
                actions.push(Action::Deliver { j, report, acknowledged: false });
            }
            if seeded!(bounds.seed, AcknowledgedBeforeCommit) {
                actions.push(Action::HandlerDies { j, report });
            }
        }
        if !part.job.has_ended() {
            actions.extend([Action::Sweep { j }, Action::Wait { j }, Action::WaitEnds { j }]);
            if world.spent.cancels < bounds.cancels {
                actions.push(Action::Cancel { j });
            }
        }
        let may_resume = part.job.is_resumable() && !part.job.is_retryable();
        let has_place = usize::from(part.job.dispatch) < DISPATCHES;
        if bounds.resumes && has_place && (may_resume || seeded!(bounds.seed, ResumeBeforeEnd)) {
            actions.push(Action::Resume { j });
        }
        // A job whose workflow was continued has all its retries again, more than the world has place for.
        let is_used_up = part.job.tries() >= bounds.dispatches;
        if (has_place || is_used_up) && (part.job.is_retryable() || seeded!(bounds.seed, RetryBeforeEnd)) {
            actions.push(Action::Retry { j });
        }
        for dispatch in 1..=dispatch {
            actions.push(Action::OrderExpires { j, dispatch });
            actions.push(Action::LeaseEnds { j, dispatch });
            actions.push(Action::Twin { j, dispatch });
            actions.push(Action::SendKept { j, dispatch });
        }
        actions.push(Action::GraceEnds { j });
    }

    fn runner_actions(world: &World, r: usize, j: usize, actions: &mut Vec<Action>) {
        let runner = &world.runners[r];
        if !runner.spool[j].is_empty() {
            actions.push(Action::Send { r, j });
        }
        // A runner that is switched off may only report.
        if world.paused {
            actions.extend(runner.attempts[j].is_working().then_some(Action::Effect { r, j }));
            return;
        }
        match runner.attempts[j] {
            Attempt::Idle => {
                actions.extend((1..=world.jobs[j].job.dispatch).map(|dispatch| Action::Receive { r, j, dispatch }));
            }
            Attempt::Coming { .. } => {
                actions.extend([false, true].map(|noted| Action::Accept { r, j, noted }));
                actions.extend([false, true].map(|noted| Action::PutBack { r, j, noted }));
            }
            Attempt::Ready { .. } => {
                actions.extend([Action::Start { r, j }, Action::Drop { r, j }]);
                actions.extend([false, true].map(|noted| Action::PutBack { r, j, noted }));
            }
            Attempt::Working { changed, .. } => {
                actions.push(Action::StopForLease { r, j });
                actions.push(Action::Finish { r, j, outcome: Outcome::Failed });
                actions.push(Action::ReceiveTwice { r, j });
                actions.push(if changed {
                    Action::Finish { r, j, outcome: Outcome::Succeeded }
                } else {
                    Action::Effect { r, j }
                });
            }
            Attempt::Done { .. } => actions.push(Action::Delete { r, j }),
        }
        if world.jobs[j].cancel != 0 {
            actions.push(Action::TakeCancel { r, j });
        }
        if runner.stop[j] {
            actions.push(Action::TakeStop { r, j });
        }
    }
}

impl Model for Protocol {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        self.bounds.kinds.iter().map(|kinds: &[Redelivery; _]| World::new(*kinds)).collect()
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if world.broken != 0 {
            return;
        }
        for j in 0..self.bounds.jobs {
            self.control_plane_actions(world, j, actions);
            for r in (0..RUNNERS).filter(|r| world.runners[*r].is_up()) {
                Self::runner_actions(world, r, j, actions);
            }
        }
        actions.extend([Action::Enrol, Action::Boot, Action::LoseMachine, Action::SwitchOff, Action::SwitchOn]);
        actions.extend((0..RUNNERS).map(|r| Action::Crash { r }));
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = *world;
        let happened = match action {
            Action::Dispatch { j } => self.dispatch(&mut next, j),
            Action::SendAgain { j } => self.send_again(&mut next, j),
            Action::Deliver { j, report, acknowledged } => self.deliver(&mut next, j, report, acknowledged),
            Action::HandlerDies { j, report } => self.handler_dies(&mut next, j, report),
            Action::Enrol => Self::enrol(&mut next),
            Action::Cancel { j } => self.cancel(&mut next, j),
            Action::Retry { j } => self.retry(&mut next, j, Event::Retry),
            Action::Resume { j } => self.retry(&mut next, j, Event::Resume),
            Action::Sweep { j } => self.sweep(&mut next, j),
            Action::Wait { j } => self.wait(&mut next, j),
            Action::WaitEnds { j } => self.wait_ends(&mut next, j),
            Action::SwitchOff => self.switch_off(&mut next),
            Action::SwitchOn => Self::switch_on(&mut next),
            Action::OrderExpires { j, dispatch } => self.order_expires(&mut next, j, dispatch),
            Action::GraceEnds { j } => self.grace_ends(&mut next, j),
            Action::LeaseEnds { j, dispatch } => self.lease_ends(&mut next, j, dispatch),
            Action::SendKept { j, dispatch } => self.send_kept(&mut next, j, dispatch),
            Action::Boot => self.boot(&mut next),
            Action::LoseMachine => self.lose_machine(&mut next),
            Action::Crash { r } => self.crash(&mut next, r),
            Action::Receive { r, j, dispatch } => self.receive(&mut next, r, j, dispatch),
            Action::Twin { j, dispatch } => self.twin(&mut next, j, dispatch),
            Action::ReceiveTwice { r, j } => self.receive_twice(&mut next, r, j),
            Action::Accept { r, j, noted } => self.accept(&mut next, r, j, noted),
            Action::PutBack { r, j, noted } => self.put_back(&mut next, r, j, noted),
            Action::Start { r, j } => self.start(&mut next, r, j),
            Action::Drop { r, j } => self.drop_order(&mut next, r, j),
            Action::Effect { r, j } => self.effect(&mut next, r, j),
            Action::Finish { r, j, outcome } => self.finish(&mut next, r, j, outcome),
            Action::StopForLease { r, j } => self.stop_for_lease(&mut next, r, j),
            Action::Send { r, j } => self.send(&mut next, r, j),
            Action::Delete { r, j } => self.delete(&mut next, r, j),
            Action::TakeCancel { r, j } => self.take_cancel(&mut next, r, j),
            Action::TakeStop { r, j } => self.take_stop(&mut next, r, j),
        };
        next.broken &= !Rule::excused(&self.bounds);
        happened.filter(|()| next != *world).map(|()| next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        rules::properties(&self.bounds)
    }
}
