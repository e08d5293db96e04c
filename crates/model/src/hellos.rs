//! Hellos: whose key the control plane believes, while machines come and go, and hellos arrive late, twice and in any order.
//!
//! Two machines may live beside each other. Each says hello under its key. A runner that learns that its key was replaced makes
//! another one and says hello again, once a day (decision 0055); the next time, it ends.
//!
//! Left out: proofs and signatures, the number of keys that an install may have, what hellos carry beside the key, and the day
//! after which a runner that has ended tries once more. That a machine is believed in the end rests on its reports and on the
//! notices that answer them: here, no notice is lost.

use stateright::{Model, Property};

use crate::bug::{Seed, seeded};

/// The number of machines.
const MACHINES: usize = 2;
/// How often a machine may renew its key.
const RENEWALS: u8 = 1;
/// The number of keys: each machine has one, and one for each renewal.
const KEYS: usize = MACHINES * (RENEWALS as usize + 1);

/// The keys as the control plane knows them. A property test holds this equal to `freehold_domain::install::Install::on_hello`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Keys {
    /// The key that is believed, and the time at which the reports queue took its newest hello.
    pub current: Option<(u8, u8)>,
    /// The keys that were replaced, by bit.
    pub retired: u8,
}

impl Keys {
    /// Returns the keys after a hello under `key`, which the reports queue took at `sent_at`; `None` for a hello under a key
    /// that was replaced.
    #[must_use]
    pub fn on_hello(self, seed: Seed, key: u8, sent_at: u8) -> Option<Self> {
        if self.is_retired(key) && !seeded!(seed, RetiredKeyReturns) {
            return None;
        }
        let retired = |key: u8| self.retired | 1 << key;
        Some(match self.current {
            Some((current, at)) if sent_at < at && !seeded!(seed, LateHelloWins) => {
                let is_late = current != key && !seeded!(seed, LateKeyIsForgotten);
                if is_late { Self { retired: retired(key), ..self } } else { self }
            }
            Some((current, _)) if current != key => Self { current: Some((key, sent_at)), retired: retired(current) },
            Some(_) | None => Self { current: Some((key, sent_at)), ..self },
        })
    }

    /// Returns whether the key was replaced.
    pub const fn is_retired(self, key: u8) -> bool {
        self.retired & 1 << key != 0
    }

    fn believes(self, key: u8) -> bool {
        self.current.is_some_and(|(current, _)| current == key)
    }
}

/// A machine of the install.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Machine {
    NotYet,
    Up {
        /// How often it has renewed its key.
        renewed: u8,
        /// The reports queue has taken a hello of the present key.
        announced: bool,
    },
    /// It has learned that another machine took the install, and may renew its key no more.
    Ended,
    Lost,
}

/// One state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct World {
    pub keys: Keys,
    pub machines: [Machine; MACHINES],
    /// The hellos in the reports queue: for each key, the times at which the queue took one, by bit.
    pub hellos: [u8; KEYS],
    /// The keys about which a notice is on its way to its runner, by bit.
    pub notices: u8,
    /// The time of the last hello.
    pub now: u8,
    pub repeated: u8,
    pub lost: u8,
    pub more: u8,
    /// A hello that is older than the one that is believed has replaced it.
    pub older_won: bool,
}

/// Something that happens; `m` is a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    Boot,
    Lose {
        m: usize,
    },
    /// The reports queue takes a hello, at the time of the one before or later.
    Say {
        m: usize,
        later: bool,
    },
    /// A hello is handled. Its acknowledgement may be lost, so that it comes again.
    Deliver {
        key: u8,
        sent_at: u8,
        acknowledged: bool,
    },
    /// A runner reports something under its key.
    Report {
        m: usize,
    },
    /// The notice that a key was replaced arrives.
    Notice {
        key: u8,
    },
}

/// The machines and their hellos, within bounds.
#[derive(Debug, Clone, Copy)]
pub struct Hellos {
    /// Hellos whose acknowledgement is lost.
    pub repeated: u8,
    /// Machines that are lost.
    pub lost: u8,
    /// Hellos that runners say beside the first one under each key.
    pub more: u8,
    pub seed: Seed,
}

impl Hellos {
    /// Returns the space that must hold, with the mistake of `seed`, if it has one.
    pub const fn new(seed: Seed) -> Self {
        Self { repeated: 1, lost: 2, more: 2, seed }
    }

    fn say(&self, world: &mut World, m: usize, later: bool) -> Option<()> {
        let Machine::Up { renewed, announced } = world.machines[m] else { return None };
        if announced {
            (world.more < self.more).then_some(())?;
            world.more += 1;
        }
        world.now += u8::from(later);
        world.hellos[usize::from(key_of(m, renewed))] |= 1 << world.now;
        world.machines[m] = Machine::Up { renewed, announced: true };
        Some(())
    }

    fn deliver(&self, world: &mut World, key: u8, sent_at: u8, acknowledged: bool) -> Option<()> {
        if acknowledged {
            world.hellos[usize::from(key)] &= !(1 << sent_at);
        } else {
            (world.repeated < self.repeated).then_some(())?;
            world.repeated += 1;
        }
        let before = world.keys.current;
        if let Some(next) = world.keys.on_hello(self.seed, key, sent_at) {
            world.keys = next;
        }
        world.older_won |= before.zip(world.keys.current).is_some_and(|((_, before), (_, after))| after < before);
        self.tell(world, key);
        Some(())
    }

    /// Sends a notice to a runner whose key was replaced.
    fn tell(&self, world: &mut World, key: u8) {
        if world.keys.is_retired(key) && !seeded!(self.seed, ReplacedIsNotTold) {
            world.notices |= 1 << key;
        }
    }

    fn notice(world: &mut World, key: u8) -> Option<()> {
        (world.notices & 1 << key != 0).then_some(())?;
        world.notices &= !(1 << key);
        let machine = &mut world.machines[usize::from(key / (RENEWALS + 1))];
        match *machine {
            Machine::Up { renewed, .. } if renewed != key % (RENEWALS + 1) => {}
            Machine::Up { renewed, .. } if renewed < RENEWALS => {
                *machine = Machine::Up { renewed: renewed + 1, announced: false };
            }
            Machine::Up { .. } => *machine = Machine::Ended,
            Machine::NotYet | Machine::Ended | Machine::Lost => {}
        }
        Some(())
    }
}

/// Returns the key of machine `m` after this many renewals.
const fn key_of(m: usize, renewed: u8) -> u8 {
    m as u8 * (RENEWALS + 1) + renewed
}

impl World {
    /// Returns whether the action comes if nothing else does: no fault, and nothing that a runner may leave out.
    const fn must_happen(&self, action: Action) -> bool {
        match action {
            Action::Deliver { acknowledged, .. } => acknowledged,
            Action::Say { m, .. } => matches!(self.machines[m], Machine::Up { announced: false, .. }),
            Action::Report { .. } | Action::Notice { .. } => true,
            Action::Boot | Action::Lose { .. } => false,
        }
    }

    /// Returns the machines that are up, with their keys.
    fn up(&self) -> impl Iterator<Item = (usize, u8)> {
        self.machines.into_iter().enumerate().filter_map(|(m, machine)| match machine {
            Machine::Up { renewed, .. } => Some((m, key_of(m, renewed))),
            Machine::NotYet | Machine::Ended | Machine::Lost => None,
        })
    }
}

impl Model for Hellos {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World {
            keys: Keys::default(),
            machines: [Machine::Up { renewed: 0, announced: false }, Machine::NotYet],
            hellos: [0; KEYS],
            notices: 0,
            now: 0,
            repeated: 0,
            lost: 0,
            more: 0,
            older_won: false,
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        actions.push(Action::Boot);
        for (m, _) in world.up() {
            actions.extend([Action::Lose { m }, Action::Report { m }]);
            actions.extend([false, true].map(|later| Action::Say { m, later }));
        }
        for (key, taken) in (0_u8..).zip(world.hellos) {
            for sent_at in (0..8).filter(|at| taken & 1 << at != 0) {
                actions.extend([false, true].map(|acknowledged| Action::Deliver { key, sent_at, acknowledged }));
            }
            actions.push(Action::Notice { key });
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = *world;
        let happened = match action {
            Action::Boot => (world.machines[1] == Machine::NotYet)
                .then(|| next.machines[1] = Machine::Up { renewed: 0, announced: false }),
            Action::Lose { m } => (world.lost < self.lost).then(|| {
                next.lost += 1;
                next.machines[m] = Machine::Lost;
            }),
            Action::Say { m, later } => self.say(&mut next, m, later),
            Action::Deliver { key, sent_at, acknowledged } => self.deliver(&mut next, key, sent_at, acknowledged),
            Action::Report { m } => world.up().find(|(up, _)| *up == m).map(|(_, key)| self.tell(&mut next, key)),
            Action::Notice { key } => Self::notice(&mut next, key),
        };
        happened.filter(|()| next != *world).map(|()| next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("a key that was replaced does not come back", |_, world: &World| {
                world.keys.current.is_none_or(|(key, _)| !world.keys.is_retired(key))
            }),
            Property::always("a late hello replaces no newer one", |_, world: &World| !world.older_won),
            Property::always("a machine that lives is believed in the end", is_believed_in_the_end),
            Property::sometimes("the second machine is believed", |_, world: &World| world.keys.believes(key_of(1, 0))),
            Property::sometimes("the first machine takes the install back", |_, world: &World| {
                world.keys.believes(key_of(0, 1)) && world.keys.is_retired(key_of(1, 0))
            }),
            Property::sometimes("a machine ends because another one has the install", |_, world: &World| {
                world.machines.contains(&Machine::Ended)
            }),
            Property::sometimes("a machine is lost before its hello is handled", |_, world: &World| {
                world.machines[0] == Machine::Lost && world.hellos[0] != 0 && world.keys.believes(key_of(1, 0))
            }),
        ]
    }
}

/// Where nothing is left that must happen, each machine that is up is the one that is believed. No step leads back, so that every
/// path comes to such a state.
fn is_believed_in_the_end(hellos: &Hellos, world: &World) -> bool {
    if world.up().all(|(_, key)| world.keys.believes(key)) {
        return true;
    }
    let mut actions = Vec::new();
    hellos.actions(world, &mut actions);
    let mut left = actions.into_iter().filter(|action| world.must_happen(*action));
    left.any(|action| hellos.next_state(world, action).is_some())
}
