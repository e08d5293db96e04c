//! The values of a job that the vendor must not learn: the app's secrets, sensitive inputs and sensitive outputs. Which of
//! them a job may read is decided in the modules that are named after them.

pub mod app_secrets;
mod keyed_digest;
pub mod sensitive_inputs;
pub mod sensitive_outputs;
mod stored_secret;
mod tree;
