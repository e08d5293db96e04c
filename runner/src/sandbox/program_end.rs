//! The end of a program: its result, and the time limit for the end after a stop.

use std::time::Duration;

use crate::work::job::StopReason;

/// The way in which a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The program ended by itself. After a signal, `code` is 128 plus the signal's number. `last_words` is the end of
    /// its output.
    Code { code: i32, last_words: String },
    /// The runner ended the program because the attempt had to stop.
    Stopped(StopReason),
}

/// Returns the time limit for a program to end by itself after a stop. Terraform writes its state during this time. The
/// limit is less than [`crate::work::job::STOP_GRACE`]. After a lost lease it is short, because another attempt is
/// about to start.
pub(super) const fn grace(reason: StopReason) -> Duration {
    match reason {
        StopReason::Cancelled | StopReason::TimedOut | StopReason::Draining => Duration::from_secs(15),
        StopReason::LeaseLost | StopReason::SwitchedOff => Duration::from_secs(4),
    }
}
