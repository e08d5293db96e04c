//! The runner: takes signed orders from a queue, does the jobs in its own account, and answers with signed reports.

#![warn(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

pub mod agent;
pub mod answers;
pub mod attempt;
pub mod audit;
pub mod aws;
pub mod backoff;
mod checks;
pub mod clock;
pub mod config;
pub mod consent;
pub mod control;
pub mod credentials_endpoint;
pub mod doctor;
pub mod drain;
pub mod enrol;
pub mod grants;
pub mod hands;
pub mod identity;
pub mod inbox;
pub mod job;
pub mod journal;
pub mod kept_logs;
pub mod lease;
pub mod log;
pub mod mode;
pub mod poll;
pub mod redact;
pub mod registry;
pub mod report;
pub mod running;
pub mod sandbox;
pub mod spool;
pub mod sqs;
pub mod stack;
pub mod start;
pub mod turns;
pub mod verify;
pub mod watchdog;

pub mod kinds;

mod files;
#[cfg(test)]
mod testing;
