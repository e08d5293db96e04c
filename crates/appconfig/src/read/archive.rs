//! Packs a directory or a file so that the same content gives the same bytes: entries are sorted and have no times,
//! owners or local modes.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use flate2::{Compression, GzBuilder};
use freehold_protocol::Digest;

use crate::read::paths::normal;
use crate::read::tree::{Tree, below};

/// The most files that one source may have.
const MAX_FILES: usize = 20_000;
/// The most bytes that one source may have before packing.
const MAX_BYTES: u64 = 2 * 1024 * 1024 * 1024;
/// Directories that are left out of a source.
const LEFT_OUT: [&str; 2] = [".git", ".terraform"];

/// A packed source.
#[derive(Debug)]
pub(crate) struct Archive {
    pub(crate) digest: Digest,
    pub(crate) bytes: Vec<u8>,
}

/// One entry, before it is written.
enum Entry<'a> {
    File { path: PathBuf, executable: bool },
    Held(&'a [u8]),
    Link(PathBuf),
}

/// Packs all files below the directory `path` of `tree`.
///
/// # Errors
/// When a file cannot be read, an entry is a device or a link to the outside, or the source is too large.
pub(crate) fn directory(tree: &Tree, path: &str) -> io::Result<Archive> {
    let mut entries = BTreeMap::new();
    match tree {
        Tree::Disk(root) => collect(&root.join(path), "", &mut entries, &mut 0)?,
        Tree::Memory { files, .. } => {
            if !tree.is_dir(path) {
                return Err(missing(tree, path));
            }
            let kept = below(files, path).filter(|(path, _)| !path.split('/').any(|part| LEFT_OUT.contains(&part)));
            entries.extend(kept.map(|(path, bytes)| (path.to_owned(), Entry::Held(bytes))));
        }
    }
    if entries.is_empty() {
        return Err(io::Error::other("it holds no files"));
    }
    pack(entries)
}

/// Packs the one file at `path` of `tree` as `name`.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn file(tree: &Tree, path: &str, name: &str) -> io::Result<Archive> {
    let entry = match tree {
        Tree::Disk(root) => Entry::File { path: root.join(path), executable: false },
        Tree::Memory { files, .. } => Entry::Held(files.get(path).ok_or_else(|| missing(tree, path))?),
    };
    pack(BTreeMap::from([(name.to_owned(), entry)]))
}

/// Returns the error of a file system for `path`: it is absent, a file, or a directory.
fn missing(tree: &Tree, path: &str) -> io::Error {
    let there = if tree.is_file(path) { io::ErrorKind::NotADirectory } else { io::ErrorKind::IsADirectory };
    if tree.exists(path) { there.into() } else { io::ErrorKind::NotFound.into() }
}

fn collect(dir: &Path, prefix: &str, entries: &mut BTreeMap<String, Entry<'_>>, bytes: &mut u64) -> io::Result<()> {
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
            let inside = Path::new(prefix).join(&target).to_str().and_then(normal);
            if inside.is_none() {
                return Err(io::Error::other(format!("the link `{path}` points outside of the directory")));
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

fn pack(entries: BTreeMap<String, Entry<'_>>) -> io::Result<Archive> {
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
                regular(&mut tar, &mut header, &name, &fs::read(path)?, executable)?;
            }
            Entry::Held(content) => regular(&mut tar, &mut header, &name, content, false)?,
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

fn regular(
    tar: &mut tar::Builder<impl io::Write>,
    header: &mut tar::Header,
    name: &str,
    content: &[u8],
    executable: bool,
) -> io::Result<()> {
    header.set_entry_type(tar::EntryType::Regular);
    header.set_mode(if executable { 0o755 } else { 0o644 });
    header.set_size(u64::try_from(content.len()).map_err(io::Error::other)?);
    tar.append_data(header, name, content)
}
