//! Installs: create, register, disable and enable them, set their inputs, and delete installs in which nothing ever
//! ran.

pub mod create_install;
pub mod delete_install;
pub mod disable_install;
pub mod enable_install;
pub mod register_install;
pub mod set_inputs;
