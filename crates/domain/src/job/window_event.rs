//! The events of the customer's windows that may change a job.

use freehold_protocol::report::Fence;
use freehold_protocol::{KeyId, Timestamp};

/// An event of the customer's change windows.
#[derive(Debug, Clone, PartialEq)]
pub enum WindowEvent {
    /// The control plane does not send the order of this dispatch, because no change may start now.
    Closed { dispatch: u32, until: Option<Timestamp>, reason: String },
    /// The runner did not start the order, because no change may start now. No attempt is running.
    Refused { fence: Fence, runner: KeyId, until: Option<Timestamp>, reason: String },
    /// Changes may start now, or the runner has to decide again whether they may.
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
