//! The files of an app, wherever they are: the only way in which the rest of the crate reads them.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The largest file that is read as text, in bytes.
const MAX_TEXT_BYTES: usize = 4 * 1024 * 1024;
/// Directories that are left out of a source.
pub(crate) const LEFT_OUT: [&str; 2] = [".git", ".terraform"];

/// An entry to pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    File { executable: bool },
    Link(PathBuf),
}

/// The files of one app, by paths relative to its directory, with forward slashes; the directory itself is "".
pub(crate) trait Tree: fmt::Debug {
    /// Returns the name of the directory, which is the app's.
    fn name(&self) -> &str;

    /// Returns the path on the machine of `path`.
    fn locate(&self, path: &str) -> PathBuf;

    /// Returns a path of the machine relative to the directory; `None` when it is outside.
    fn relative(&self, absolute: &Path) -> Option<String>;

    fn is_file(&self, path: &str) -> bool;

    fn is_dir(&self, path: &str) -> bool;

    fn exists(&self, path: &str) -> bool;

    /// Returns whether `path` is a symbolic link.
    fn is_link(&self, path: &str) -> bool;

    /// Returns the bytes of a file.
    ///
    /// # Errors
    /// When there is no such file, or it cannot be read.
    fn bytes(&self, path: &str) -> io::Result<Vec<u8>>;

    /// Returns the bytes of a file that is not larger than `most`.
    ///
    /// # Errors
    /// The reason, as messages say it.
    fn bytes_up_to(&self, path: &str, most: usize) -> Result<Vec<u8>, String>;

    /// Returns the names in a directory, and whether each is a directory. Names that are not UTF-8 are left out.
    ///
    /// # Errors
    /// When the directory cannot be read.
    fn names(&self, path: &str) -> io::Result<BTreeMap<String, bool>>;

    /// Returns everything to pack below a directory, at any depth, by its path from there.
    ///
    /// # Errors
    /// When an entry cannot be read, is a device or a link to the outside, or there are too many.
    fn below(&self, path: &str) -> io::Result<BTreeMap<String, Entry>>;
}

impl dyn Tree + '_ {
    /// Returns the text of a file.
    ///
    /// # Errors
    /// The reason, as messages say it.
    pub(crate) fn text(&self, path: &str) -> Result<String, String> {
        String::from_utf8(self.bytes_up_to(path, MAX_TEXT_BYTES)?).map_err(|_| "it is not UTF-8 text".to_owned())
    }

    /// Returns the entries of a directory, and whether each is a directory. Hidden entries are left out.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub(crate) fn entries(&self, path: &str) -> io::Result<Vec<(String, bool)>> {
        Ok(self.names(path)?.into_iter().filter(|(name, _)| !name.starts_with('.')).collect())
    }
}
