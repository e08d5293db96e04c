//! App versions: load them, show them, and find their builds and the version that an install follows.

pub mod builds;
pub(crate) mod install_release;
pub mod show_inputs;
pub mod show_toggles;
pub mod show_version;
pub mod versions;
