//! App configs: takes the sources that a vendor uploads, and makes an app version of the config at each sync.

pub mod sync_app;
pub mod upload_source;
