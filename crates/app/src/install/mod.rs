//! Installs: create them, register them, set their inputs, disable and enable them, delete those that never ran.

pub mod create_install;
pub mod delete_install;
pub mod disable_install;
pub mod enable_install;
pub mod register_install;
pub mod set_inputs;
