//! Finds and reads the files of an app config, and names places in them.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::read::paths::normal;
use crate::read::tree::Tree;

/// The most TOML files that one app may have.
const MAX_FILES: usize = 5_000;
/// How deep folders may nest.
const MAX_DEPTH: usize = 6;

/// Some bytes of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) file: usize,
    pub(crate) span: Range<usize>,
}

/// One file that was read.
#[derive(Debug)]
struct File {
    /// The path relative to the app's directory, with forward slashes.
    path: String,
    text: String,
    /// Where each line starts, in bytes.
    lines: Vec<usize>,
}

/// Every file that was read, by number.
#[derive(Debug)]
pub(crate) struct Files {
    tree: Box<dyn Tree>,
    read: Vec<File>,
    /// The first file of each path.
    by_path: HashMap<String, usize>,
}

/// Why a file that a config names cannot be used, as messages say it.
pub(crate) type Unreadable = String;

impl Files {
    pub(crate) fn new(tree: Box<dyn Tree>) -> Self {
        Self { tree, read: Vec::new(), by_path: HashMap::new() }
    }

    /// Returns the files that may be read.
    pub(crate) fn tree(&self) -> &dyn Tree {
        self.tree.as_ref()
    }

    /// Adds a text as the file `path`. A file that could not be read is added too, so that messages can name it.
    pub(crate) fn add(&mut self, path: String, text: String) -> usize {
        let number = self.read.len();
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        self.by_path.entry(path.clone()).or_insert(number);
        self.read.push(File { path, text, lines });
        number
    }

    /// Reads the file at `path`, relative to the app's directory.
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

    /// Returns the path, relative to the app's directory, that `word` in file `file` names. It is looked for beside
    /// that file, in the app's directory, and, for a root file, in the folder of its name and in `permissions/`. A path
    /// out of the app's directory gives `None`.
    pub(crate) fn named(&self, file: usize, word: &str) -> Option<String> {
        let candidates = self.candidates(file, word);
        let found = candidates.iter().position(|path| self.tree.exists(path)).unwrap_or_default();
        candidates.into_iter().nth(found)
    }

    /// Returns the first folder of `word` in file `file` when that folder does not exist, for example because it is
    /// generated, or a submodule that was not fetched.
    pub(crate) fn absent_folder<'w>(&self, file: usize, word: &'w str) -> Option<&'w str> {
        let (folder, _) = word.trim_start_matches("file://").trim_start_matches("./").split_once('/')?;
        let absent = !folder.is_empty() && folder != ".." && {
            self.candidates(file, folder).iter().all(|path| !self.tree.exists(path))
        };
        absent.then_some(folder)
    }

    fn candidates(&self, file: usize, word: &str) -> Vec<String> {
        if Path::new(word).is_absolute() {
            return Vec::new();
        }
        let path = self.path(file);
        let stem = path.trim_end_matches(".toml");
        let folders = match path.rsplit_once('/') {
            Some((folder, _)) => [folder, "", ""],
            None => ["", stem, "permissions"],
        };
        folders.iter().filter_map(|folder| normal(&format!("./{folder}/{word}"))).collect()
    }

    /// Returns the path on the machine of the relative `path`.
    pub(crate) fn locate(&self, path: &str) -> PathBuf {
        self.tree.locate(path)
    }

    /// Returns file, line and column of the start of `place`; both from 1.
    pub(crate) fn position(&self, place: &Place) -> (String, usize, usize) {
        let Some(file) = self.read.get(place.file) else {
            return (String::new(), 1, 1);
        };
        let line = file.lines.partition_point(|start| *start <= place.span.start).max(1);
        let start = file.lines.get(line - 1).copied().unwrap_or_default();
        let before = file.text.get(start..place.span.start).unwrap_or_default();
        (file.path.clone(), line, before.chars().count() + 1)
    }

    /// Returns `file:line` of the start of `place`.
    pub(crate) fn short(&self, place: &Place) -> String {
        let (file, line, _) = self.position(place);
        format!("{file}:{line}")
    }

    /// Returns the paths of the TOML files in the root and, at any depth, in `folders`; sorted.
    pub(crate) fn toml_files(&self, folders: &[&str]) -> io::Result<Vec<String>> {
        let mut found = Vec::new();
        for (name, is_dir) in self.tree.entries("")? {
            if !is_dir && is_toml(&name) {
                found.push(name);
            } else if is_dir && folders.contains(&name.as_str()) {
                self.walk(&name, 0, &mut found)?;
            }
        }
        if found.len() > MAX_FILES {
            return Err(too_many());
        }
        found.sort();
        Ok(found)
    }

    fn walk(&self, folder: &str, depth: usize, found: &mut Vec<String>) -> io::Result<()> {
        for (name, is_dir) in self.tree.entries(folder)? {
            let path = format!("{folder}/{name}");
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
}

fn too_many() -> io::Error {
    io::Error::other(format!("more than {MAX_FILES} config files"))
}

fn is_toml(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "toml")
}
