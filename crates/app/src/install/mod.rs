//! Installs: create, register, disable and enable them, set their inputs and labels, delete installs in which nothing
//! ever ran, and forget installs. The build runner's reserved install is registered here too.

pub mod create_install;
pub mod delete_install;
pub mod disable_install;
pub mod enable_install;
mod end;
pub mod enrol_build_runner;
mod forget;
pub mod forget_install;
pub mod register_install;
pub mod remove_forgotten;
mod report_shards;
pub mod set_approvals;
pub mod set_inputs;
pub mod set_labels;
pub mod set_licence;
pub mod set_release;
pub mod set_toggles;
mod settings_change;
pub mod turn_queues;
pub mod upgrade_runner;
