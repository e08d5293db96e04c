//! Gives the files of a workspace to the program's user while it runs, and takes them back.
//!
//! Only this process changes the tree meanwhile: the program has not started, or has ended with all that it started.

use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, lchown};
use std::path::{Path, PathBuf};

/// Whose user inside the box is the runner outside.
const RUNNER: u32 = 0;

/// Makes `user` the owner of all in `trees`.
pub(super) fn give(trees: &[PathBuf], user: u32) -> io::Result<()> {
    trees.iter().try_for_each(|tree| own(tree, user))
}

/// Makes the runner the owner of all in `trees` again, and lets it enter every directory.
pub(super) fn take_back(trees: &[PathBuf]) -> io::Result<()> {
    trees.iter().try_for_each(|tree| own(tree, RUNNER))
}

/// Links are changed themselves and never followed.
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
