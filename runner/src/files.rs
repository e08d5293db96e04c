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

fn staged(path: &Path) -> std::path::PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".new");
    path.with_file_name(name)
}

fn open_private(path: &Path) -> Result<File> {
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)
}
