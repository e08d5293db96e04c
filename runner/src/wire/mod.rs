//! Receives and verifies the messages of the control plane, and sends the runner's reports.

pub mod grants;
pub mod inbox;
pub mod message_group;
pub mod report;
pub mod sent_reports;
pub mod spool;
pub mod sqs;
pub mod verify;
