//! The records of jobs: their logs and the audit trail.

pub mod audit;
pub mod log;
pub mod log_store;
pub mod unstarted_notes;
