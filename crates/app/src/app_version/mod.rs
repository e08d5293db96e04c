//! App versions: synced, loaded, shown, and fixed in releases.

pub mod create_release;
pub mod show_inputs;
pub mod show_version;
pub mod sync_app;
pub mod versions;
