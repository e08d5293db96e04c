//! The role that a job runs under, the consent of the customer, and the licence of the install.

pub mod consent;
pub mod credentials_endpoint;
pub mod denial;
pub mod install_values;
pub mod job_aws;
pub mod licence;
pub mod mode;
pub mod order_claims;
mod released_program;
pub mod role_proof;
mod session_policy;
pub mod stack_outputs;
pub mod trusts;
