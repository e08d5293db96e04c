//! The end of a program: its result, and the time limit for the end after a stop.

use std::time::Duration;

use crate::job::StopReason;

/// The way in which a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The program ended by itself. After a signal, `code` is 128 plus the signal's number. `last_words` is the end of
    /// its output.
    Code { code: i32, last_words: String },
    /// The runner ended the program because the attempt had to stop.
    Stopped(StopReason),
}

impl Ended {
    /// Returns whether the program may have ended without its own cleanup, such as the removal of a lock that it holds:
    /// the runner stopped it, a signal killed it, or it crashed. A program in Go exits with 2 after a panic, and Terraform
    /// exits with 11. The code 255 does not count, because Pulumi exits with it after an ordinary error.
    pub(crate) const fn is_abrupt(&self) -> bool {
        match self {
            Self::Code { code, .. } => matches!(code, 2 | 11 | 129..=192),
            Self::Stopped(_) => true,
        }
    }
}

/// Returns the time limit for a program to end by itself after a stop. Terraform writes its state during this time. The
/// limit is less than [`crate::job::STOP_GRACE`]. It is short after a lost lease, because another attempt is about to
/// start, and after the customer switched the runner off, because the job has lost its permissions.
pub(super) const fn grace(reason: StopReason) -> Duration {
    match reason {
        StopReason::Cancelled | StopReason::TimedOut | StopReason::Draining => Duration::from_secs(15),
        StopReason::LeaseLost | StopReason::SwitchedOff => Duration::from_secs(4),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_was_killed_or_crashed_ended_abruptly() {
        let abrupt = |code: i32| Ended::Code { code, last_words: String::new() }.is_abrupt();

        assert!([2, 11, 128 + 2, 128 + 9, 128 + 15].into_iter().all(abrupt));
        assert!(![0, 1, 3, 128, 255].into_iter().any(abrupt));
        assert!(Ended::Stopped(StopReason::TimedOut).is_abrupt());
    }
}
