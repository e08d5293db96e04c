//! The files of an app, on disk or in memory. All other modules read files through this trait.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The maximum size of a file that is read as text, in bytes.
const MAX_TEXT_BYTES: usize = 4 * 1024 * 1024;

/// An entry of a source, to be packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    File { executable: bool },
    Link(PathBuf),
}

/// The files of one app. Paths are relative to the app's directory and have forward slashes. The path of the directory
/// itself is empty.
pub(crate) trait Tree: fmt::Debug {
    /// Returns the name of the app's directory, which is the name of the app.
    fn name(&self) -> &str;

    /// Converts `path` to a path on this machine. A tree in memory returns it unchanged.
    fn locate(&self, path: &str) -> PathBuf;

    /// Converts an absolute path on this machine to a path relative to the app's directory; `None` when it is outside.
    fn relative(&self, absolute: &Path) -> Option<String>;

    fn is_file(&self, path: &str) -> bool;

    fn is_dir(&self, path: &str) -> bool;

    fn exists(&self, path: &str) -> bool;

    /// Returns whether `path` is a symbolic link.
    fn is_link(&self, path: &str) -> bool;

    /// Returns the bytes of a file.
    ///
    /// # Errors
    /// An I/O error when the file does not exist or cannot be read.
    fn bytes(&self, path: &str) -> io::Result<Vec<u8>>;

    /// Returns the bytes of a file, which may have at most `most` bytes.
    ///
    /// # Errors
    /// The reason as part of a message, such as "it does not exist".
    fn bytes_up_to(&self, path: &str, most: usize) -> Result<Vec<u8>, String>;

    /// Returns the names of the entries of a directory, and whether each entry is a directory. Names that are not UTF-8
    /// are left out.
    ///
    /// # Errors
    /// An I/O error when the directory cannot be read.
    fn names(&self, path: &str) -> io::Result<BTreeMap<String, bool>>;

    /// Returns all entries to pack below a directory, at any depth. Their paths are relative to this directory.
    ///
    /// # Errors
    /// An I/O error when an entry cannot be read, is a device or a link that leads outside, or when there are too many
    /// entries or bytes.
    fn below(&self, path: &str) -> io::Result<BTreeMap<String, Entry>>;
}

impl dyn Tree + '_ {
    /// Returns the text of a file, which has to be UTF-8 and not too large.
    ///
    /// # Errors
    /// The reason as part of a message, such as "it does not exist".
    pub(crate) fn text(&self, path: &str) -> Result<String, String> {
        String::from_utf8(self.bytes_up_to(path, MAX_TEXT_BYTES)?).map_err(|error| {
            let before = error.as_bytes().iter().take(error.utf8_error().valid_up_to());
            let line = before.filter(|byte| **byte == b'\n').count() + 1;
            format!("it is not UTF-8 text, because of a byte in line {line}")
        })
    }

    /// Returns the names of the entries of a directory, and whether each entry is a directory. Hidden entries are left
    /// out.
    ///
    /// # Errors
    /// An I/O error when the directory cannot be read.
    pub(crate) fn entries(&self, path: &str) -> io::Result<Vec<(String, bool)>> {
        Ok(self.names(path)?.into_iter().filter(|(name, _)| !name.starts_with('.')).collect())
    }
}
