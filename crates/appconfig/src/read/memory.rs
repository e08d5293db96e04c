//! Reads the files of an app from memory, for tests and fuzzing. No file is executable, and there are no links.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use freehold_protocol::source::LEFT_OUT;

use crate::read::paths::{join, normal, reason};
use crate::read::tree::{Entry, Tree};

/// The bytes of an app's files, by path.
#[derive(Debug)]
pub(crate) struct Memory {
    name: String,
    files: BTreeMap<String, Vec<u8>>,
}

impl Memory {
    /// Returns `files` as the files of the app `name`. A path that is absolute or has parts such as `..` is left out.
    pub(crate) fn new(name: &str, files: &BTreeMap<String, Vec<u8>>) -> Self {
        let plain = files.iter().filter(|(path, _)| normal(path).is_some_and(|normal| normal == **path));
        let files = plain.map(|(path, bytes)| (path.clone(), bytes.clone())).collect();
        Self { name: name.to_owned(), files }
    }

    /// Returns the paths of all files below the directory `path`, at any depth. The paths are relative to this
    /// directory.
    fn paths(&self, path: &str) -> impl Iterator<Item = &str> {
        let prefix = join(path, "");
        self.files.range(prefix.clone()..).map_while(move |(path, _)| path.strip_prefix(&prefix))
    }
}

impl Tree for Memory {
    fn name(&self) -> &str {
        &self.name
    }

    fn locate(&self, path: &str) -> PathBuf {
        PathBuf::from(path)
    }

    fn relative(&self, _: &Path) -> Option<String> {
        None
    }

    fn is_file(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    fn is_dir(&self, path: &str) -> bool {
        path.is_empty() || self.paths(path).next().is_some()
    }

    fn exists(&self, path: &str) -> bool {
        self.is_file(path) || self.is_dir(path)
    }

    fn is_link(&self, _: &str) -> bool {
        false
    }

    fn bytes(&self, path: &str) -> io::Result<Vec<u8>> {
        match self.files.get(path) {
            Some(bytes) => Ok(bytes.clone()),
            None if self.is_dir(path) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn bytes_up_to(&self, path: &str, most: usize) -> Result<Vec<u8>, String> {
        match self.files.get(path) {
            Some(bytes) if bytes.len() > most => Err(format!("it is larger than {most} bytes")),
            Some(bytes) => Ok(bytes.clone()),
            None if self.is_dir(path) => Err("it is not a file".to_owned()),
            None => Err(reason(&io::ErrorKind::NotFound.into())),
        }
    }

    fn names(&self, path: &str) -> io::Result<BTreeMap<String, bool>> {
        let names = self.paths(path).map(|rest| match rest.split_once('/') {
            Some((name, _)) => (name.to_owned(), true),
            None => (rest.to_owned(), false),
        });
        Ok(names.collect())
    }

    fn below(&self, path: &str) -> io::Result<BTreeMap<String, Entry>> {
        if self.is_file(path) {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        if !self.is_dir(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let kept = self.paths(path).filter(|path| !path.split('/').any(|part| LEFT_OUT.contains(&part)));
        Ok(kept.map(|path| (path.to_owned(), Entry::File { executable: false })).collect())
    }
}
