//! How much time has passed, in the few facts that the control plane counts.

/// How much time has passed, as far as the control plane counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Time {
    /// An attempt may no longer be started under the current order.
    pub too_late: bool,
    /// The current order has expired, and the grace is over.
    pub outlived: bool,
    /// The job has waited for its runner for as long as it may.
    pub waited: bool,
    /// An attempt has begun, perhaps under an earlier order.
    pub begun: bool,
    /// The job has waited for the customer's window for as long as it may.
    pub closed_too_long: bool,
    /// The plan for which the job waits may be approved no more.
    pub plan_expired: bool,
    /// The same, and its approval had time to arrive.
    pub plan_over: bool,
}
