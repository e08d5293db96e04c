//! The runner's key, the role that a job runs under, and the consent of the customer.

pub mod app_secrets;
pub mod consent;
pub mod credentials_endpoint;
pub mod denial;
pub mod enrol;
pub mod enrolment_marker;
pub mod job_aws;
pub mod known_roots;
pub mod mode;
pub mod order_claims;
mod released_program;
pub mod renewal;
pub mod role_proof;
pub mod runner_key;
pub mod sealing_key;
mod secret_values;
pub mod sensitive_inputs;
pub mod sensitive_outputs;
mod session_policy;
pub mod stack_outputs;
pub mod trusts;
