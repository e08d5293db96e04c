//! The answers from the audit records of an install.

mod answer;
pub(super) mod approvals;
pub(super) mod asked;
pub(super) mod audit;
pub(super) mod evidence;
pub(super) mod history;
pub(super) mod licence;
mod local_copy;
mod not_started;
pub(super) mod origin;
pub(super) mod outside;
pub(super) mod ran;
mod reconcile;
pub(super) mod sent;
#[cfg(test)]
mod tests;
