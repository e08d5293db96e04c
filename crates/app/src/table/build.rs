//! The rows of builds.

use freehold_domain::build::Build;
use freehold_protocol::{AppName, BuildId};

use super::app::app_pk;
use super::record::{Record, key};
use crate::ports::Key;

/// Returns the key of a build's row.
pub fn build_key(app: &AppName, build: &BuildId) -> Key {
    key(app_pk(app), format!("build#{build}"))
}

impl Record for Build {
    fn key(&self) -> Key {
        build_key(&self.app, &self.id)
    }
}
