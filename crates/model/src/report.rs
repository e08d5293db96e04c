//! Reports on their way, as a set of bits: what is sent twice is the same bit, and any of them may arrive next.

use crate::job::{Event, Fence, Outcome};

/// The most dispatches of one job that the model follows.
pub const DISPATCHES: usize = 3;
/// The most receives of one order that the model follows.
pub const RECEIVES: usize = 3;
/// The runners: the first one, and the one that replaces it.
pub const RUNNERS: usize = 2;

/// What a report says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Says {
    Started,
    Progress,
    Finished(Outcome),
    /// The expired order is given back.
    Returned,
}

/// A report of one attempt at one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Report {
    pub fence: Fence,
    pub runner: u8,
    pub says: Says,
}

/// In the order in which an attempt says them. `Blocked` is left out: to the protocol it is a failure.
const ALL_SAYS: [Says; 7] = [
    Says::Started,
    Says::Progress,
    Says::Finished(Outcome::Succeeded),
    Says::Finished(Outcome::Failed),
    Says::Finished(Outcome::Interrupted),
    Says::Finished(Outcome::Cancelled),
    Says::Returned,
];
/// The bits of one attempt.
const SPAN: usize = ALL_SAYS.len();
/// What an order may be deleted after.
const FINISHED_BITS: u128 = 0b111_1100;

impl Report {
    /// Returns the event that the control plane makes of it.
    pub const fn event(self) -> Event {
        let Self { fence, runner, says } = self;
        match says {
            Says::Started => Event::Started { fence, seq: 1, runner },
            Says::Progress => Event::Progress { fence, seq: 2, runner },
            Says::Finished(outcome) => Event::Finished { fence, runner, outcome },
            Says::Returned => Event::Returned { fence, runner },
        }
    }

    fn bit(self) -> usize {
        let says = ALL_SAYS.iter().position(|one| *one == self.says).unwrap_or(0);
        let attempt = usize::from(self.fence.dispatch - 1) * RECEIVES + usize::from(self.fence.receive - 1);
        (attempt * RUNNERS + usize::from(self.runner)) * SPAN + says
    }

    fn from_bit(bit: usize) -> Self {
        let (speaker, says) = (bit / SPAN, bit % SPAN);
        let (attempt, runner) = (speaker / RUNNERS, speaker % RUNNERS);
        let fence = Fence { dispatch: (attempt / RECEIVES) as u8 + 1, receive: (attempt % RECEIVES) as u8 + 1 };
        Self { fence, runner: runner as u8, says: ALL_SAYS.get(says).copied().unwrap_or(Says::Started) }
    }
}

/// A set of reports about one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Reports(u128);

impl Reports {
    /// No report.
    pub const NONE: Self = Self(0);

    /// Adds a report; one that is there already stays one.
    pub fn add(&mut self, report: Report) {
        self.0 |= 1 << report.bit();
    }

    /// Takes a report out.
    pub fn remove(&mut self, report: Report) {
        self.0 &= !(1 << report.bit());
    }

    /// Returns whether `report` is there.
    pub fn has(self, report: Report) -> bool {
        self.0 & (1 << report.bit()) != 0
    }

    /// Returns the oldest report, by dispatch, receive and sequence.
    pub fn first(self) -> Option<Report> {
        (self.0 != 0).then(|| Report::from_bit(self.0.trailing_zeros() as usize))
    }

    /// Returns every report.
    pub fn iter(self) -> impl Iterator<Item = Report> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let bit = (rest != 0).then_some(rest.trailing_zeros() as usize)?;
            rest &= rest - 1;
            Some(Report::from_bit(bit))
        })
    }

    /// Returns whether the end of an attempt at `dispatch`, or the return of its order, is among them.
    pub fn ends(self, dispatch: u8) -> bool {
        self.0 & (of_dispatch(dispatch) & finished()) != 0
    }

    /// Returns whether anything about `dispatch` is among them.
    pub const fn speaks_of(self, dispatch: u8) -> bool {
        self.0 & of_dispatch(dispatch) != 0
    }

    /// Returns whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

const BITS_PER_DISPATCH: usize = RECEIVES * RUNNERS * SPAN;

const fn of_dispatch(dispatch: u8) -> u128 {
    ((1 << BITS_PER_DISPATCH) - 1) << (BITS_PER_DISPATCH * (dispatch as usize - 1))
}

fn finished() -> u128 {
    (0..DISPATCHES * RECEIVES * RUNNERS).fold(0, |bits, attempt| bits | FINISHED_BITS << (attempt * SPAN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_report_has_its_own_bit_and_comes_back() {
        for bit in 0..DISPATCHES * BITS_PER_DISPATCH {
            let report = Report::from_bit(bit);
            let mut reports = Reports::default();

            reports.add(report);

            assert_eq!(report.bit(), bit);
            assert_eq!(reports.iter().collect::<Vec<_>>(), [report]);
            assert_eq!(reports.ends(report.fence.dispatch), matches!(report.says, Says::Finished(_) | Says::Returned));
            for other in (1..=DISPATCHES as u8).filter(|other| *other != report.fence.dispatch) {
                assert!(!reports.speaks_of(other));
            }
        }
    }
}
