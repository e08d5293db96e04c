//! App versions: sync them, load them, show them, make releases of them, and bring installs to those.

pub mod builds;
pub mod create_release;
pub mod follow_channel;
pub(crate) mod install_release;
pub mod move_channel;
pub mod show_inputs;
pub mod show_toggles;
pub mod show_version;
pub mod sync_app;
pub mod upload_source;
pub mod versions;
