//! Workflows and their jobs, from start to end.

pub mod accept_report;
pub mod admit_report;
pub mod advance;
pub mod approval;
pub mod build_components;
pub mod cancel_job;
pub mod cancel_workflow;
pub mod continuation;
pub mod deploy_components;
pub mod dispatch_job;
pub mod finish_workflow;
mod order_work;
mod plan_deploy;
pub mod plan_workflow;
pub mod put_back_messages;
pub mod roll_back;
pub mod run_action;
pub(crate) mod schedules;
pub mod teardown_install;
