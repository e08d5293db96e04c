//! Watches the size of the workspace. Two other ways were rejected: a quota of the file system needs root or a separate
//! volume, and a file system in memory needs memory for providers and build trees.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{File, Permissions, ReadDir};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, open};

use crate::config::limits::ProcessLimits;
use crate::sandbox::frame::{self, FromInit, Start};

/// The shortest pause between two scans of the workspace.
const PAUSE: Duration = Duration::from_secs(1);
/// A pause is at least this many times as long as the scan before it.
const SHARE: u32 = 20;
/// The size of a block in `st_blocks`, inode(7).
const BLOCK: u64 = 512;
/// A directory whose path has at least this length is opened, and its path is then replaced by that of the descriptor.
/// The kernel accepts paths of 4,096 bytes, and names of 255.
const LONG: usize = 3072;

/// A thread that scans the workspace of a program. It exists before the program: a program that forks up to its limit
/// at once would leave no place for it. It ends when this value is dropped.
pub(super) struct Watch(Sender<Workspace>);

/// The workspace of a program, which the thread scans.
pub(super) struct Workspace {
    /// The directories that the program may write to.
    trees: Vec<PathBuf>,
    /// The standard output, which may be a file. Its size counts too.
    printed: File,
    limits: ProcessLimits,
    control: OwnedFd,
}

impl Watch {
    /// Makes the thread, which waits for [`Self::begin`].
    pub(super) fn make() -> io::Result<Self> {
        let (sender, received) = channel::<Workspace>();
        std::thread::Builder::new().name("disk".to_owned()).stack_size(256 * 1024).spawn(move || {
            if let Ok(workspace) = received.recv() {
                workspace.watch(&received);
            }
        })?;
        Ok(Self(sender))
    }

    /// Starts the scans. The first one is a second later.
    pub(super) fn begin(&self, workspace: Workspace) {
        // The thread waits for the workspace, so it has not ended.
        let _ = self.0.send(workspace);
    }
}

impl Workspace {
    /// Returns the workspace of the program that `start` describes. A workspace that exceeds its limits is reported to
    /// `control`.
    pub(super) fn of(start: &Start, stdout: &OwnedFd, control: &OwnedFd) -> io::Result<Self> {
        let (printed, control) = (File::from(stdout.try_clone()?), control.try_clone()?);
        Ok(Self { trees: start.writable.clone(), printed, limits: start.limits, control })
    }

    /// Scans the workspace until it exceeds its limits, or until the [`Watch`] is dropped.
    fn watch(&self, ended: &Receiver<Self>) {
        let (most_bytes, most_files) = (self.limits.disk, self.limits.files);
        let mut pause = PAUSE;
        while matches!(ended.recv_timeout(pause), Err(RecvTimeoutError::Timeout)) {
            let started = Instant::now();
            let printed = self.printed.metadata().map_or(0, |data| data.blocks().saturating_mul(BLOCK));
            let mut found = Held { bytes: printed, files: 0 };
            self.trees.iter().for_each(|tree| found.add(tree, most_bytes, most_files));
            found.add_unlinked(&self.trees);
            if found.bytes > most_bytes || found.files > most_files {
                let _ = frame::send(&self.control, &FromInit::OverDisk { bytes: found.bytes, files: found.files }, &[]);
                // The runner ends the program. If this thread did, it could consume the exit status for which another
                // thread waits.
                return;
            }
            pause = PAUSE.max(started.elapsed() * SHARE);
        }
    }
}

struct Held {
    bytes: u64,
    files: u64,
}

impl Held {
    /// Adds the content of `top`, until a limit is exceeded. It ignores files that are removed during the scan.
    fn add(&mut self, top: &Path, most_bytes: u64, most_files: u64) {
        let mut waiting = vec![Place { base: None, path: top.to_owned() }];
        while let Some(directory) = waiting.pop() {
            let Ok(entries) = directory.entries() else { continue };
            for entry in entries.flatten() {
                let Ok(data) = entry.path().symlink_metadata() else { continue };
                self.files += 1;
                // A file with several hard links counts once for each link. The limit prevents damage and need not be
                // exact.
                self.bytes = self.bytes.saturating_add(data.blocks().saturating_mul(BLOCK));
                if data.is_dir() {
                    waiting.extend(directory.child(entry.path()));
                }
                if self.bytes > most_bytes || self.files > most_files {
                    return;
                }
            }
        }
    }

    /// Adds the files on the disks of `trees` that have no name any more and that a process of the box has open. A file
    /// that a process only maps into its memory is not seen.
    fn add_unlinked(&mut self, trees: &[PathBuf]) {
        let disks: BTreeSet<u64> = trees.iter().filter_map(|tree| Some(tree.metadata().ok()?.dev())).collect();
        let mut seen = BTreeSet::new();
        let Ok(processes) = std::fs::read_dir("/proc") else { return };
        let is_number = |name: &OsStr| name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
        for process in processes.flatten().filter(|entry| is_number(&entry.file_name())) {
            let Ok(open) = std::fs::read_dir(process.path().join("fd")) else { continue };
            for file in open.flatten() {
                // `metadata` follows the link to the open file, even when the file no longer has a name.
                let Ok(data) = file.path().metadata() else { continue };
                let is_unlinked = data.is_file() && data.nlink() == 0 && disks.contains(&data.dev());
                if is_unlinked && seen.insert((data.dev(), data.ino())) {
                    self.files += 1;
                    self.bytes = self.bytes.saturating_add(data.blocks().saturating_mul(BLOCK));
                }
            }
        }
    }
}

/// A directory of the workspace, however deep it is.
struct Place {
    /// This directory or one above it, if the path became too long: `path` then begins with the descriptor of `base`.
    base: Option<Arc<File>>,
    path: PathBuf,
}

impl Place {
    /// Returns the entries. A program that runs as this process's user may have made the directory unreadable. This
    /// process then owns the directory too, and makes it readable again.
    fn entries(&self) -> io::Result<ReadDir> {
        match std::fs::read_dir(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                std::fs::set_permissions(&self.path, Permissions::from_mode(0o700))?;
                std::fs::read_dir(&self.path)
            }
            other => other,
        }
    }

    /// Returns the directory at `path` below this one; `None` when it is gone.
    fn child(&self, path: PathBuf) -> Option<Self> {
        if path.as_os_str().len() < LONG {
            return Some(Self { base: self.base.clone(), path });
        }
        let above = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = File::from(open(&path, above, Mode::empty()).ok()?);
        let path = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()));
        Some(Self { base: Some(Arc::new(opened)), path })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::sandbox::frame::Received;

    /// The directory of a workspace with three files, and the socket of the runner.
    fn workspace(files: u64) -> (tempfile::TempDir, UnixStream, Workspace) {
        let directory = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            std::fs::write(directory.path().join(name), "x").unwrap();
        }
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let limits = ProcessLimits { memory: 0, processes: 0, open_files: 0, disk: u64::MAX, files };
        let (trees, printed) = (vec![directory.path().to_owned()], tempfile::tempfile().unwrap());
        (directory, ours, Workspace { trees, printed, limits, control: theirs.into() })
    }

    #[test]
    fn a_thread_that_exists_before_its_program_measures_the_workspace_that_it_gets() {
        let watch = Watch::make().unwrap();
        let (_directory, ours, workspace) = workspace(2);
        let mut received = Received::default();

        watch.begin(workspace);

        assert!(received.read(&ours).unwrap());
        let (message, _) = received.take::<FromInit>().unwrap().unwrap();
        assert!(matches!(message, FromInit::OverDisk { files: 3.., .. }), "{message:?}");
    }

    #[test]
    fn a_thread_ends_with_its_watch() {
        let watch = Watch::make().unwrap();
        let (_directory, ours, workspace) = workspace(u64::MAX);
        watch.begin(workspace);

        drop(watch);

        assert!(!Received::default().read(&ours).unwrap());
    }
}
