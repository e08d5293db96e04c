//! Removes the files that a job left on disk. When they do not belong to the runner's user, the first process of a box
//! removes them.

use std::io;
use std::path::{Path, PathBuf};

use super::Boxed;
use crate::config::Config;
use crate::files;
use crate::sandbox::bubblewrap::Spec;
use crate::sandbox::frame::{FromInit, ToInit};
use crate::sandbox::purpose::Purpose;
use crate::sandbox::users::JobUser;

/// Removes the directory `tree` and its content. A job that was killed leaves files that belong to the job's user.
///
/// # Errors
/// When a part of the directory could not be removed.
pub async fn remove(tree: &Path, config: &Config) -> io::Result<()> {
    match blocking(tree).await {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            clear(tree, config).await?;
            // The empty directory may still belong to the other user. The runner may remove it,
            // because the runner owns its parent.
            tokio::fs::remove_dir(tree).await
        }
        other => other,
    }
}

/// Removes `tree` on a blocking thread. A million files take a while, and the runner must renew leases meanwhile.
async fn blocking(tree: &Path) -> io::Result<()> {
    // Usually there is nothing to remove. To find that out on another thread would delay each job.
    tree.symlink_metadata()?;
    let tree: PathBuf = tree.to_owned();
    tokio::task::spawn_blocking(move || files::remove_tree(&tree)).await.map_err(io::Error::other)?
}

/// Lets the first process of a new box remove the content of `tree`. This process may remove the files of every user
/// that a job on this machine can have, because the box maps all of them.
async fn clear(tree: &Path, config: &Config) -> io::Result<()> {
    let user = JobUser::find();
    let purpose = if user.can_build_images() { Purpose::ImageBuild } else { Purpose::Program };
    let spec = Spec { purpose, ..Spec::plain(tree, None, &config.limits) };
    let mut made = Boxed::make(&spec, &user, &config.limits).await.map_err(io::Error::other)?;
    made.channel.send(&ToInit::Clear, &[]).await?;
    match made.next().await {
        Some(FromInit::Cleared { error: None }) => Ok(()),
        Some(FromInit::Cleared { error: Some(error) }) => Err(io::Error::other(error)),
        Some(other) => Err(io::Error::other(format!("the box sent the unexpected message `{}`", other.name()))),
        None => Err(io::Error::other("the box ended before it had removed the files")),
    }
}
