//! Implements the ports of `app` on AWS, one file per service. `AWS_ENDPOINT_URL` can redirect all calls.

pub mod caller_identity;
pub mod config;
pub mod dead_letters;
pub mod error;
pub mod notifications;
pub mod objects;
pub mod queue;
pub mod registry;
mod reports_queue;
pub mod scaling;
pub mod signer;
#[cfg(test)]
mod silence;
pub mod store;
pub mod tenant_queues;
pub mod workflow;
