//! The results, in the audit trail, of attempts that did not start although an earlier record states that they start.

pub(super) const CANCELLED: &str = "cancelled before the start";
pub(super) const PUT_BACK: &str = "put back before the start";
pub(super) const REFUSED: &str = "refused before the start";

/// Returns whether an attempt with this result did not start.
pub(super) fn is_unstarted(result: &str) -> bool {
    [CANCELLED, PUT_BACK, REFUSED].contains(&result)
}
