//! The audit chain, as far as it is about one order: who recorded what about which delivery, and what that excludes.
//!
//! The product's own code decides what the records exclude (`freehold_protocol::audit::exclusion`).

use freehold_protocol::Timestamp;
use freehold_protocol::audit::exclusion::{Attempt, OrderDelivery, attempts, excluding};
pub use freehold_protocol::audit::exclusion::{End, Exclusion};
use freehold_protocol::report::Fence;

use crate::bug::{Seed, seeded};

/// The most records: each delivery has its start and its end, and may be given back.
const RECORDS: usize = 12;

/// One delivery of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Delivery {
    pub message: u8,
    pub receive: u8,
}

/// What a machine recorded: the start of a delivery, as [`End::None`], or its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Record {
    pub machine: u8,
    pub delivery: Delivery,
    pub end: End,
}

/// The records, the oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Chain([Option<Record>; RECORDS]);

impl Chain {
    /// Writes a record under the next number.
    pub fn add(&mut self, record: Record) {
        let end = self.records().count();
        self.0[end] = Some(record);
    }

    /// Returns every record, the oldest first.
    pub fn records(self) -> impl Iterator<Item = Record> {
        self.0.into_iter().flatten()
    }

    /// Returns whether the chain has the record.
    pub fn has(self, record: Record) -> bool {
        self.0.contains(&Some(record))
    }

    /// Returns the chain as it was when somebody added `record`; the whole chain if it has no such record.
    pub fn before(self, record: Record) -> Self {
        let mut before = Self::default();
        self.records().take_while(|one| *one != record).for_each(|one| before.add(one));
        before
    }

    /// Returns how the records exclude the delivery; those of the machine `own` do not.
    pub fn excluding(self, seed: Seed, own: Option<u8>, delivery: Delivery) -> Option<Exclusion> {
        let attempts = self.misread(seed, attempts(self.attempts()));
        excluding(&attempts, own, delivery.of_order())
    }

    fn attempts(self) -> impl Iterator<Item = Attempt<u8>> {
        self.records().map(Record::attempt)
    }

    /// Returns the attempts as a machine counts them that makes the mistake of `seed`.
    fn misread(self, seed: Seed, mut attempts: Vec<Attempt<u8>>) -> Vec<Attempt<u8>> {
        if seed == Seed::default() {
            return attempts;
        }
        for attempt in &mut attempts {
            attempt.end = match (attempt.end, self.recorded(*attempt)) {
                (End::Excluded, End::None) if seeded!(seed, ExcludedStartCounts) => End::None,
                (End::Excluded, End::Excluded) if seeded!(seed, RefusalExcludesOthers) => End::None,
                (End::None, End::Outcome) if seeded!(seed, SupersededOutcomeCounts) => End::Outcome,
                (End::Outcome, _) if seeded!(seed, OutcomeIsForgotten) => End::None,
                (End::PutBack, _) if seeded!(seed, PutBackCountsAsStart) => End::None,
                (End::PutBack, _) if seeded!(seed, PutBackExcludesStarted) => End::Refused,
                (End::GivenBack, _) if seeded!(seed, GivenBackCountsAsRefused) => End::Refused,
                (end, _) => end,
            };
            if attempt.end == End::None && seeded!(seed, StartExcludesRedelivery) {
                attempt.delivery.fence.receive = u32::MAX;
            }
        }
        let is_forgotten = |one: &Attempt<u8>| {
            let counts = match one.end {
                End::None => seeded!(seed, ContinuedStartCounts),
                End::PutBack => seeded!(seed, PutBackOfRefusedCounts),
                End::Excluded | End::Refused | End::GivenBack | End::Outcome => false,
            };
            counts && self.recorded(*one) == one.end && !attempts.iter().any(|other| is_same(other, one))
        };
        let forgotten: Vec<_> = self.attempts().filter(is_forgotten).collect();
        attempts.extend(forgotten);
        attempts
    }

    /// Returns what the machine of an attempt recorded last about it.
    fn recorded(self, of: Attempt<u8>) -> End {
        self.attempts().filter(|one| is_same(one, &of)).fold(of.end, |_, one| one.end)
    }
}

/// Returns whether both are an attempt of one machine at one delivery.
fn is_same(one: &Attempt<u8>, other: &Attempt<u8>) -> bool {
    (one.machine, one.delivery) == (other.machine, other.delivery)
}

impl Record {
    fn attempt(self) -> Attempt<u8> {
        Attempt { machine: self.machine, delivery: self.delivery.of_order(), end: self.end }
    }
}

impl Delivery {
    /// Returns the delivery as the product names it. The original is sent first.
    fn of_order(self) -> OrderDelivery {
        let fence = Fence { dispatch: 1, receive: self.receive.into() };
        OrderDelivery { fence, sent_at: Some(Timestamp::from_millis(u64::from(self.message) + 1)) }
    }
}
