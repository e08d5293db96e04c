//! Installs: created, registered, given inputs, disabled and enabled.

pub mod create_install;
pub mod disable_install;
pub mod register_install;
pub mod set_inputs;
