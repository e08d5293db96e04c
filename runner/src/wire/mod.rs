//! Messages: what comes in, whether it is believed, and what goes out.

pub mod clock;
pub mod grants;
pub mod inbox;
pub mod report;
pub mod spool;
pub mod sqs;
pub mod verify;
