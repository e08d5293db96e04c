//! Starting the runner, examining it, and taking it down.

pub mod checks;
pub mod doctor;
pub mod drain;
pub mod program;
pub mod start;
pub mod watchdog;
