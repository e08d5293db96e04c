//! Starts, announces and examines the runner, and starts the program of an upgrade.

mod checks;
pub mod doctor;
pub mod enrol;
pub mod launcher;
pub mod program;
pub mod start;
