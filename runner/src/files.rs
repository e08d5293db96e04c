//! Writing small files so that a crash leaves the old one or the new one, never half of one; and removing directories.

use std::ffi::{CStr, CString};
use std::fs::{File, OpenOptions};
use std::io::{Result, Write as _};
use std::ops::RangeFrom;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, chmodat, fchmod, openat, renameat, unlinkat};
use rustix::io::Errno;

/// How many entries of a directory are in memory at once.
const AT_ONCE: usize = 10_000;

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
    clear(path)?;
    std::fs::remove_dir(path)
}

/// Removes all that is in the directory `top`.
///
/// A directory in a directory is moved up to `top` first. So a program that made a hundred thousand directories, each in the
/// one before, costs neither a descriptor nor a piece of the stack for each.
pub(crate) fn clear(top: &Path) -> Result<()> {
    let top = open_directory(CWD, top)?;
    let mut fresh = 0..;
    loop {
        let names = some_names(&top)?;
        if names.is_empty() {
            return Ok(());
        }
        for name in names {
            if !unlinked(&top, &name)? {
                move_up_all(&open_directory(top.as_fd(), &name)?, &top, &mut fresh)?;
                unlinkat(&top, &name, AtFlags::REMOVEDIR)?;
            }
        }
    }
}

/// Removes the files in `directory`, and moves its directories into `top` under names from `fresh`.
fn move_up_all(directory: &OwnedFd, top: &OwnedFd, fresh: &mut RangeFrom<u64>) -> Result<()> {
    loop {
        let names = some_names(directory)?;
        if names.is_empty() {
            return Ok(());
        }
        for name in names {
            if !unlinked(directory, &name)? {
                // Whoever moves a directory has to be able to write to it.
                let _ = chmodat(directory, &name, Mode::RWXU, AtFlags::empty());
                move_up(directory, &name, top, fresh)?;
            }
        }
    }
}

fn move_up(directory: &OwnedFd, name: &CStr, top: &OwnedFd, fresh: &mut RangeFrom<u64>) -> Result<()> {
    for number in fresh {
        match renameat(directory, name, top, format!(".{number}")) {
            Ok(()) => return Ok(()),
            // The name is taken.
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Removes what is not a directory; returns whether it did.
fn unlinked(directory: &OwnedFd, name: &CStr) -> Result<bool> {
    match unlinkat(directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(Errno::ISDIR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Opens a directory, and lets its owner change it as far as that is possible.
fn open_directory(at: BorrowedFd<'_>, name: impl rustix::path::Arg + Copy) -> Result<OwnedFd> {
    let open =
        || openat(at, name, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty());
    let directory = match open() {
        Err(Errno::ACCESS) => {
            // It is a directory: what else is there is refused for another reason.
            let _ = chmodat(at, name, Mode::RWXU, AtFlags::empty());
            open()
        }
        other => other,
    }?;
    let _ = fchmod(&directory, Mode::RWXU);
    Ok(directory)
}

/// Returns the names of the first entries of a directory.
fn some_names(directory: &OwnedFd) -> Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let name = entry?.file_name().to_owned();
        if name.as_c_str() != c"." && name.as_c_str() != c".." {
            names.push(name);
        }
        if names.len() == AT_ONCE {
            break;
        }
    }
    Ok(names)
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
    #[test]
    fn a_tree_that_is_deeper_than_any_path_is_removed() {
        let top = tempfile::tempdir().unwrap();
        let tree = top.path().join("tree");
        std::fs::create_dir(&tree).unwrap();
        let mut at = open_directory(CWD, &tree).unwrap();
        for _ in 0..20_000 {
            // The names that the removal would take are taken.
            for name in ["0", ".0", ".1"] {
                rustix::fs::mkdirat(&at, name, Mode::RWXU).unwrap();
            }
            at = open_directory(at.as_fd(), c"0").unwrap();
        }
        drop(at);

        remove_tree(&tree).unwrap();

        assert!(!tree.exists());
    }
}
