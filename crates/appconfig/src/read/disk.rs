//! Reads the files of an app from a directory on disk.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use freehold_protocol::source::LEFT_OUT;

use crate::read::paths::{normal, reason};
use crate::read::tree::{Entry, Tree};

/// The maximum number of files in one source.
const MAX_FILES: usize = 20_000;
/// The maximum size of one source before packing, in bytes.
const MAX_BYTES: u64 = 2 * 1024 * 1024 * 1024;

/// The files below a directory.
#[derive(Debug)]
pub(crate) struct Disk(PathBuf);

impl Disk {
    /// Returns the files below `dir`.
    pub(crate) fn new(dir: &Path) -> Self {
        Self(fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned()))
    }
}

impl Tree for Disk {
    fn name(&self) -> &str {
        self.0.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    fn locate(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    fn relative(&self, absolute: &Path) -> Option<String> {
        let path = fs::canonicalize(absolute).unwrap_or_else(|_| absolute.to_owned());
        normal(path.strip_prefix(&self.0).ok()?.to_str()?)
    }

    fn is_file(&self, path: &str) -> bool {
        self.0.join(path).is_file()
    }

    fn is_dir(&self, path: &str) -> bool {
        self.0.join(path).is_dir()
    }

    fn exists(&self, path: &str) -> bool {
        self.0.join(path).exists()
    }

    fn is_link(&self, path: &str) -> bool {
        self.0.join(path).is_symlink()
    }

    fn bytes(&self, path: &str) -> io::Result<Vec<u8>> {
        fs::read(self.0.join(path))
    }

    fn bytes_up_to(&self, path: &str, most: usize) -> Result<Vec<u8>, String> {
        let path = self.0.join(path);
        let meta = fs::metadata(&path).map_err(|error| reason(&error))?;
        if !meta.is_file() {
            return Err("it is not a file".to_owned());
        }
        if usize::try_from(meta.len()).map_or(true, |bytes| bytes > most) {
            return Err(format!("it is larger than {most} bytes"));
        }
        fs::read(path).map_err(|error| reason(&error))
    }

    fn names(&self, path: &str) -> io::Result<BTreeMap<String, bool>> {
        let mut found = BTreeMap::new();
        for entry in fs::read_dir(self.0.join(path))? {
            let entry = entry?;
            if let Ok(name) = entry.file_name().into_string() {
                // A link without a target counts as a file, and is reported when this file is read.
                found.insert(name, fs::metadata(entry.path()).is_ok_and(|meta| meta.is_dir()));
            }
        }
        Ok(found)
    }

    fn below(&self, path: &str) -> io::Result<BTreeMap<String, Entry>> {
        let mut entries = BTreeMap::new();
        collect(&self.0.join(path), "", &mut entries, &mut 0)?;
        Ok(entries)
    }
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
            link(&entry.path(), prefix, &path)?
        } else if meta.is_file() {
            *bytes += meta.len();
            Entry::File { executable: executable(&meta) }
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

/// Returns the link at `at` as an entry to pack; `path` is its path in the source. Fails if the link leads out of the
/// source.
fn link(at: &Path, prefix: &str, path: &str) -> io::Result<Entry> {
    let target = fs::read_link(at)?;
    // The build runner refuses such a link: a name before `..` may itself be a link, and `..` then leads to another
    // place than the path shows.
    if target
        .components()
        .skip_while(|part| !matches!(part, Component::Normal(_)))
        .any(|part| part == Component::ParentDir)
    {
        return Err(io::Error::other(format!(
            "the link `{path}` has `..` after a name in its target; write the shortest path to the same place"
        )));
    }
    let inside = Path::new(prefix).join(&target).to_str().and_then(normal);
    match inside {
        Some(_) => Ok(Entry::Link(target)),
        None => Err(io::Error::other(format!("the link `{path}` points outside of the directory"))),
    }
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
