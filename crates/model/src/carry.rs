//! Steps of the infrastructure: the orders queue with its leases, machines and crashes.

use crate::bug::seeded;
use crate::job::Fence;
use crate::protocol::Protocol;
use crate::report::{Reports, Says};
use crate::runner::{Attempt, JOBS, Machine, Runner};
use crate::world::{Order, Place, World};

impl Protocol {
    /// Hands the first order of a group to a runner that waits; the answer is on its way.
    pub(crate) fn receive(&self, world: &mut World, r: usize, j: usize, dispatch: u8) -> Option<()> {
        if !world.is_first_in_group(&self.bounds, j, dispatch) {
            return None;
        }
        let order = world.order_mut(j, dispatch);
        let receive = order.receives + 1;
        *order = Order { place: Place::InFlight { runner: r as u8 }, receives: receive, ..*order };
        world.runners[r].attempts[j] = Attempt::Coming { fence: Fence { dispatch, receive } };
        Some(())
    }

    /// Hands a delivery to the other runner as well, with the same receive count.
    pub(crate) fn twin(&self, world: &mut World, j: usize, dispatch: u8) -> Option<()> {
        let order = *world.order(j, dispatch);
        let Place::InFlight { runner } = order.place else { return None };
        let other = 1 - usize::from(runner);
        let idle = world.runners[other].is_up() && world.runners[other].attempts[j] == Attempt::Idle;
        if world.spent.twins == self.bounds.twins || !idle {
            return None;
        }
        world.spent.twins += 1;
        world.order_mut(j, dispatch).twins = true;
        world.runners[other].attempts[j] = Attempt::Coming { fence: Fence { dispatch, receive: order.receives } };
        Some(())
    }

    /// Sends an order again that somebody kept: a new message, which SQS counts from its first delivery.
    pub(crate) fn send_kept(&self, world: &mut World, j: usize, dispatch: u8) -> Option<()> {
        if world.spent.kept == self.bounds.kept || world.order(j, dispatch).place != Place::Gone {
            return None;
        }
        world.spent.kept += 1;
        world.sent += 1;
        let nth = world.sent;
        let order = world.order_mut(j, dispatch);
        *order = Order { place: Place::Waiting, nth, is_copy: true, ..*order };
        Some(())
    }

    /// Ends the lease of an order in flight. A runner that lives has stopped its job before; one that is dead renews
    /// no more, so that this is bound to happen.
    pub(crate) fn lease_ends(&self, world: &mut World, j: usize, dispatch: u8) -> Option<()> {
        let Place::InFlight { .. } = world.order(j, dispatch).place else { return None };
        let holders = || {
            world
                .attempts(j, dispatch)
                .filter(|(r, attempt)| attempt.fence().is_some_and(|fence| world.holds_lease(*r, j, fence)))
        };
        // A runner that is switched off renews nothing.
        let renewed = !world.paused && holders().count() > 0;
        let stopped = !holders().any(|(_, attempt)| attempt.is_working());
        if !stopped && !seeded!(self.bounds.seed, LeaseNotStopped) {
            return None;
        }
        if renewed {
            if world.spent.lapses == self.bounds.lapses {
                return None;
            }
            world.spent.lapses += 1;
        }
        let receives = self.bounds.receives;
        let order = world.order_mut(j, dispatch);
        if order.receives >= receives {
            order.leave();
        } else {
            *order = Order { place: Place::Waiting, twins: false, ..*order };
        }
        Some(())
    }

    /// Starts the second machine; the first may live on for a while.
    pub(crate) fn boot(&self, world: &mut World) -> Option<()> {
        (self.bounds.replacement && world.runners[1].machine == Machine::NotYet).then(|| world.runners[1] = Runner::UP)
    }

    /// Loses the first machine with its disk: journal, spool, and whatever ran.
    pub(crate) fn lose_machine(&self, world: &mut World) -> Option<()> {
        if world.spent.losses == self.bounds.losses || !world.runners[0].is_up() {
            return None;
        }
        world.spent.losses += 1;
        world.runners[0] = Runner::lost();
        Some(())
    }

    /// Kills a runner, which starts again with its disk; its jobs' sandboxes die with it.
    pub(crate) fn crash(&self, world: &mut World, r: usize) -> Option<()> {
        let runner = &mut world.runners[r];
        let idle = runner.attempts == [Attempt::Idle; JOBS];
        if world.spent.crashes == self.bounds.crashes || !runner.is_up() || idle {
            return None;
        }
        world.spent.crashes += 1;
        runner.attempts = [Attempt::Idle; JOBS];
        runner.stop = [false; JOBS];
        if seeded!(self.bounds.seed, SpoolInMemory) {
            runner.spool = [Reports::NONE; JOBS];
        }
        Some(())
    }

    /// Gives a report on the runner's spool to the reports queue, which keeps it from then on.
    pub(crate) fn send(&self, world: &mut World, r: usize, j: usize) -> Option<()> {
        let report = world.runners[r].spool[j].first()?;
        world.runners[r].spool[j].remove(report);
        let part = &mut world.jobs[j];
        part.reports.add(report);
        if report.fence.dispatch == part.job.dispatch && matches!(report.says, Says::Finished(_)) {
            part.ended_receive[r] = part.ended_receive[r].max(report.fence.receive);
        }
        Some(())
    }
}
