//! App versions: sync them, load them, show them and make releases of them.

pub mod create_release;
pub mod show_inputs;
pub mod show_toggles;
pub mod show_version;
pub mod sync_app;
pub mod upload_source;
pub mod versions;
