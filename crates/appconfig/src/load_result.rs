//! The result of reading an app config: the app version, its packed sources, and what the caller still has to fetch.

use std::path::PathBuf;

use freehold_protocol::Digest;
use freehold_protocol::app_version::AppVersion;
use freehold_protocol::order::Source;

use crate::report::diagnostics::Diagnostics;

/// An app config that was read.
#[derive(Debug)]
pub struct Loaded {
    /// The app version. It has a meaningful digest when `unresolved` and `addresses` are empty.
    pub version: AppVersion,
    /// Local sources, packed, sorted by owner.
    pub sources: Vec<LocalSource>,
    /// Branches whose commits the caller has to find; [`Loaded::resolve`] takes them.
    pub unresolved: Vec<UnresolvedGit>,
    /// Addresses whose text the version needs, sorted: fetch them and call [`crate::load_with`].
    pub addresses: Vec<String>,
    pub warnings: Diagnostics,
}

/// A directory or file on the vendor's machine, packed for upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalSource {
    /// The part of the app that needs it, such as ``component `web` ``.
    pub owner: String,
    pub path: PathBuf,
    /// The digest of `archive`.
    pub digest: Digest,
    /// A gzipped tar, the same bytes for the same files.
    pub archive: Vec<u8>,
}

/// A branch or tag of a repository, which the version names by commit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnresolvedGit {
    pub url: String,
    /// What to ask `git ls-remote` for.
    pub branch: String,
}

/// A text that is not a commit, or a commit for a branch that the app does not need.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{commit}` is not a commit for `{branch}` of {url}; expected 40 hex digits for a branch that the app needs")]
pub struct NotACommit {
    pub url: String,
    pub branch: String,
    pub commit: String,
}

impl Loaded {
    /// Puts `commit` wherever the version needs `branch` of the repository at `url`.
    ///
    /// # Errors
    /// When `commit` is not 40 hex digits, or nothing needs the branch.
    pub fn resolve(&mut self, url: &str, branch: &str, commit: &str) -> Result<(), NotACommit> {
        let wanted = |git: &UnresolvedGit| git.url == url && git.branch == branch;
        if !is_commit(commit) || !self.unresolved.iter().any(wanted) {
            let commit = commit.chars().take(80).collect();
            return Err(NotACommit { url: url.to_owned(), branch: branch.to_owned(), commit });
        }
        for source in sources_of(&mut self.version) {
            if let Source::Git { url: at, commit: slot, branch: name, .. } = source
                && at == url
                && name == branch
            {
                commit.clone_into(slot);
            }
        }
        self.unresolved.retain(|git| !wanted(git));
        Ok(())
    }
}

/// Returns every source of a version.
fn sources_of(version: &mut AppVersion) -> impl Iterator<Item = &mut Source> {
    let components = version.components.iter_mut().map(|component| &mut component.source);
    let sandbox = version.sandbox.iter_mut().map(|sandbox| &mut sandbox.source);
    let steps = version.actions.iter_mut().flat_map(|action| &mut action.step_repos).map(|repo| &mut repo.source);
    components.chain(sandbox).chain(steps)
}

/// Returns whether `text` is a git commit.
pub(crate) fn is_commit(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}
