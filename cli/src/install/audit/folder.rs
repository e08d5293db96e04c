//! Reads a copy of an install's audit records: `NUMBER.json` for each record, and `KEY.pub` for each runner key.

use std::path::Path;

use freehold_protocol::audit::verify::RecordsCopy;

use crate::error::{Error, Result};
use crate::file::COPY_OF_AUDIT;

/// Returns the copy in a directory.
pub(super) fn read(directory: &Path) -> Result<RecordsCopy> {
    let mut copy = RecordsCopy::default();
    for entry in crate::file::entries(directory, COPY_OF_AUDIT)? {
        let (name, path) = (entry.file_name().to_string_lossy().into_owned(), entry.path());
        let read = || crate::file::read(&path, COPY_OF_AUDIT);
        if let Some(key) = name.strip_suffix(".pub") {
            // A key that is not text is not a key either, and is reported with the records that it should verify.
            copy.keys.insert(key.to_owned(), String::from_utf8_lossy(&read()?).trim().to_owned());
        } else if name.ends_with(".json") {
            copy.records.insert(name, read()?);
        }
    }
    if copy.records.is_empty() {
        return Err(Error::invalid(format!("`{}` has no audit records", directory.display())).or(COPY_OF_AUDIT));
    }
    Ok(copy)
}
