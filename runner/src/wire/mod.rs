//! The messages of the runner: receives and verifies incoming ones, and sends reports.

pub mod clock;
pub mod grants;
pub mod inbox;
pub mod report;
pub mod spool;
pub mod sqs;
pub mod verify;
