//! Reads a copy of an install's audit records: `KEY.pub` and `KEY/NUMBER-DIGEST.json` for each runner key.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::{Error, Result, ResultExt};
use crate::file::COPY_OF_AUDIT;

/// The files of one runner key.
#[derive(Debug, Default)]
pub(super) struct Files {
    /// The text of the file with the public key.
    pub(super) key: Option<String>,
    /// The records by the names of their files, without `.json`.
    pub(super) records: BTreeMap<String, Vec<u8>>,
}

/// Returns the files of each runner key, by the key's id.
pub(super) fn read(directory: &Path) -> Result<BTreeMap<String, Files>> {
    let shown = directory.display();
    let mut all: BTreeMap<String, Files> = BTreeMap::new();
    for (name, path) in entries(directory)? {
        if let Some(id) = name.strip_suffix(".pub") {
            let text = std::fs::read_to_string(&path).doing(format!("read `{}`", path.display()))?;
            all.entry(id.to_owned()).or_default().key = Some(text.trim().to_owned());
        } else if path.is_dir() {
            all.entry(name).or_default().records = records(&path)?;
        }
    }
    if all.values().all(|files| files.records.is_empty()) {
        return Err(Error::invalid(format!("`{shown}` has no audit records")).or(COPY_OF_AUDIT));
    }
    Ok(all)
}

fn records(directory: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut records = BTreeMap::new();
    for (name, path) in entries(directory)? {
        if let Some(name) = name.strip_suffix(".json") {
            let bytes = std::fs::read(&path).doing(format!("read `{}`", path.display()))?;
            records.insert(name.to_owned(), bytes);
        }
    }
    Ok(records)
}

/// Returns names and paths of all that is in a directory.
fn entries(directory: &Path) -> Result<Vec<(String, std::path::PathBuf)>> {
    let entries = crate::file::entries(directory, COPY_OF_AUDIT)?;
    Ok(entries.iter().map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path())).collect())
}
