//! Copies of an order: somebody kept an order and sends it again, while the original is in the queue or in flight,
//! to machines that decide by the audit chain which of them starts it.
//!
//! A machine that is not the one for whose key the order was made, and whose journal does not have the order, looks
//! into the chain before it decides. Each machine records the start of a job there, and then looks for what others
//! recorded before. The product's own code decides what the records exclude ([`chain`]), and the journal decides as
//! in the model of the job protocol ([`crate::runner::decide`]). A process may be killed after each step, also
//! between the record of the start and the start, or between that record and the refusal.
//!
//! In some spaces the copy is in the message group of the original. In one it is in another message group, which
//! its sender may choose, and the machines refuse it. In the others the machines do not compare message groups, and
//! the chain alone decides. These have two receives of a message. The control plane knows only the fences of
//! attempts, and not their messages: with three receives, it may not accept an outcome because an attempt by the
//! other message had a higher fence.
//!
//! In one space, a machine gives an order back, because it is too late or the customer lets no change start. The
//! control plane then orders the work again. So nothing may start the order after that, and the order must not be given
//! back while another machine works on it.
//!
//! Left out: when orders expire, orders that are cancelled, other orders of the job, the control plane, reports (the
//! outcome is in the reports queue when the job ends), and when a machine has noticed another one: here each looks
//! after the record of the start. What a machine records is in the chain at once.

pub mod chain;
pub mod rules;
mod steps;
pub mod world;

use stateright::{Model, Property};

use self::steps::Step;
use self::world::{Action, MACHINES, MESSAGES, Space, World};
use crate::runner::Redelivery;

impl Model for Space {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        [Redelivery::Resume, Redelivery::Interrupted].map(|redelivery| World::new(self, redelivery)).into()
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if world.broken != 0 {
            return;
        }
        actions.push(Action::SendCopy);
        actions.extend((0..MESSAGES).map(|m| Action::LeaseEnds { m }));
        for r in (0..MACHINES).filter(|r| world.machines[*r].is_up) {
            actions.extend((0..MESSAGES).map(|m| Action::Receive { r, m }));
            actions.extend([Action::Decide { r }, Action::Announce { r }, Action::Start { r }, Action::Drop { r }]);
            actions.extend([Action::PutBack { r }, Action::GiveBack { r }]);
            actions.extend([Action::StopForLease { r }, Action::Finish { r }]);
            actions.extend([Action::Conclude { r }, Action::Delete { r }, Action::Crash { r }, Action::Lose { r }]);
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = *world;
        Step { space: self, world: &mut next }.perform(action)?;
        (next != *world).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        rules::properties(self)
    }
}
