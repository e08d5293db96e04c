//! Makes the program's user the owner of the workspace's files before the program starts, and makes the runner their
//! owner again after the program has ended.
//!
//! No other process changes the files meanwhile: the program has not started yet, or all of its processes have ended.

use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, lchown};
use std::path::{Path, PathBuf};

/// The user id inside the box that is the runner's user outside.
const RUNNER: u32 = 0;

/// Makes `user` the owner of the directories `trees` and of everything in them.
pub(super) fn give(trees: &[PathBuf], user: u32) -> io::Result<()> {
    trees.iter().try_for_each(|tree| own(tree, user))
}

/// Makes the runner the owner of the directories `trees` and of everything in them, and gives it access to every
/// directory.
pub(super) fn take_back(trees: &[PathBuf]) -> io::Result<()> {
    trees.iter().try_for_each(|tree| own(tree, RUNNER))
}

/// Changes the owner of `top` and of everything in it. It changes symbolic links themselves and never follows them.
fn own(top: &Path, user: u32) -> io::Result<()> {
    let mut waiting = vec![top.to_owned()];
    while let Some(path) = waiting.pop() {
        let data = path.symlink_metadata()?;
        if (data.uid(), data.gid()) != (user, user) {
            lchown(&path, Some(user), Some(user))?;
        }
        if data.is_dir() {
            if data.mode() & 0o700 != 0o700 {
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(data.mode() & 0o7777 | 0o700))?;
            }
            for entry in std::fs::read_dir(&path)? {
                waiting.push(entry?.path());
            }
        }
    }
    Ok(())
}
