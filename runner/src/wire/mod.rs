//! The messages of the runner: takes and verifies those that come in, and sends reports.

pub mod clock;
pub mod grants;
pub mod inbox;
pub mod report;
pub mod spool;
pub mod sqs;
pub mod verify;
