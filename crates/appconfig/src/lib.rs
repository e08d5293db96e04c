//! Turns an app config directory into an app version: reads the directory, reports all mistakes at once, and packs
//! local sources. It only reads files: it sends nothing, and starts no program.

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

pub use load_result::{InstallFile, Loaded, LocalSource, NotACommit, UnresolvedGit};
pub use read::addresses::{Fetched, GitAddress, git_address};
pub use report::diagnostic::{Diagnostic, Related, Severity};
pub use report::diagnostics::{Diagnostics, Elsewhere};
pub use schema::{SchemaKind, UnknownSchema, reference, schema, schema_kinds, schemas, taplo_config};

/// Reads the app config in `dir` for a sync. The app has the name of the directory.
///
/// # Errors
/// All errors and warnings, ordered by file and line, if there is at least one error.
pub fn load(dir: &Path) -> Result<Loaded, Diagnostics> {
    load_with(dir, &Fetched::new())
}

/// Does the same as [`load`]. `fetched` holds the texts that the config names by address.
///
/// # Errors
/// The errors of [`load`].
pub fn load_with(dir: &Path, fetched: &Fetched) -> Result<Loaded, Diagnostics> {
    finished(build::app::read(Box::new(Disk::new(dir)), Purpose::Sync, fetched))
}

/// Reads the app config in `dir` for a comparison with a version. Succeeds also when only a sync would refuse the
/// directory, because a part of it has to be made first: [`Loaded::refused`] has these mistakes.
///
/// # Errors
/// The errors of [`load`], if [`check`] reports an error too.
pub fn load_for_comparison(dir: &Path, fetched: &Fetched) -> Result<Loaded, Diagnostics> {
    let refused = match load_with(dir, fetched) {
        Err(found) => found,
        loaded => return loaded,
    };
    match finished(build::app::read(Box::new(Disk::new(dir)), Purpose::Check, fetched)) {
        Ok(loaded) => Ok(Loaded { refused: refused.filter(|one| one.severity == Severity::Error), ..loaded }),
        Err(_) => Err(refused),
    }
}

/// Reads the app config of `app` from memory, for a sync. `files` has the bytes of each file by its path, which is
/// relative and has forward slashes. No file is executable, and there are no links.
///
/// # Errors
/// The errors of [`load`].
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

/// Reads the app config in `dir`. Returns all errors and warnings.
pub fn check(dir: &Path) -> Diagnostics {
    build::app::read(Box::new(Disk::new(dir)), Purpose::Check, &Fetched::new()).1
}

/// Reads the app config of `app` from memory, as [`load_files`] does. Returns all errors and warnings.
#[cfg(feature = "memory")]
pub fn check_files(app: &str, files: &BTreeMap<String, Vec<u8>>) -> Diagnostics {
    build::app::read(Box::new(Memory::new(app, files)), Purpose::Check, &Fetched::new()).1
}
