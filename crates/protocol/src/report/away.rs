//! The report of a runner that stops taking orders, with the reason.

use serde::{Deserialize, Serialize};

/// The reason why a runner takes no orders until its next hello.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Away {
    pub reason: AwayReason,
    /// The reason as a sentence for people.
    pub detail: String,
}

/// The reason why a runner takes no orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AwayReason {
    /// The customer has switched the runner off in the install stack.
    SwitchedOff,
    /// Somebody on the customer's side has stopped the runner, or its machine.
    Stopped,
    /// The install stack is being deleted, or is gone.
    StackDeleted,
    /// The orders queue refuses the runner, although the runner is switched on and has its role.
    NoOrders,
}
