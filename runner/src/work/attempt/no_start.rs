//! The results, in the audit trail, of attempts that did not start although an earlier record states that they start.

pub(super) const CANCELLED: &str = "cancelled before the start";
pub(super) const PUT_BACK: &str = "put back before the start";
pub(super) const REFUSED: &str = "refused before the start";
