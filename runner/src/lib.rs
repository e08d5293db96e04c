//! The runner: receives signed orders from a queue, executes the jobs in the customer's account, and sends signed
//! reports.

pub mod approvals;
mod attribute_names;
pub mod aws;
pub mod backoff;
mod bucket_object;
pub mod config;
mod core_dump;
mod files;
pub mod identity;
pub mod job;
pub mod keys;
pub mod kinds;
mod kubernetes;
pub mod operate;
mod policies;
pub mod process;
pub mod record;
pub mod registry;
pub mod repeat;
pub mod sandbox;
pub mod secrets;
pub mod state_objects;
#[cfg(test)]
mod testing;
pub mod tool_image;
mod unpacked_trees;
pub mod upgrade;
pub mod wire;
pub mod work;
mod workspace;
