//! The parameters of an install stack that commands of the vendor and of the customer read.

/// The parameter, and the output, with the digest of the contract that the customer agrees to.
pub(crate) const ACCEPTED_CONTRACT: &str = "AcceptedContract";
/// The parameter with the time until which break-glass roles have permissions.
pub(crate) const BREAK_GLASS_UNTIL: &str = "BreakGlassUntil";
