//! Reads a copy of an install's audit records: `NUMBER.json` for each record, `KEY.pub` for each runner key, and the
//! messages that the records name in `orders/`, `receipts/` and `reports/`. Runners of earlier versions wrote a chain
//! for each key, in a directory `KEY/`. The records in these directories are counted, but not read.

use std::collections::BTreeMap;
use std::fs::DirEntry;
use std::path::{Path, PathBuf};

use freehold_protocol::audit::verify::RecordsCopy;
use freehold_protocol::audit::{MAX_OBJECT_BYTES, ORDERS, RECEIPTS, REPORTS};

use crate::error::{Error, Result};
use crate::file::COPY_OF_AUDIT;
use crate::output::{clean, plural};

/// The directory of the records in a copy of the whole bucket.
const AUDIT: &str = "audit";

/// The advice about an object or a file that is larger than any that a runner writes.
pub(super) const FOREIGN: &str =
    "no runner wrote it: find out who did, move it out of `audit/`, and run the command again";

/// A copy in a directory of this machine.
#[derive(Debug)]
pub(super) struct LocalCopy {
    pub(super) copy: RecordsCopy,
    /// The number of records in each directory, which are not part of the chain.
    pub(super) skipped: BTreeMap<String, usize>,
}

/// Returns the directory of the records in a copy of `audit/`, or of the whole bucket.
pub(super) fn records_in(directory: &Path) -> PathBuf {
    let inside = directory.join(AUDIT);
    if inside.is_dir() { inside } else { directory.to_owned() }
}

/// Reads the copy in a directory.
pub(super) fn read(directory: &Path) -> Result<LocalCopy> {
    let (mut copy, mut skipped) = (RecordsCopy::default(), BTreeMap::new());
    let records = records_in(directory);
    for entry in crate::file::entries(&records, COPY_OF_AUDIT)? {
        let (name, path) = (entry.file_name().to_string_lossy().into_owned(), entry.path());
        let is_named = [ORDERS, RECEIPTS, REPORTS].contains(&name.as_str());
        if path.is_dir() && is_named {
            for file in crate::file::entries(&path, COPY_OF_AUDIT)? {
                let name = format!("{name}/{}", file.file_name().to_string_lossy());
                if RecordsCopy::takes(&name) {
                    copy.add(&name, content(&file.path())?);
                }
            }
        } else if path.is_dir() {
            let inside = crate::file::entries(&path, COPY_OF_AUDIT)?;
            let is_record = |file: &&DirEntry| file.path().extension().is_some_and(|extension| extension == "json");
            skipped.insert(name, inside.iter().filter(is_record).count());
        } else if RecordsCopy::takes(&name) {
            copy.add(&name, content(&path)?);
        }
    }
    if copy.records.is_empty() {
        let more = skipped_line(&skipped).map(|line| format!(" ({line})")).unwrap_or_default();
        let message = format!("`{}` has no audit records of the install's chain{more}", directory.display());
        return Err(Error::invalid(message).or(COPY_OF_AUDIT));
    }
    Ok(LocalCopy { copy, skipped })
}

/// Returns the content of a file of at most [`MAX_OBJECT_BYTES`].
fn content(path: &Path) -> Result<Vec<u8>> {
    crate::file::read_at_most(path, u64::try_from(MAX_OBJECT_BYTES).unwrap_or(u64::MAX), FOREIGN)
}

/// Returns a sentence about the directories that are not verified, if there are any.
pub(super) fn skipped_line(skipped: &BTreeMap<String, usize>) -> Option<String> {
    let records = plural(skipped.values().sum(), "record");
    let names: Vec<&str> = skipped.keys().map(String::as_str).collect();
    (!names.is_empty()).then(|| {
        format!(
            "not verified: {records} in `{}`, because runners of earlier versions wrote one chain per key, \
             and the install's chain does not contain these records",
            clean(&names.join("`, `"))
        )
    })
}
