//! The fence of an attempt, which shows which of two attempts at one job is the later one.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The identity of an attempt. Fences are compared by dispatch, then by receive count. The control plane accepts only
/// reports of the attempt with the highest fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fence {
    /// The order's dispatch number.
    pub dispatch: u32,
    /// The SQS `ApproximateReceiveCount` of the delivery that started the attempt.
    pub receive: u32,
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.dispatch, self.receive)
    }
}
