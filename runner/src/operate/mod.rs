//! Starts and examines the runner.

mod checks;
pub mod doctor;
pub mod launcher;
pub mod program;
pub mod start;
