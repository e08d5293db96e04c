//! Finds and reads the files of an app config, and describes places in them.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::read::paths::normal;
use crate::read::tree::Tree;

/// The maximum number of TOML files in one app.
const MAX_FILES: usize = 5_000;
/// The maximum depth of nested directories.
const MAX_DEPTH: usize = 6;

/// A place in a file: a range of its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) file: usize,
    pub(crate) span: Range<usize>,
}

/// A file that was read.
#[derive(Debug)]
struct File {
    /// The path relative to the app's directory, with forward slashes.
    path: String,
    text: String,
    /// The offset at which each line starts, in bytes.
    lines: Vec<usize>,
}

/// All files that were read. Each has a number, which is its index.
#[derive(Debug)]
pub(crate) struct Files {
    tree: Box<dyn Tree>,
    read: Vec<File>,
    /// The number of the first file with each path.
    by_path: HashMap<String, usize>,
}

/// The reason why a file that a config names cannot be used, as part of a message.
pub(crate) type Unreadable = String;

impl Files {
    pub(crate) fn new(tree: Box<dyn Tree>) -> Self {
        Self { tree, read: Vec::new(), by_path: HashMap::new() }
    }

    /// Returns the tree from which the files are read.
    pub(crate) fn tree(&self) -> &dyn Tree {
        self.tree.as_ref()
    }

    /// Adds a text as the file `path`, and returns the file's number. A file that could not be read is added too, so
    /// that messages can name it.
    pub(crate) fn add(&mut self, path: String, text: String) -> usize {
        let number = self.read.len();
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        self.by_path.entry(path.clone()).or_insert(number);
        self.read.push(File { path, text, lines });
        number
    }

    /// Reads the file at `path`, relative to the app's directory. Returns the file's number.
    pub(crate) fn read(&mut self, path: &str) -> Result<usize, Unreadable> {
        if let Some(known) = self.by_path.get(path) {
            return Ok(*known);
        }
        let text = self.tree.text(path)?;
        Ok(self.add(path.to_owned(), text))
    }

    pub(crate) fn text(&self, file: usize) -> &str {
        self.read.get(file).map_or("", |file| file.text.as_str())
    }

    pub(crate) fn path(&self, file: usize) -> &str {
        self.read.get(file).map_or("", |file| file.path.as_str())
    }

    pub(crate) fn text_of(&self, path: &str) -> Option<&str> {
        self.by_path.get(path).map(|file| self.text(*file))
    }

    /// Returns the path, relative to the app's directory, that `word` in file `file` names. If `file` is in a
    /// directory, the path is searched in this directory, then in the directory of the file's kind, such as
    /// `components/`, then in the app's directory. For a root file, it is searched in the app's directory, in the
    /// directory with the name of the file, and in `permissions/`. If nothing is found, the first of these paths is
    /// returned. Returns `None` for a path that leads out of the app's directory.
    pub(crate) fn named(&self, file: usize, word: &str) -> Option<String> {
        let candidates = self.candidates(file, word);
        let found = candidates.iter().position(|path| self.tree.exists(path)).unwrap_or_default();
        candidates.into_iter().nth(found)
    }

    /// Returns the first directory of the path `word` in file `file`, if this directory does not exist. It may be a
    /// directory that has to be generated, or a submodule that was not fetched.
    pub(crate) fn absent_directory<'w>(&self, file: usize, word: &'w str) -> Option<&'w str> {
        let (directory, _) = word.trim_start_matches("file://").trim_start_matches("./").split_once('/')?;
        let absent = !directory.is_empty() && directory != ".." && {
            self.candidates(file, directory).iter().all(|path| !self.tree.exists(path))
        };
        absent.then_some(directory)
    }

    fn candidates(&self, file: usize, word: &str) -> Vec<String> {
        if Path::new(word).is_absolute() {
            return Vec::new();
        }
        let path = self.path(file);
        let stem = path.trim_end_matches(".toml");
        // Other tools look for the files of `components/web/web.toml` in `components/`.
        let of_kind = path.split('/').next().unwrap_or_default();
        let directories = match path.rsplit_once('/') {
            Some((directory, _)) => [directory, of_kind, ""],
            None => ["", stem, "permissions"],
        };
        directories.iter().filter_map(|directory| normal(&format!("./{directory}/{word}"))).collect()
    }

    /// Converts `path`, which is relative to the app's directory, to a path on this machine.
    pub(crate) fn locate(&self, path: &str) -> PathBuf {
        self.tree.locate(path)
    }

    /// Returns the file, line and column at which `place` starts. Line and column count from 1, the column in
    /// characters.
    pub(crate) fn position(&self, place: &Place) -> (String, usize, usize) {
        let Some(file) = self.read.get(place.file) else {
            return (String::new(), 1, 1);
        };
        let line = file.lines.partition_point(|start| *start <= place.span.start).max(1);
        let start = file.lines.get(line - 1).copied().unwrap_or_default();
        let before = file.text.get(start..place.span.start).unwrap_or_default();
        (file.path.clone(), line, before.chars().count() + 1)
    }

    /// Returns the start of `place` as `file:line`.
    pub(crate) fn short(&self, place: &Place) -> String {
        let (file, line, _) = self.position(place);
        format!("{file}:{line}")
    }

    /// Returns the sorted paths of the TOML files in the app's directory and, at any depth, in `directories`.
    pub(crate) fn toml_files(&self, directories: &[&str]) -> io::Result<Vec<String>> {
        let mut found = Vec::new();
        for (name, is_dir) in self.tree.entries("")? {
            if !is_dir && is_toml(&name) {
                found.push(name);
            } else if is_dir && directories.contains(&name.as_str()) {
                self.walk(&name, 0, &mut found)?;
            }
        }
        if found.len() > MAX_FILES {
            return Err(too_many());
        }
        found.sort();
        Ok(found)
    }

    fn walk(&self, directory: &str, depth: usize, found: &mut Vec<String>) -> io::Result<()> {
        for (name, is_dir) in self.tree.entries(directory)? {
            let path = format!("{directory}/{name}");
            if is_dir && self.leads_back(directory, &path) {
                return Err(io::Error::other(format!(
                    "the link `{path}` leads back to a directory above it, so remove it"
                )));
            }
            if is_dir && depth < MAX_DEPTH {
                self.walk(&path, depth + 1, found)?;
            } else if !is_dir && is_toml(&name) {
                found.push(path);
            }
            if found.len() > MAX_FILES {
                return Err(too_many());
            }
        }
        Ok(())
    }

    /// Returns whether `path`, an entry of `directory`, is a link to a directory that contains the link.
    fn leads_back(&self, directory: &str, path: &str) -> bool {
        let real = |path: &str| self.tree.relative(&self.tree.locate(path));
        let Some(target) = self.tree.is_link(path).then(|| real(path)).flatten() else { return false };
        let is_inside = |place: &str| {
            let rest = place.strip_prefix(target.as_str());
            target.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        is_inside(directory) || real(directory).is_some_and(|place| is_inside(place.as_str()))
    }
}

fn too_many() -> io::Error {
    io::Error::other(format!("more than {MAX_FILES} config files"))
}

fn is_toml(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "toml")
}
