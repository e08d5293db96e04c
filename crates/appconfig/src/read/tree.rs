//! The only place that reads the files of an app: from a directory, or from memory.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::read::paths::{join, normal, reason};

/// The largest file that is read as text, in bytes.
const MAX_TEXT_BYTES: usize = 4 * 1024 * 1024;

/// The files of one app, by paths relative to its directory, with forward slashes; the directory itself is "".
#[derive(Debug)]
pub(crate) enum Tree {
    Disk(PathBuf),
    Memory { name: String, files: BTreeMap<String, Vec<u8>> },
}

impl Tree {
    /// Returns the files below `dir`.
    pub(crate) fn disk(dir: &Path) -> Self {
        Self::Disk(fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned()))
    }

    /// Returns `files` as those of the app `name`; a path that is not a plain relative one is left out.
    pub(crate) fn memory(name: &str, files: &BTreeMap<String, Vec<u8>>) -> Self {
        let plain = files.iter().filter(|(path, _)| normal(path).is_some_and(|normal| normal == **path));
        let files = plain.map(|(path, bytes)| (path.clone(), bytes.clone())).collect();
        Self::Memory { name: name.to_owned(), files }
    }

    /// Returns the name of the directory, which is the app's.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Disk(root) => root.file_name().and_then(|name| name.to_str()).unwrap_or_default(),
            Self::Memory { name, .. } => name,
        }
    }

    /// Returns the path on the machine of `path`; in memory, the path itself.
    pub(crate) fn locate(&self, path: &str) -> PathBuf {
        match self {
            Self::Disk(root) => root.join(path),
            Self::Memory { .. } => PathBuf::from(path),
        }
    }

    /// Returns a path of the machine relative to the directory; `None` when it is outside, or the files are in memory.
    pub(crate) fn relative(&self, absolute: &Path) -> Option<String> {
        match self {
            Self::Disk(root) => {
                let path = fs::canonicalize(absolute).unwrap_or_else(|_| absolute.to_owned());
                normal(path.strip_prefix(root).ok()?.to_str()?)
            }
            Self::Memory { .. } => None,
        }
    }

    pub(crate) fn is_file(&self, path: &str) -> bool {
        match self {
            Self::Disk(root) => root.join(path).is_file(),
            Self::Memory { files, .. } => files.contains_key(path),
        }
    }

    pub(crate) fn is_dir(&self, path: &str) -> bool {
        match self {
            Self::Disk(root) => root.join(path).is_dir(),
            Self::Memory { files, .. } => path.is_empty() || below(files, path).next().is_some(),
        }
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        match self {
            Self::Disk(root) => root.join(path).exists(),
            Self::Memory { .. } => self.is_file(path) || self.is_dir(path),
        }
    }

    /// Returns the text of a file.
    ///
    /// # Errors
    /// The reason, as messages say it.
    pub(crate) fn text(&self, path: &str) -> Result<String, String> {
        let bytes = match self {
            Self::Disk(root) => {
                let path = root.join(path);
                let meta = fs::metadata(&path).map_err(|error| reason(&error))?;
                if !meta.is_file() {
                    return Err("it is not a file".to_owned());
                }
                fits(usize::try_from(meta.len()).unwrap_or(usize::MAX))?;
                fs::read(path).map_err(|error| reason(&error))?
            }
            Self::Memory { files, .. } => match files.get(path) {
                Some(bytes) => {
                    fits(bytes.len())?;
                    bytes.clone()
                }
                None if self.is_dir(path) => return Err("it is not a file".to_owned()),
                None => return Err(reason(&io::ErrorKind::NotFound.into())),
            },
        };
        String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())
    }

    /// Returns the entries of a directory, and whether each is a directory. Hidden entries and names that are not UTF-8
    /// are left out.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub(crate) fn entries(&self, path: &str) -> io::Result<Vec<(String, bool)>> {
        let mut found = BTreeMap::new();
        match self {
            Self::Disk(root) => {
                for entry in fs::read_dir(root.join(path))? {
                    let entry = entry?;
                    if let Ok(name) = entry.file_name().into_string() {
                        found.insert(name, fs::metadata(entry.path())?.is_dir());
                    }
                }
            }
            Self::Memory { files, .. } => {
                for (rest, _) in below(files, path) {
                    let (name, is_dir) = rest.split_once('/').map_or((rest, false), |(name, _)| (name, true));
                    found.insert(name.to_owned(), is_dir);
                }
            }
        }
        found.retain(|name, _| !name.starts_with('.'));
        Ok(found.into_iter().collect())
    }
}

/// Returns the files of a directory in memory, at any depth, with their paths from there.
pub(crate) fn below<'a>(
    files: &'a BTreeMap<String, Vec<u8>>,
    path: &str,
) -> impl Iterator<Item = (&'a str, &'a Vec<u8>)> {
    let prefix = join(path, "");
    let from = files.range(prefix.clone()..);
    from.map_while(move |(path, bytes)| Some((path.strip_prefix(&prefix)?, bytes)))
}

fn fits(bytes: usize) -> Result<(), String> {
    if bytes > MAX_TEXT_BYTES {
        return Err(format!("it is larger than {MAX_TEXT_BYTES} bytes"));
    }
    Ok(())
}
