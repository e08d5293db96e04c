//! Packs a directory or a file. The same content always gives the same bytes: entries are sorted, and have no times,
//! owners or local modes.

use std::collections::BTreeSet;
use std::io;

use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};
use freehold_protocol::Digest;

use crate::read::paths::join;
use crate::read::tree::{Entry, Tree};

/// A packed source.
#[derive(Debug)]
pub(crate) struct Archive {
    pub(crate) digest: Digest,
    pub(crate) bytes: Vec<u8>,
    /// The paths of the packed files, relative to the packed directory.
    pub(crate) paths: BTreeSet<String>,
}

/// Packs all files below the directory `path` of `tree`.
///
/// # Errors
/// An I/O error when a file cannot be read, an entry is a device or a link that leads outside, or the source is empty
/// or too large.
pub(crate) fn directory(tree: &dyn Tree, path: &str) -> io::Result<Archive> {
    let entries = tree.below(path)?;
    if entries.is_empty() {
        return Err(io::Error::other("it holds no files"));
    }
    let mut tar = open();
    let paths = entries.keys().cloned().collect();
    for (name, entry) in entries {
        match entry {
            Entry::File { executable } => {
                // All bytes are read before they are packed, so that a file that grows meanwhile cannot break the
                // archive.
                add_file(&mut tar, &name, &tree.bytes(&join(path, &name))?, executable)?;
            }
            Entry::Link(target) => {
                let mut header = header(tar::EntryType::Symlink, 0o777);
                header.set_size(0);
                tar.append_link(&mut header, &name, target)?;
            }
        }
    }
    close(tar, paths)
}

/// Packs the file at `path` of `tree` under the name `name`.
///
/// # Errors
/// An I/O error when the file cannot be read.
pub(crate) fn file(tree: &dyn Tree, path: &str, name: &str) -> io::Result<Archive> {
    let mut tar = open();
    add_file(&mut tar, name, &tree.bytes(path)?, false)?;
    close(tar, BTreeSet::from([name.to_owned()]))
}

type Tar = tar::Builder<GzEncoder<Vec<u8>>>;

fn open() -> Tar {
    tar::Builder::new(GzBuilder::new().mtime(0).write(Vec::new(), Compression::fast()))
}

fn close(tar: Tar, paths: BTreeSet<String>) -> io::Result<Archive> {
    let bytes = tar.into_inner()?.finish()?;
    Ok(Archive { digest: Digest::of(&bytes), bytes, paths })
}

fn header(kind: tar::EntryType, mode: u32) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header.set_entry_type(kind);
    header.set_mode(mode);
    header
}

fn add_file(tar: &mut Tar, name: &str, content: &[u8], executable: bool) -> io::Result<()> {
    let mut header = header(tar::EntryType::Regular, if executable { 0o755 } else { 0o644 });
    header.set_size(u64::try_from(content.len()).map_err(io::Error::other)?);
    tar.append_data(&mut header, name, content)
}
