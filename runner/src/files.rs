//! Writes small files atomically: after a crash, a file has its old or its new contents. Also removes directory trees.

use std::ffi::{CStr, CString};
use std::fs::{File, OpenOptions, Permissions};
use std::io::{Read as _, Result, Seek as _, Write as _};
use std::ops::RangeFrom;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use freehold_protocol::Digest;
use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, chmodat, fchmod, openat, renameat, unlinkat};
use rustix::io::Errno;
use sha2::{Digest as _, Sha256};

/// The maximum number of directory entries that are held in memory at once.
const AT_ONCE: usize = 10_000;

/// The permissions of a file that only this user can read.
const PRIVATE: u32 = 0o600;
/// The permissions of a file that every user can read.
const READABLE: u32 = 0o644;

/// Writes `bytes` to a temporary file next to `path` and renames it to `path`. The file is durable when this function
/// returns.
pub(crate) fn write_atomic(path: &Path, bytes: &[u8]) -> Result<()> {
    replace(path, bytes)?;
    sync_parent(path)
}

/// Writes `bytes` like [`write_atomic`], and returns the new file, open to read and to append. It is durable after
/// [`sync_parent`]. Until then, a power failure may bring the old file back.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<File> {
    let write = |staged: &Path| -> Result<File> {
        let mut file = open_empty(staged, PRIVATE)?;
        file.write_all(bytes)?;
        // The times of the file may be lost.
        file.sync_data()?;
        Ok(file)
    };
    rename_written(path, write)
}

/// Writes `bytes` like [`write_atomic`], but not durably: a power failure soon afterwards may lose the file. A crash of
/// the process does not lose the file.
pub(crate) fn write_atomic_relaxed(path: &Path, bytes: &[u8]) -> Result<()> {
    rename_written(path, |staged| open_empty(staged, PRIVATE)?.write_all(bytes))
}

/// Writes `bytes` like [`write_atomic_relaxed`], and lets every user read the file.
pub(crate) fn write_readable(path: &Path, bytes: &[u8]) -> Result<()> {
    let write = |staged: &Path| -> Result<()> {
        let mut file = open_empty(staged, READABLE)?;
        file.write_all(bytes)?;
        // The process may have a mask that takes permissions from new files.
        file.set_permissions(Permissions::from_mode(READABLE))
    };
    rename_written(path, write)
}

/// Makes the directory entry of `path` durable.
pub(crate) fn sync_parent(path: &Path) -> Result<()> {
    match path.parent() {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

/// Creates the directory `path` and its parents; only this user can enter the new ones.
pub(crate) fn make_private_dir(path: &Path) -> Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Creates the directory `path`, which only this user can enter. Fails when something has that name already.
pub(crate) fn make_new_private_dir(path: &Path) -> Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().mode(0o700).create(path)
}

/// Returns the SHA-256 of a whole file.
pub(crate) fn digest(mut file: &File) -> Result<Digest> {
    file.rewind()?;
    let mut hash = Sha256::new();
    let mut chunk = vec![0; 64 * 1024];
    loop {
        let read = file.read(&mut chunk)?;
        if read == 0 {
            return Ok(Digest::from_sha256(hash.finalize().as_slice()));
        }
        hash.update(chunk.get(..read).unwrap_or_default());
    }
}

/// Removes a directory tree, even if a program removed the owner's permissions inside it. Does not follow links.
pub(crate) fn remove_tree(path: &Path) -> Result<()> {
    clear(path)?;
    std::fs::remove_dir(path)
}

/// Removes everything in the directory `top`.
///
/// Each nested directory is first moved up into `top`. So even a hundred thousand directories, nested in each other,
/// cannot exhaust the runner's file descriptors or its stack.
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
                // The owner needs write permission on a directory to move it.
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
            // An entry of this name exists.
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Removes an entry that is not a directory. Returns false when the entry is a directory.
fn unlinked(directory: &OwnedFd, name: &CStr) -> Result<bool> {
    match unlinkat(directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(Errno::ISDIR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Opens a directory, and tries to give its owner all permissions on it.
fn open_directory(at: BorrowedFd<'_>, name: impl rustix::path::Arg + Copy) -> Result<OwnedFd> {
    let open =
        || openat(at, name, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty());
    let directory = match open() {
        Err(Errno::ACCESS) => {
            // `name` is a directory: opening anything else fails with another error.
            let _ = chmodat(at, name, Mode::RWXU, AtFlags::empty());
            open()
        }
        other => other,
    }?;
    let _ = fchmod(&directory, Mode::RWXU);
    Ok(directory)
}

/// Returns the names of the first entries of a directory, at most `AT_ONCE`.
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

/// Calls `write` with the path of a temporary file next to `path`, and renames this file to `path`.
fn rename_written<T>(path: &Path, write: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
    let staged = staged(path);
    let written = write(&staged).and_then(|written| std::fs::rename(&staged, path).map(|()| written));
    if written.is_err() {
        // On a full disk, the incomplete file would keep the last of the free space.
        let _ = std::fs::remove_file(&staged);
    }
    written
}

fn staged(path: &Path) -> std::path::PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".new");
    path.with_file_name(name)
}

/// Opens a file without contents, to read and to append.
fn open_empty(path: &Path, mode: u32) -> Result<File> {
    let file = OpenOptions::new().read(true).append(true).create(true).mode(mode).open(path)?;
    file.set_len(0)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_file_has_only_the_new_bytes_its_permissions_and_what_is_appended() {
        let top = tempfile::tempdir().unwrap();
        let (private, readable) = (top.path().join("private"), top.path().join("readable"));
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        // A crash left a longer file.
        std::fs::write(top.path().join("private.new"), "what a crash left").unwrap();
        std::fs::set_permissions(top.path().join("private.new"), Permissions::from_mode(PRIVATE)).unwrap();

        replace(&private, b"old").unwrap();
        replace(&private, b"new").unwrap().write_all(b", and more").unwrap();
        write_readable(&readable, b"token").unwrap();

        assert_eq!(std::fs::read_to_string(&private).unwrap(), "new, and more");
        assert_eq!(std::fs::read_to_string(&readable).unwrap(), "token");
        assert_eq!((mode(&private), mode(&readable)), (PRIVATE, READABLE));
    }

    #[test]
    fn a_write_that_fails_leaves_nothing_beside_the_file() {
        let top = tempfile::tempdir().unwrap();
        let place = top.path().join("place");
        std::fs::create_dir(&place).unwrap();

        let failed = [replace(&place, b"new").is_err(), write_atomic_relaxed(&place, b"new").is_err()];

        assert_eq!((failed, std::fs::read_dir(top.path()).unwrap().count()), ([true; 2], 1));
    }

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
