//! Reads the files of sources within a limit, and collects the mistakes in them.

use crate::read::files::{Files, Place};
use crate::read::paths::join;
use crate::report::draft::Draft;
use crate::state::source::Held;

/// The maximum number of bytes of all sources that one check reads. It keeps a check fast, however large the sources
/// are.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// Reads the files of an app's sources.
pub(super) struct Reader<'a> {
    files: &'a mut Files,
    drafts: &'a mut Vec<Draft>,
    /// The number of bytes that may still be read.
    left: usize,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(files: &'a mut Files, drafts: &'a mut Vec<Draft>) -> Self {
        Self { files, drafts, left: MAX_BYTES }
    }

    pub(super) fn say(&mut self, draft: Draft) {
        self.drafts.push(draft);
    }

    pub(super) fn text(&self, file: usize) -> &str {
        self.files.text(file)
    }

    /// Returns the number of the file `name` of a source. Reports a file that cannot be read, or that is not checked
    /// because of [`MAX_BYTES`]. A link is only followed inside of the app's directory.
    pub(super) fn open(&mut self, held: &Held, name: &str) -> Option<usize> {
        let path = self.inside(&join(&held.path, name))?;
        self.open_at(held, &path)
    }

    /// Does the same as [`Self::open`] for a path relative to the app's directory.
    pub(super) fn open_at(&mut self, held: &Held, path: &str) -> Option<usize> {
        match self.files.read(path) {
            Ok(file) => {
                let left = self.left.checked_sub(self.files.text(file).len());
                if left.is_none() {
                    let message = format!("`{path}` is not checked: the sources have more than {MAX_BYTES} bytes");
                    let help = "remove files that the app does not need from its sources";
                    self.say(Draft::warning(held.place.clone(), message).help(help));
                }
                self.left = left?;
                Some(file)
            }
            Err(reason) => {
                let message = format!("`{path}` of the source `{}` cannot be read: {reason}", held.word);
                let draft = if reason.starts_with("it is larger") {
                    Draft::warning(held.place.clone(), message)
                        .help("make the file smaller, or remove it from the source")
                } else {
                    Draft::error(held.place.clone(), message).help("correct the file, or remove it from the source")
                };
                self.say(draft);
                None
            }
        }
    }

    /// Returns `path`, or the target of the link at `path`; `None` for a link that leads out of the app's directory.
    fn inside(&self, path: &str) -> Option<String> {
        let tree = self.files.tree();
        if !tree.is_link(path) {
            return Some(path.to_owned());
        }
        tree.relative(&tree.locate(path))
    }

    /// Returns the place of `length` bytes at `offset` in a file.
    pub(super) const fn place(file: usize, offset: usize, length: usize) -> Place {
        Place { file, span: offset..offset + length }
    }
}
