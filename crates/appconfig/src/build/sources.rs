//! Collects the sources of builds: directories beside the config, git repositories, images and chart repositories.

use std::collections::BTreeSet;

use freehold_protocol::order::Source;

use crate::load_result::{LocalSource, UnresolvedGit, is_commit};
use crate::read::archive::{self, Archive};
use crate::read::document::{Entry, Node};
use crate::read::files::{Files, Place};
use crate::read::paths::{normal, reason};
use crate::report::diagnostic::Severity;
use crate::report::draft::Draft;
use crate::state::app::App;
use crate::state::file::Checked;
use crate::state::source::Held;

/// The sources of an app, collected while the app is read.
#[derive(Debug)]
pub(crate) struct Sources {
    /// The severity with which features that are not supported yet are reported.
    pub(crate) unsupported: Severity,
    pub(crate) drafts: Vec<Draft>,
    local: Vec<LocalSource>,
    unresolved: BTreeSet<UnresolvedGit>,
    /// The local sources. The content of their files is checked later.
    pub(crate) held: Vec<Held>,
    /// The parts whose sources are not in the app's directory, each with the address of its source.
    pub(crate) elsewhere: BTreeSet<(String, String)>,
}

impl Sources {
    pub(crate) const fn new(unsupported: Severity) -> Self {
        Self {
            unsupported,
            drafts: Vec::new(),
            local: Vec::new(),
            unresolved: BTreeSet::new(),
            held: Vec::new(),
            elsewhere: BTreeSet::new(),
        }
    }

    /// Moves the mistakes to `app`. Returns the local sources, sorted by owner, and the branches whose commits are not
    /// known.
    pub(crate) fn finish(self, app: &mut App) -> (Vec<LocalSource>, Vec<UnresolvedGit>) {
        app.drafts.extend(self.drafts);
        app.elsewhere.extend(self.elsewhere);
        let mut local = self.local;
        local.sort_by(|a, b| (&a.owner, &a.digest).cmp(&(&b.owner, &b.digest)));
        (local, self.unresolved.into_iter().collect())
    }

    pub(crate) fn error(&mut self, place: Place, message: impl Into<String>, help: &str) {
        self.drafts.push(Draft::error(place, message).help(help));
    }

    /// Returns the entry of `node` under one of `keys`. Reports a node that has none or more than one of them. `owner`
    /// names the part of the app, such as ``component `web` ``, and `what` names its content, such as "image".
    pub(crate) fn one_of<'n>(
        &mut self,
        checked: &Checked,
        node: &'n Node,
        keys: &[&str],
        owner: &str,
        what: &str,
    ) -> Option<&'n Entry> {
        self.one_of_at(checked, node, checked.place_of(node, "type"), keys, owner, what)
    }

    /// Does the same as [`Self::one_of`]. If `node` has none of the keys, the message marks `place`.
    pub(crate) fn one_of_at<'n>(
        &mut self,
        checked: &Checked,
        node: &'n Node,
        place: Place,
        keys: &[&str],
        owner: &str,
        what: &str,
    ) -> Option<&'n Entry> {
        let given: Vec<&Entry> = keys.iter().filter_map(|key| node.entry(key)).collect();
        let choice = keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
        match given.as_slice() {
            [one] => return Some(one),
            [] => {
                let message = format!("{owner} does not name the source of its {what}");
                self.error(place, message, &format!("add one of {choice}"));
            }
            [first, second, ..] => {
                let draft = Draft::error(checked.key_place(second), format!("the {what} comes from two places"));
                let draft = draft.related(checked.key_place(first), "the other key");
                self.drafts.push(draft.help(format!("keep one of {choice}")));
            }
        }
        None
    }

    /// Returns the source that a `public_repo` or `connected_repo` table describes.
    pub(crate) fn repo(&mut self, files: &Files, checked: &Checked, entry: &Entry, owner: &str) -> Option<Source> {
        let repo = entry.value.get("repo")?;
        let word = repo.as_text()?;
        let directory = entry.value.text("directory").unwrap_or_default();
        if word == "." || word.starts_with("./") || word.starts_with("../") {
            return self.directory(files, checked, repo, &format!("{word}/{directory}"), owner);
        }
        let Some(url) = git_url(word) else {
            let draft = Draft::error(checked.place(repo), format!("`{word}` is not a repository"));
            self.drafts.push(draft.expected("`owner/name`, an `https://` or `ssh://` address, or `./path`"));
            return None;
        };
        let Some(directory) = normal(directory) else {
            let place = checked.place_of(&entry.value, "directory");
            self.error(place, format!("`{directory}` is outside of the repository"), "name a directory inside of it");
            return None;
        };
        let branch = entry.value.text("branch").unwrap_or("HEAD").to_owned();
        self.elsewhere.insert((owner.to_owned(), url.clone()));
        Some(self.git(url, branch, directory))
    }

    /// Returns a git source. If `branch` is not a commit, the caller of the crate has to find the commit
    /// ([`UnresolvedGit`]).
    pub(crate) fn git(&mut self, url: String, branch: String, directory: String) -> Source {
        if is_commit(&branch) {
            return Source::Git { url, commit: branch, directory, branch: String::new() };
        }
        self.unresolved.insert(UnresolvedGit { url: url.clone(), branch: branch.clone() });
        Source::Git { url, commit: String::new(), directory, branch }
    }

    /// Packs the directory that `word` names, and returns it as a source.
    pub(crate) fn directory(
        &mut self,
        files: &Files,
        checked: &Checked,
        node: &Node,
        word: &str,
        owner: &str,
    ) -> Option<Source> {
        let path = self.inside(files, checked, node, word)?;
        let packed = archive::directory(files.tree(), &path);
        let (owner, word) = (owner.to_owned(), word.to_owned());
        self.packed(files, Held { owner, place: checked.place(node), word, path, paths: BTreeSet::new() }, packed)
    }

    /// Returns the path, relative to the app's directory, that `word` names. Reports an empty path, and a path outside
    /// of this directory.
    pub(crate) fn inside(&mut self, files: &Files, checked: &Checked, node: &Node, word: &str) -> Option<String> {
        if word.is_empty() {
            self.error(checked.place(node), "the path of the source is empty", "write a path, such as `./path`");
            return None;
        }
        let path = files.named(checked.file, word);
        if path.is_none() {
            let message = format!("`{word}` is outside of the app's directory");
            self.error(checked.place(node), message, "move it into the app's directory");
        }
        path
    }

    /// Adds a packed directory or file as the local source `held`. Reports a source that could not be packed.
    pub(crate) fn packed(&mut self, files: &Files, held: Held, packed: std::io::Result<Archive>) -> Option<Source> {
        match packed {
            Ok(Archive { digest, bytes, paths }) => {
                self.local.push(LocalSource {
                    owner: held.owner.clone(),
                    path: files.locate(&held.path),
                    digest: digest.clone(),
                    archive: bytes,
                });
                self.held.push(Held { paths, ..held });
                Some(Source::Directory { digest })
            }
            Err(error) => {
                if error.kind() == std::io::ErrorKind::NotADirectory {
                    let message = format!("the source `{}` is a file, and a directory is expected", held.word);
                    self.error(held.place, message, "name the directory of the file");
                    return None;
                }
                let message = format!("the source `{}` cannot be read: {}", held.word, reason(&error));
                let help =
                    "create the source, or correct the path: it is relative to this file or to the app's directory";
                self.error(held.place, message, help);
                None
            }
        }
    }
}

/// Returns the URL of the repository that a config names. `owner/name` is a repository on GitHub.
fn git_url(repo: &str) -> Option<String> {
    if ["https://", "ssh://", "http://", "file://"].iter().any(|scheme| repo.starts_with(scheme))
        || repo.starts_with("git@")
    {
        return Some(repo.to_owned());
    }
    let (owner, name) = repo.split_once('/')?;
    let plain = |part: &str| {
        !part.is_empty()
            && !part.starts_with('-')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    };
    (plain(owner) && plain(name)).then(|| format!("https://github.com/{owner}/{name}"))
}
