//! Watches the size of the workspace. Two other ways were rejected: a quota of the file system needs root or a separate
//! volume, and a file system in memory needs memory for providers and build trees.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use crate::sandbox::frame::{self, FromInit, Start};

/// The shortest pause between two scans of the workspace.
const PAUSE: Duration = Duration::from_secs(1);
/// A pause is at least this many times as long as the scan before it.
const SHARE: u32 = 20;
/// The size of a block in `st_blocks`, inode(7).
const BLOCK: u64 = 512;

/// A thread that scans the workspace. It ends when this value is dropped.
pub(super) struct Watch(#[expect(dead_code, reason = "dropping the sender ends the watch")] Sender<()>);

impl Watch {
    /// Starts the scans of the directories that the program may write to. They also count the size of `printed`, the
    /// standard output, which may be a file.
    pub(super) fn start(start: &Start, printed: &OwnedFd, control: &OwnedFd) -> io::Result<Self> {
        let (sender, ended) = channel();
        let (trees, limits, control) = (start.writable.clone(), start.limits, control.try_clone()?);
        let printed = File::from(printed.try_clone()?);
        std::thread::Builder::new().name("disk".to_owned()).stack_size(256 * 1024).spawn(move || {
            watch((&trees, &printed), limits.disk, limits.files, &control, &ended);
        })?;
        Ok(Self(sender))
    }
}

fn watch(
    (trees, printed): (&[PathBuf], &File),
    most_bytes: u64,
    most_files: u64,
    control: &OwnedFd,
    ended: &Receiver<()>,
) {
    let mut pause = PAUSE;
    while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        let started = Instant::now();
        let printed = printed.metadata().map_or(0, |data| data.blocks().saturating_mul(BLOCK));
        let mut found = Held { bytes: printed, files: 0 };
        trees.iter().for_each(|tree| found.add(tree, most_bytes, most_files));
        if found.bytes > most_bytes || found.files > most_files {
            let _ = frame::send(control, &FromInit::OverDisk { bytes: found.bytes, files: found.files }, &[]);
            // The runner ends the program. If this thread did, it could consume the exit status for which another
            // thread waits.
            return;
        }
        pause = PAUSE.max(started.elapsed() * SHARE);
    }
}

struct Held {
    bytes: u64,
    files: u64,
}

impl Held {
    /// Adds the content of `top`, until a limit is exceeded. It ignores files that are removed during the scan.
    fn add(&mut self, top: &Path, most_bytes: u64, most_files: u64) {
        let mut waiting = vec![top.to_owned()];
        while let Some(directory) = waiting.pop() {
            let Ok(entries) = std::fs::read_dir(&directory) else { continue };
            for entry in entries.flatten() {
                let Ok(data) = entry.path().symlink_metadata() else { continue };
                self.files += 1;
                // A file with several hard links counts once for each link. The limit prevents damage and need not be
                // exact.
                self.bytes = self.bytes.saturating_add(data.blocks().saturating_mul(BLOCK));
                if data.is_dir() {
                    waiting.push(entry.path());
                }
                if self.bytes > most_bytes || self.files > most_files {
                    return;
                }
            }
        }
    }
}
