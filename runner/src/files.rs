//! Writing small files so that a crash leaves the old one or the new one, never half of one.

use std::fs::{File, OpenOptions};
use std::io::{Result, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Writes `bytes` to a temporary file next to `path` and renames it; durable when this returns.
pub(crate) fn write_atomic(path: &Path, bytes: &[u8]) -> Result<()> {
    let staged = staged(path);
    let mut file = open_private(&staged)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&staged, path)?;
    sync_parent(path)
}

/// As [`write_atomic`], but a power failure soon after may lose the file (the end of a process does not).
pub(crate) fn write_atomic_relaxed(path: &Path, bytes: &[u8]) -> Result<()> {
    let staged = staged(path);
    open_private(&staged)?.write_all(bytes)?;
    std::fs::rename(&staged, path)
}

/// Makes the name of `path` durable in its directory.
pub(crate) fn sync_parent(path: &Path) -> Result<()> {
    match path.parent() {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

/// Makes `path` a directory that only this user can enter.
pub(crate) fn make_private_dir(path: &Path) -> Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Removes a directory with all in it, also where a program took the owner's permissions away. Follows no link.
pub(crate) fn remove_tree(path: &Path) -> Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            open_directories(path);
            std::fs::remove_dir_all(path)
        }
        other => other,
    }
}

/// Lets the owner enter and change every directory below `top`, as far as that is possible.
fn open_directories(top: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let mut waiting = vec![top.to_owned()];
    while let Some(directory) = waiting.pop() {
        let _ = std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o700));
        let entries = std::fs::read_dir(&directory).into_iter().flatten().flatten();
        let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        waiting.extend(below.map(|entry| entry.path()));
    }
}

fn staged(path: &Path) -> std::path::PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".new");
    path.with_file_name(name)
}

fn open_private(path: &Path) -> Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_tree_whose_directories_are_closed_is_removed_and_what_its_links_name_stays() {
        let top = tempfile::tempdir().unwrap();
        let (tree, kept) = (top.path().join("tree"), top.path().join("kept"));
        std::fs::create_dir_all(tree.join("a/b")).unwrap();
        std::fs::create_dir(&kept).unwrap();
        std::os::unix::fs::symlink(&kept, tree.join("a/b/link")).unwrap();
        for closed in ["a/b", "a"] {
            std::fs::set_permissions(tree.join(closed), std::fs::Permissions::from_mode(0o000)).unwrap();
        }

        remove_tree(&tree).unwrap();

        assert!(!tree.exists() && kept.is_dir());
        assert_eq!(std::fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o755);
    }
}
