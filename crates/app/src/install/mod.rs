//! Installs: create them, register them, set their inputs, disable and enable them.

pub mod create_install;
pub mod disable_install;
pub mod register_install;
pub mod set_inputs;
