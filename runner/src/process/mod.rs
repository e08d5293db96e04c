//! The clock, the shutdown and the watchdog of the runner's process, which its loops share.

pub mod clock;
pub mod drain;
pub mod watchdog;
