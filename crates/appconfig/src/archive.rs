//! Packs a directory or a file into the same bytes every time: sorted entries, no times, owners or local modes.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use flate2::{Compression, GzBuilder};
use freehold_protocol::Digest;

/// The most files that one source may have.
const MAX_FILES: usize = 20_000;
/// The most bytes that one source may have before packing.
const MAX_BYTES: u64 = 2 * 1024 * 1024 * 1024;
/// Directories that are never part of a source.
const LEFT_OUT: [&str; 2] = [".git", ".terraform"];

/// A packed source.
#[derive(Debug)]
pub(crate) struct Archive {
    pub(crate) digest: Digest,
    pub(crate) bytes: Vec<u8>,
}

/// One entry, before it is written.
enum Entry {
    File { path: PathBuf, executable: bool },
    Link(PathBuf),
}

/// Packs all files below `dir`.
///
/// # Errors
/// When a file cannot be read, is neither file, directory nor a link that stays inside, or the source is too large.
pub(crate) fn directory(dir: &Path) -> io::Result<Archive> {
    let mut entries = BTreeMap::new();
    let mut bytes = 0;
    collect(dir, "", &mut entries, &mut bytes)?;
    if entries.is_empty() {
        return Err(io::Error::other("it holds no files"));
    }
    pack(entries)
}

/// Packs the one file at `path` as `name`.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn file(path: &Path, name: &str) -> io::Result<Archive> {
    pack(BTreeMap::from([(name.to_owned(), Entry::File { path: path.to_owned(), executable: false })]))
}

fn collect(dir: &Path, prefix: &str, entries: &mut BTreeMap<String, Entry>, bytes: &mut u64) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else {
            return Err(io::Error::other("a file name is not UTF-8"));
        };
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
        let meta = fs::symlink_metadata(entry.path())?;
        if meta.is_dir() {
            if !LEFT_OUT.contains(&name.as_str()) {
                collect(&entry.path(), &path, entries, bytes)?;
            }
            continue;
        }
        let packed = if meta.is_symlink() {
            let target = fs::read_link(entry.path())?;
            let inside = Path::new(prefix).join(&target).to_str().and_then(crate::files::normal);
            if inside.is_none() {
                return Err(io::Error::other(format!("the link `{path}` leads out of it")));
            }
            Entry::Link(target)
        } else if meta.is_file() {
            *bytes += meta.len();
            Entry::File { path: entry.path(), executable: executable(&meta) }
        } else {
            return Err(io::Error::other(format!("`{path}` is neither a file nor a directory")));
        };
        entries.insert(path, packed);
        if entries.len() > MAX_FILES || *bytes > MAX_BYTES {
            return Err(io::Error::other(format!("it holds more than {MAX_FILES} files or {MAX_BYTES} bytes")));
        }
    }
    Ok(())
}

#[cfg(unix)]
fn executable(meta: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    meta.permissions().mode() & 0o100 != 0
}

#[cfg(not(unix))]
fn executable(_: &fs::Metadata) -> bool {
    false
}

fn pack(entries: BTreeMap<String, Entry>) -> io::Result<Archive> {
    let gzip = GzBuilder::new().mtime(0).write(Vec::new(), Compression::fast());
    let mut tar = tar::Builder::new(gzip);
    for (name, entry) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        match entry {
            Entry::File { path, executable } => {
                // The bytes are read at once, so that a file that grows meanwhile cannot break the archive.
                let content = fs::read(path)?;
                header.set_entry_type(tar::EntryType::Regular);
                header.set_mode(if executable { 0o755 } else { 0o644 });
                header.set_size(u64::try_from(content.len()).map_err(io::Error::other)?);
                tar.append_data(&mut header, &name, content.as_slice())?;
            }
            Entry::Link(target) => {
                header.set_entry_type(tar::EntryType::Symlink);
                header.set_mode(0o777);
                header.set_size(0);
                tar.append_link(&mut header, &name, target)?;
            }
        }
    }
    let bytes = tar.into_inner()?.finish()?;
    Ok(Archive { digest: Digest::of(&bytes), bytes })
}
