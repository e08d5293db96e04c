//! The answers that rest on the audit records of an install.

mod answer;
pub(super) mod approvals;
pub(super) mod askers;
pub(super) mod audit;
mod folder;
mod history;
pub(super) mod origin;
pub(super) mod outside;
pub(super) mod ran;
mod reconcile;
pub(super) mod sent;
mod source;
#[cfg(test)]
mod tests;
