//! Starting the runner, examining it, and taking it down.

pub(crate) mod checks;
pub mod doctor;
pub mod drain;
pub mod start;
pub mod watchdog;
