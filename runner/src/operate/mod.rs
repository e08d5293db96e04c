//! Starts, examines and shuts down the runner.

pub mod checks;
pub mod doctor;
pub mod drain;
pub mod program;
pub mod start;
pub mod watchdog;
