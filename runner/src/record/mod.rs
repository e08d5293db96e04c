//! What is kept of a job: its log and the audit trail.

pub mod audit;
pub mod log;
pub mod log_store;
pub mod redact;
