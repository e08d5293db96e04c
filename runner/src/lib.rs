//! The runner: receives signed orders from a queue, executes the jobs in the customer's account, and sends signed
//! reports.
//!
//! The modules form layers. Each module uses only modules in the lines above its own line:
//!
//! 1. `attribute_names`, `aws`, `backoff`, `core_dump`, `files`, `process`, `repeat`, `state_objects`, `workspace`
//! 2. `bucket_object`, `config`, `registry`, `unpacked_trees`, `upgrade`
//! 3. `keys`, `tool_image`
//! 4. `record`
//! 5. `secrets`
//! 6. `job`
//! 7. `sandbox`, `wire`
//! 8. `identity`, `policies`
//! 9. `kubernetes`
//! 10. `approvals`
//! 11. `kinds`
//! 12. `work`
//! 13. `operate`

pub mod approvals;
mod attribute_names;
pub mod aws;
pub mod backoff;
mod bucket_object;
pub mod config;
mod core_dump;
#[cfg(test)]
mod durability_tests;
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
