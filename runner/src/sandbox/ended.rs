//! How a program ended, and how long it has to end when it must stop.

use std::time::Duration;

use crate::work::job::StopReason;

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// By itself; 128 and the signal's number when a signal ended it.
    Code { code: i32, last_words: String },
    /// The attempt had to stop.
    Stopped(StopReason),
}

/// Returns how long a program has to end by itself, less than [`crate::work::job::STOP_GRACE`]. Terraform writes its state then;
/// a lost lease leaves little time, as another attempt is about to start.
pub(super) const fn grace(reason: StopReason) -> Duration {
    match reason {
        StopReason::Cancelled | StopReason::TimedOut | StopReason::Draining => Duration::from_secs(15),
        StopReason::LeaseLost | StopReason::SwitchedOff => Duration::from_secs(4),
    }
}
