//! The directory of an attempt.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tracing::warn;

use crate::config::Config;
use crate::sandbox;

/// The directory of an attempt. Dropping it removes the directory and its contents.
pub(super) struct Workspace(PathBuf, Arc<Config>);

impl Workspace {
    pub(super) fn new(path: PathBuf, config: Arc<Config>) -> Self {
        Self(path, config)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        let (path, config) = (std::mem::take(&mut self.0), self.1.clone());
        tokio::spawn(async move {
            if let Err(error) = sandbox::remove(&path, &config).await {
                warn!("The workspace `{}` was not removed: {error}", path.display());
            }
        });
    }
}
