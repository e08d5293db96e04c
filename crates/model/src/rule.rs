//! The names of the rules, and the bit by which a world remembers that a step broke one.

use crate::bounds::Bounds;

/// A rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Rule {
    OneAtATime,
    NoEffectWithoutLease,
    NoEffectAfterExpiry,
    DoneOnce,
    FinishedIsNotStartedAgain,
    CancelledIsNotStarted,
    JournalFirst,
    NoOlderOrder,
    NoStaleReport,
    NoRetiredKey,
    EndAbsorbs,
    CancelAsksOnly,
    GivenUpOnlyAfterExpiry,
    DispatchFollowsEnd,
    AttemptsAreBounded,
    NoOutcomeLost,
    DeletedWhenDurable,
    EveryJobEnds,
    NoOrderAfterCancel,
    WaitingIsNotLost,
    NoEffectWhilePaused,
}

impl Rule {
    /// The rules that stand on SQS handing one delivery of a FIFO queue to one receiver only.
    const NEED_ONE_RECEIVER: [Self; 4] =
        [Self::OneAtATime, Self::NoEffectWithoutLease, Self::DoneOnce, Self::NoOutcomeLost];

    /// Returns the bits of the rules that cannot hold within `bounds`.
    pub(crate) fn excused(bounds: &Bounds) -> u32 {
        if bounds.twins == 0 { 0 } else { Self::NEED_ONE_RECEIVER.into_iter().fold(0, |bits, rule| bits | rule.bit()) }
    }

    /// Returns the bit that marks the rule as broken.
    pub const fn bit(self) -> u32 {
        1 << self as u8
    }
}
