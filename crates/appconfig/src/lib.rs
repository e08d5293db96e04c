//! An app config directory becomes an app version: reading, checking with every mistake at once, and packing of local
//! sources. Reads files; sends nothing and runs nothing.

#![warn(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

mod actions;
mod archive;
mod build;
mod components;
mod cycles;
mod diagnostic;
mod document;
mod excerpt;
mod files;
mod inputs;
mod json;
mod kinds;
mod links;
mod roles;
mod spec;
mod validate;

use std::path::{Path, PathBuf};

use freehold_protocol::app_version::AppVersion;
use freehold_protocol::order::Source;
use freehold_protocol::{ComponentName, Digest};

pub use diagnostic::{Diagnostic, Diagnostics, Related, Severity};

/// What a directory was read as.
#[derive(Debug)]
pub struct Loaded {
    /// The app version. While `unresolved` is not empty, the git sources named there hold a branch where a commit
    /// belongs, and the version has no meaningful digest yet.
    pub version: AppVersion,
    /// Local sources, packed, sorted by component.
    pub sources: Vec<LocalSource>,
    /// Git sources whose branch must become a commit, sorted by component.
    pub unresolved: Vec<UnresolvedGit>,
    pub warnings: Diagnostics,
}

/// A directory or file of the vendor's machine, packed for upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalSource {
    pub component: ComponentName,
    pub path: PathBuf,
    /// The digest of `archive`.
    pub digest: Digest,
    /// A gzipped tar, the same bytes for the same files.
    pub archive: Vec<u8>,
}

/// A git source that names a branch or tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnresolvedGit {
    pub component: ComponentName,
    pub url: String,
    /// What to ask `git ls-remote` for.
    pub branch: String,
}

/// A commit was given that is none, or for a component that needs none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{commit}` is not a commit for component `{component}`; expected 40 hex digits for a git source")]
pub struct NotACommit {
    pub component: ComponentName,
    pub commit: String,
}

impl Loaded {
    /// Puts `commit` where the git source of `component` holds a branch.
    ///
    /// # Errors
    /// When `commit` is not 40 hex digits, or `component` has no unresolved git source.
    pub fn resolve(&mut self, component: &ComponentName, commit: &str) -> Result<(), NotACommit> {
        let refused = || NotACommit { component: component.clone(), commit: commit.chars().take(80).collect() };
        if !components::is_commit(commit) || !self.unresolved.iter().any(|git| git.component == *component) {
            return Err(refused());
        }
        let found = self.version.components.iter_mut().find(|known| known.name == *component);
        match found.map(|known| &mut known.source) {
            Some(Source::Git { commit: slot, .. }) => commit.clone_into(slot),
            Some(Source::Directory { .. } | Source::Image { .. }) | None => return Err(refused()),
        }
        self.unresolved.retain(|git| git.component != *component);
        Ok(())
    }
}

/// Reads the app config in `dir`, whose name is the app's, for a sync.
///
/// # Errors
/// With every mistake in the directory, ordered by file and line; warnings stand among them.
pub fn load(dir: &Path) -> Result<Loaded, Diagnostics> {
    let (built, diagnostics) = build::read(dir, build::Purpose::Sync);
    match built {
        Some(built) if !diagnostics.has_errors() => Ok(Loaded { warnings: diagnostics, ..built }),
        _ => Err(diagnostics),
    }
}

/// Reads the app config in `dir` and says all that is wrong with it; what cannot be deployed yet is a warning.
pub fn check(dir: &Path) -> Diagnostics {
    build::read(dir, build::Purpose::Check).1
}
