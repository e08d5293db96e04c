//! The result of reading an app config: the app version, its packed sources, and a list of what the caller has to
//! fetch.

use std::collections::BTreeMap;
use std::path::PathBuf;

use freehold_protocol::api::ApprovalOption;
use freehold_protocol::app_version::AppVersion;
use freehold_protocol::order::Source;
use freehold_protocol::{ComponentName, Digest, InstallId};

use crate::report::diagnostics::Diagnostics;

/// The result of reading an app config.
#[derive(Debug)]
pub struct Loaded {
    /// The app version. Its digest is final only when `unresolved` and `addresses` are empty.
    pub version: AppVersion,
    /// The installs that files of the app describe, sorted by name.
    pub installs: Vec<InstallFile>,
    /// The packed local sources, sorted by owner.
    pub sources: Vec<LocalSource>,
    /// The branches whose commits the caller has to find and pass to [`Loaded::resolve`].
    pub unresolved: Vec<UnresolvedGit>,
    /// The addresses whose texts are missing, sorted. The caller has to fetch the texts and call [`crate::load_with`].
    pub addresses: Vec<String>,
    pub warnings: Diagnostics,
    /// The mistakes for which a sync refuses the directory; empty except after [`crate::load_for_comparison`]. The
    /// parts that the version lacks because of these mistakes count as changed.
    pub refused: Diagnostics,
}

/// A directory or file on the vendor's machine, packed for upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalSource {
    /// The part of the app that uses this source, such as ``component `web` ``.
    pub owner: String,
    pub path: PathBuf,
    /// The digest of `archive`.
    pub digest: Digest,
    /// A gzipped tar archive. The same files always give the same bytes.
    pub archive: Vec<u8>,
}

/// An install as a file in `installs/` describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstallFile {
    /// The path of the file in the app's directory.
    pub path: String,
    pub install: InstallId,
    /// The AWS region; absent when the file names none, as for an install in another cloud.
    pub region: Option<String>,
    pub approval_option: Option<ApprovalOption>,
    /// The values of inputs by name, without the values of sensitive inputs and of inputs that the customer answers.
    pub inputs: BTreeMap<String, String>,
    pub toggles: BTreeMap<ComponentName, bool>,
    /// The install's own labels; absent when the file has no `labels`.
    pub labels: Option<BTreeMap<String, String>>,
}

/// A branch or tag of a repository. The app version needs its commit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnresolvedGit {
    pub url: String,
    /// The name of the branch or tag, as an argument for `git ls-remote`.
    pub branch: String,
}

/// The error for a text that is not a commit, or for a branch that the app does not need.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot use commit `{commit}` for `{branch}` of {url}: a commit has 40 lowercase hex digits, and the app \
     has to use the branch"
)]
pub struct NotACommit {
    pub url: String,
    pub branch: String,
    pub commit: String,
}

impl Loaded {
    /// Sets the commit of all sources that are `branch` of the repository at `url`.
    ///
    /// # Errors
    /// [`NotACommit`] when `commit` is not 40 hex digits, or the app does not need the branch.
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

/// Returns all sources of a version.
fn sources_of(version: &mut AppVersion) -> impl Iterator<Item = &mut Source> {
    let components = version.components.iter_mut().map(|component| &mut component.source);
    let sandbox = version.sandbox.iter_mut().map(|sandbox| &mut sandbox.source);
    let steps = version.actions.iter_mut().flat_map(|action| &mut action.step_repos).map(|repo| &mut repo.source);
    components.chain(sandbox).chain(steps)
}

/// Returns whether `text` is a full git commit: 40 lowercase hex digits.
pub(crate) fn is_commit(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}
