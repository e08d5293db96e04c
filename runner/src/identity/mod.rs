//! Whose key signs, whose role a job runs under, and what the customer agreed to.

pub mod consent;
pub mod credentials_endpoint;
pub mod enrol;
pub mod mode;
pub mod runner_key;
pub mod sensitive_inputs;
