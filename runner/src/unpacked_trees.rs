//! A store of unpacked trees, each named by the digest of the archive it came from. Jobs share a tree and cannot change
//! it.
//!
//! Beside each tree is a file that is locked while the tree is in use or being unpacked. Its content is the size of the
//! tree in bytes, and its modification time is the time of the tree's last use.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use freehold_protocol::Digest;

use crate::files;

/// Trees of one kind, in one directory.
#[derive(Debug, Clone)]
pub(crate) struct UnpackedTrees {
    directory: PathBuf,
}

/// The bytes that each file, directory and link counts for beside its content: a tree of empty files fills a disk too.
const PER_ENTRY: u64 = 4096;

/// An unpacked tree. It cannot be pruned while this value exists.
#[derive(Debug)]
pub(crate) struct UnpackedTree {
    pub(crate) path: PathBuf,
    /// Holds the shared lock of the tree.
    _in_use: File,
}

impl UnpackedTrees {
    /// Returns the trees in `directory`. Creates the directory when it is missing.
    pub(crate) fn open(directory: PathBuf) -> io::Result<Self> {
        std::fs::create_dir_all(&directory)?;
        Ok(Self { directory })
    }

    /// Returns the tree of `digest`, if it exists.
    pub(crate) fn find(&self, digest: &Digest) -> io::Result<Option<UnpackedTree>> {
        let path = self.tree(digest);
        // A tree that is being unpacked or removed has another name. This function does not wait for it.
        if !path.is_dir() {
            return Ok(None);
        }
        let lock = self.lock(digest)?;
        lock.lock_shared()?;
        if !path.is_dir() {
            return Ok(None);
        }
        lock.set_modified(SystemTime::now())?;
        Ok(Some(UnpackedTree { path, _in_use: lock }))
    }

    /// Returns the tree of `digest`. When it is missing, `unpack` fills an empty directory; other callers wait until it
    /// is done.
    pub(crate) fn find_or_unpack<E: From<io::Error>>(
        &self,
        digest: &Digest,
        unpack: impl Fn(&Path) -> Result<(), E>,
    ) -> Result<UnpackedTree, E> {
        loop {
            // A tree can be pruned between its unpacking and its use; then the loop starts again.
            if let Some(tree) = self.find(digest)? {
                return Ok(tree);
            }
            let mut lock = self.lock(digest)?;
            lock.lock()?;
            let path = self.tree(digest);
            if path.is_dir() {
                continue;
            }
            let fresh = path.with_extension("new");
            remove(&fresh)?;
            std::fs::create_dir(&fresh)?;
            let size = match unpack(&fresh).and_then(|()| Ok(finish(&fresh)?)) {
                Ok(size) => size,
                Err(error) => {
                    // The partly unpacked tree may fill the disk.
                    let _ = remove(&fresh);
                    return Err(error);
                }
            };
            lock.set_len(0)?;
            lock.write_all(size.to_string().as_bytes())?;
            std::fs::rename(&fresh, &path)?;
            files::sync_parent(&path)?;
        }
    }

    /// Removes the least recently used trees until all trees together have at most `most` bytes. Trees in use are not
    /// removed.
    pub(crate) fn prune(&self, most: u64) -> io::Result<()> {
        let mut trees = Vec::new();
        for entry in std::fs::read_dir(&self.directory)? {
            let path = entry?.path();
            // A leftover of a runner that ended while it unpacked or removed a tree.
            if path.extension().is_some_and(|end| end == "new" || end == "old") {
                if open(&path.with_extension("lock"))?.try_lock().is_ok() {
                    remove(&path)?;
                }
            } else if path.extension().is_none() && path.is_dir() {
                let mut text = String::new();
                let mut lock = open(&path.with_extension("lock"))?;
                lock.read_to_string(&mut text)?;
                trees.push((lock.metadata()?.modified()?, text.parse().unwrap_or(0_u64), path, lock));
            }
        }
        trees.sort_by_key(|(used, ..)| *used);
        let mut all: u64 = trees.iter().map(|(_, size, ..)| size).sum();
        for (_, size, path, lock) in trees {
            if all <= most {
                break;
            }
            if lock.try_lock().is_ok() {
                // The tree is renamed first, so that no tree has its final name while it is only partly removed.
                let old = path.with_extension("old");
                remove(&old)?;
                std::fs::rename(&path, &old)?;
                remove(&old)?;
                all = all.saturating_sub(size);
            }
        }
        Ok(())
    }

    fn tree(&self, digest: &Digest) -> PathBuf {
        self.directory.join(digest.hex())
    }

    fn lock(&self, digest: &Digest) -> io::Result<File> {
        open(&self.tree(digest).with_extension("lock"))
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

fn remove(path: &Path) -> io::Result<()> {
    match files::remove_tree(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Lets every user read the files below `top`, because jobs run as a user other than the runner's. Flushes all files to
/// disk, so that a power failure leaves no empty files. Returns the size of the tree in bytes.
fn finish(top: &Path) -> io::Result<u64> {
    let mut waiting = vec![top.to_owned()];
    let mut size = 0;
    while let Some(directory) = waiting.pop() {
        std::fs::set_permissions(&directory, Permissions::from_mode(0o755))?;
        for entry in std::fs::read_dir(&directory)? {
            let entry = entry?;
            size += PER_ENTRY;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                waiting.push(entry.path());
            } else if kind.is_file() {
                let file = File::open(entry.path())?;
                let data = file.metadata()?;
                let is_program = data.permissions().mode() & 0o111 != 0;
                file.set_permissions(Permissions::from_mode(if is_program { 0o755 } else { 0o644 }))?;
                size += data.len();
            }
        }
    }
    // Flushes the whole file system once: an image has thousands of files, and to flush each of them would cost a
    // write.
    rustix::fs::syncfs(File::open(top)?)?;
    Ok(size)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn make(trees: &UnpackedTrees, name: &[u8]) -> UnpackedTree {
        let unpack = |into: &Path| {
            std::fs::write(into.join("file"), [b'x'; 100])?;
            std::fs::set_permissions(into.join("file"), Permissions::from_mode(0o700))
        };
        trees.find_or_unpack(&Digest::of(name), unpack).unwrap()
    }

    #[test]
    fn a_tree_is_unpacked_once_and_never_seen_half() {
        let directory = tempfile::tempdir().unwrap();
        let trees = UnpackedTrees::open(directory.path().join("trees")).unwrap();
        let (digest, times) = (Digest::of(b"one"), Cell::new(0));
        let unpack = |into: &Path| -> io::Result<()> {
            times.set(times.get() + 1);
            std::fs::write(into.join("file"), "x")?;
            if times.get() == 1 { Err(io::Error::other("the disk is full")) } else { Ok(()) }
        };

        let failed = trees.find_or_unpack(&digest, unpack);
        let between = trees.find(&digest).unwrap();
        let left_over = std::fs::read_dir(directory.path().join("trees")).unwrap().count();
        let first = trees.find_or_unpack(&digest, unpack).unwrap();
        let second = trees.find_or_unpack(&digest, unpack).unwrap();

        assert!(failed.is_err() && between.is_none());
        assert_eq!(left_over, 1, "only the lock");
        assert_eq!((first.path.clone(), times.get()), (second.path, 2));
        assert_eq!(std::fs::read_dir(&first.path).unwrap().count(), 1);
    }

    #[test]
    fn the_tree_whose_use_is_longest_ago_goes_first_and_one_in_use_stays() {
        let directory = tempfile::tempdir().unwrap();
        let trees = UnpackedTrees::open(directory.path().to_owned()).unwrap();
        let in_use = make(&trees, b"in use");
        let mode = |path: PathBuf| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(in_use.path.clone()), mode(in_use.path.join("file"))), (0o755, 0o755));
        for (age, name) in [(50, b"old"), (20, b"new")] {
            make(&trees, name)._in_use.set_modified(SystemTime::now() - std::time::Duration::from_secs(age)).unwrap();
        }
        in_use._in_use.set_modified(SystemTime::UNIX_EPOCH).unwrap();

        trees.prune(2 * (100 + PER_ENTRY)).unwrap();

        let is_there = |name: &[u8]| trees.find(&Digest::of(name)).unwrap().is_some();
        assert!(!is_there(b"old") && is_there(b"new") && is_there(b"in use"));
        trees.prune(0).unwrap();
        assert!(!is_there(b"new") && is_there(b"in use"));
        drop(in_use);
        trees.prune(0).unwrap();
        assert!(!is_there(b"in use"));
    }

    #[test]
    fn a_tree_that_is_being_unpacked_is_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let trees = UnpackedTrees::open(directory.path().to_owned()).unwrap();
        let digest = Digest::of(b"one");
        let (found, finds) = std::sync::mpsc::channel();

        let unpack = |_: &Path| -> io::Result<()> {
            let (trees, digest, found) = (trees.clone(), digest.clone(), found.clone());
            // Another thread looks for the tree while this one holds its lock.
            std::thread::spawn(move || found.send(trees.find(&digest).unwrap().is_none()));
            finds.recv_timeout(std::time::Duration::from_secs(20)).map(drop).map_err(io::Error::other)
        };

        trees.find_or_unpack(&digest, unpack).unwrap();
    }

    #[test]
    fn a_tree_of_empty_files_counts() {
        let directory = tempfile::tempdir().unwrap();
        let trees = UnpackedTrees::open(directory.path().to_owned()).unwrap();
        let digest = Digest::of(b"empty");
        let unpack =
            |into: &Path| (0..100).try_for_each(|number| File::create(into.join(number.to_string())).map(drop));
        drop(trees.find_or_unpack::<io::Error>(&digest, unpack).unwrap());

        trees.prune(100_000).unwrap();

        assert!(trees.find(&digest).unwrap().is_none());
    }

    #[test]
    fn two_who_want_the_same_tree_get_the_same_one() {
        let directory = tempfile::tempdir().unwrap();
        let trees = UnpackedTrees::open(directory.path().to_owned()).unwrap();

        let paths: Vec<PathBuf> = std::thread::scope(|scope| {
            let both: Vec<_> = (0..2).map(|_| scope.spawn(|| make(&trees, b"one").path)).collect();
            both.into_iter().map(|one| one.join().unwrap()).collect()
        });

        assert_eq!(paths.first(), paths.last());
    }
}
