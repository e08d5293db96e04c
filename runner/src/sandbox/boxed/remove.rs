//! Removes what a job has left on disk, also where it is another user's: then a box does it, whose first process may.

use std::io;
use std::path::{Path, PathBuf};

use super::Boxed;
use crate::config::Config;
use crate::files;
use crate::sandbox::bubblewrap::Spec;
use crate::sandbox::frame::{FromInit, ToInit};
use crate::sandbox::purpose::Purpose;
use crate::sandbox::users::JobUser;

/// Removes the directory `tree` with all in it. A job that was killed leaves files which belong to its own user.
///
/// # Errors
/// When something of it stays.
pub async fn remove(tree: &Path, config: &Config) -> io::Result<()> {
    match blocking(tree).await {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            clear(tree, config).await?;
            // The empty directory may be the other user's still; the one above it is the runner's.
            tokio::fs::remove_dir(tree).await
        }
        other => other,
    }
}

/// A million files take a while, and leases are renewed meanwhile.
async fn blocking(tree: &Path) -> io::Result<()> {
    let tree: PathBuf = tree.to_owned();
    tokio::task::spawn_blocking(move || files::remove_tree(&tree)).await.map_err(io::Error::other)?
}

/// Removes all in `tree` from a box with every user that a job of this machine can have had.
async fn clear(tree: &Path, config: &Config) -> io::Result<()> {
    let user = JobUser::find();
    let purpose = if user.can_build_images() { Purpose::ImageBuild } else { Purpose::Program };
    let spec = Spec { purpose, ..Spec::plain(tree, &config.limits) };
    let mut made = Boxed::make(&spec, &user, &config.limits).await.map_err(io::Error::other)?;
    made.channel.send(&ToInit::Clear, &[]).await?;
    match made.next().await {
        Some(FromInit::Cleared { error: None }) => Ok(()),
        Some(FromInit::Cleared { error: Some(error) }) => Err(io::Error::other(error)),
        other => Err(io::Error::other(format!("the box said {other:?}"))),
    }
}
