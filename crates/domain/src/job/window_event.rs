//! The events of the customer's windows that may change a job.

use freehold_protocol::report::Fence;
use freehold_protocol::{KeyId, Timestamp};

/// An event that is about the customer's windows.
#[derive(Debug, Clone, PartialEq)]
pub enum WindowEvent {
    /// The control plane does not send the order of this dispatch, since no change may start now.
    Closed { dispatch: u32, until: Option<Timestamp>, reason: String },
    /// The runner did not start the order, since no change may start now. No attempt works.
    Refused { fence: Fence, runner: KeyId, until: Option<Timestamp>, reason: String },
    /// Changes may start, or the runner is to decide again.
    Opened,
}

impl WindowEvent {
    /// Returns the event's name, as audit records write it.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Closed { .. } => "window_closed",
            Self::Refused { .. } => "outside_window",
            Self::Opened => "window_opened",
        }
    }

    /// Returns the attempt that the event is about, and its runner.
    pub(super) const fn attempt(&self) -> Option<(Fence, &KeyId)> {
        match self {
            Self::Refused { fence, runner, .. } => Some((*fence, runner)),
            Self::Closed { .. } | Self::Opened => None,
        }
    }
}
