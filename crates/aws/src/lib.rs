//! The ports of `app` on AWS, one file per service. Where the calls go is `AWS_ENDPOINT_URL`'s business alone.

pub mod config;
pub mod error;
pub mod objects;
pub mod queue;
pub mod registry;
pub mod signer;
pub mod store;
pub mod workflow;
