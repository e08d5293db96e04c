//! Turns an app config directory into an app version: reads it, reports every mistake at once, and packs local sources.
//! Reads files only; sends nothing and runs nothing.

mod build;
mod check;
mod inspect;
mod kinds;
mod load_result;
mod read;
mod report;
mod schema;
mod state;

#[cfg(feature = "memory")]
use std::collections::BTreeMap;
use std::path::Path;

use crate::read::disk::Disk;
#[cfg(feature = "memory")]
use crate::read::memory::Memory;
use crate::state::app::Purpose;

pub use load_result::{Loaded, LocalSource, NotACommit, UnresolvedGit};
pub use read::addresses::{Fetched, GitAddress, git_address};
pub use report::diagnostic::{Diagnostic, Related, Severity};
pub use report::diagnostics::{Diagnostics, Elsewhere};
pub use schema::{SchemaKind, UnknownSchema, reference, schema, schema_kinds, schemas, taplo_config};

/// Reads the app config in `dir`, whose name is the app's, for a sync.
///
/// # Errors
/// Every mistake in the directory, with the warnings, ordered by file and line.
pub fn load(dir: &Path) -> Result<Loaded, Diagnostics> {
    load_with(dir, &Fetched::new())
}

/// Reads the app config in `dir`. `fetched` holds the texts that the config names by address.
///
/// # Errors
/// As [`load`].
pub fn load_with(dir: &Path, fetched: &Fetched) -> Result<Loaded, Diagnostics> {
    finished(build::app::read(Box::new(Disk::new(dir)), Purpose::Sync, fetched))
}

/// Reads the app config of `app` from memory, for a sync: the bytes of its files by their paths, which are relative and
/// have forward slashes. No file is executable, and there are no links.
///
/// # Errors
/// As [`load`].
#[cfg(feature = "memory")]
pub fn load_files(app: &str, files: &BTreeMap<String, Vec<u8>>, fetched: &Fetched) -> Result<Loaded, Diagnostics> {
    finished(build::app::read(Box::new(Memory::new(app, files)), Purpose::Sync, fetched))
}

fn finished((built, diagnostics): (Option<Loaded>, Diagnostics)) -> Result<Loaded, Diagnostics> {
    match built {
        Some(built) if !diagnostics.has_errors() => Ok(Loaded { warnings: diagnostics, ..built }),
        _ => Err(diagnostics),
    }
}

/// Reads the app config in `dir` and returns every mistake and warning.
pub fn check(dir: &Path) -> Diagnostics {
    build::app::read(Box::new(Disk::new(dir)), Purpose::Check, &Fetched::new()).1
}

/// Reads the app config of `app` from memory, as [`load_files`] does, and returns every mistake and warning.
#[cfg(feature = "memory")]
pub fn check_files(app: &str, files: &BTreeMap<String, Vec<u8>>) -> Diagnostics {
    build::app::read(Box::new(Memory::new(app, files)), Purpose::Check, &Fetched::new()).1
}
