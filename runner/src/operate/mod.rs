//! Starts and examines the runner.

mod checks;
pub mod doctor;
pub mod program;
pub mod start;
