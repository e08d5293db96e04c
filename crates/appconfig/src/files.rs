//! The files of an app config: found, read, and addressed by place.

use std::io;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

/// The largest file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;
/// The most TOML files that one app may have.
const MAX_FILES: usize = 2_000;
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
    /// Relative to the app's directory, with forward slashes.
    path: String,
    text: String,
}

/// Every file that was read, by number.
#[derive(Debug)]
pub(crate) struct Files {
    root: PathBuf,
    read: Vec<File>,
}

/// Why a file named by a config cannot be used, in words for a person.
pub(crate) type Unreadable = String;

impl Files {
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), read: Vec::new() }
    }

    /// Takes a text as the file `path`; also one that could not be read, so that it can be named.
    pub(crate) fn add(&mut self, path: String, text: String) -> usize {
        self.read.push(File { path, text });
        self.read.len() - 1
    }

    /// Reads the file at `path`, relative to the app's directory.
    pub(crate) fn read(&mut self, path: &str) -> Result<usize, Unreadable> {
        if let Some(known) = self.read.iter().position(|file| file.path == path) {
            return Ok(known);
        }
        let text = read_text(&self.root.join(path))?;
        Ok(self.add(path.to_owned(), text))
    }

    pub(crate) fn text(&self, file: usize) -> &str {
        self.read.get(file).map_or("", |file| file.text.as_str())
    }

    pub(crate) fn path(&self, file: usize) -> &str {
        self.read.get(file).map_or("", |file| file.path.as_str())
    }

    pub(crate) fn text_of(&self, path: &str) -> Option<&str> {
        self.read.iter().find(|file| file.path == path).map(|file| file.text.as_str())
    }

    /// Returns which path, relative to the app's directory, the `word` in file `file` names: the first that is there
    /// of one beside that file, one from the app's directory, and, for a root file, one in the folder of its name or in
    /// `permissions/`. Nothing when it leaves the app's directory.
    pub(crate) fn named(&self, file: usize, word: &str) -> Option<String> {
        if Path::new(word).is_absolute() {
            return None;
        }
        let path = self.path(file);
        let stem = path.trim_end_matches(".toml");
        let folders = match path.rsplit_once('/') {
            Some((folder, _)) => [folder, "", ""],
            None => ["", stem, "permissions"],
        };
        let candidates: Vec<String> =
            folders.iter().filter_map(|folder| normal(&format!("./{folder}/{word}"))).collect();
        let found = candidates.iter().position(|path| self.root.join(path).exists()).unwrap_or_default();
        candidates.into_iter().nth(found)
    }

    /// Returns where on the machine the relative `path` is.
    pub(crate) fn locate(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// Returns file, line and column of the start of `place`; both from 1.
    pub(crate) fn position(&self, place: &Place) -> (String, usize, usize) {
        let before = self.text(place.file).get(..place.span.start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let column = before.get(start..).unwrap_or_default().chars().count() + 1;
        (self.path(place.file).to_owned(), line, column)
    }

    /// Returns `file:line` of the start of `place`.
    pub(crate) fn short(&self, place: &Place) -> String {
        let (file, line, _) = self.position(place);
        format!("{file}:{line}")
    }

    /// Returns the paths of the TOML files in the root and, at any depth, in `folders`; sorted.
    pub(crate) fn toml_files(&self, folders: &[&str]) -> io::Result<Vec<String>> {
        let mut found = Vec::new();
        for (name, is_dir) in entries(&self.root)? {
            if !is_dir && is_toml(&name) {
                found.push(name);
            } else if is_dir && folders.contains(&name.as_str()) {
                walk(&self.root.join(&name), &name, 0, &mut found)?;
            }
        }
        if found.len() > MAX_FILES {
            return Err(io::Error::other(format!("more than {MAX_FILES} config files")));
        }
        found.sort();
        Ok(found)
    }
}

fn walk(dir: &Path, prefix: &str, depth: usize, found: &mut Vec<String>) -> io::Result<()> {
    for (name, is_dir) in entries(dir)? {
        let path = format!("{prefix}/{name}");
        if is_dir && depth < MAX_DEPTH {
            walk(&dir.join(&name), &path, depth + 1, found)?;
        } else if !is_dir && is_toml(&name) {
            found.push(path);
        }
    }
    Ok(())
}

/// Returns names and whether each is a directory; hidden ones and names that are not UTF-8 are left out.
fn entries(dir: &Path) -> io::Result<Vec<(String, bool)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if let Ok(name) = entry.file_name().into_string()
            && !name.starts_with('.')
        {
            found.push((name, std::fs::metadata(entry.path())?.is_dir()));
        }
    }
    Ok(found)
}

fn is_toml(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "toml")
}

fn read_text(path: &Path) -> Result<String, Unreadable> {
    let meta = std::fs::metadata(path).map_err(|error| reason(&error))?;
    if !meta.is_file() {
        return Err("it is not a file".to_owned());
    }
    if meta.len() > MAX_FILE_BYTES {
        return Err(format!("it is larger than {MAX_FILE_BYTES} bytes"));
    }
    let bytes = std::fs::read(path).map_err(|error| reason(&error))?;
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())
}

/// Returns a short reason without the machine's path, which messages name themselves.
pub(crate) fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "it does not exist".to_owned(),
        io::ErrorKind::PermissionDenied => "it may not be read".to_owned(),
        _ => error.to_string(),
    }
}

/// Returns `path` without `.` and empty parts and with `..` resolved; nothing when it is absolute or leaves the root.
pub(crate) fn normal(path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in Path::new(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                parts.pop()?;
            }
            Component::Normal(name) => parts.push(name.to_str()?),
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(parts.join("/"))
}
