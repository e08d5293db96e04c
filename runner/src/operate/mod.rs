//! Starts and examines the runner.

pub mod checks;
pub mod doctor;
pub mod program;
pub mod start;
