//! Reads the files of a source, within the limits of one check, and collects what is wrong with them.

use crate::read::files::{Files, Place};
use crate::read::paths::join;
use crate::report::draft::Draft;
use crate::state::source::Held;

/// The most bytes of sources that one check reads: a check answers at once, however large a source is.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The files of the sources of one app.
pub(super) struct Reader<'a> {
    files: &'a mut Files,
    drafts: &'a mut Vec<Draft>,
    /// How many bytes may still be read.
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

    /// Returns the number of the file `name` of a source; reports a file that is not text. A link is followed inside of
    /// the app's directory only.
    pub(super) fn open(&mut self, held: &Held, name: &str) -> Option<usize> {
        let path = self.inside(&join(&held.path, name))?;
        self.open_at(held, &path)
    }

    /// As [`Self::open`], by the path in the app's directory.
    pub(super) fn open_at(&mut self, held: &Held, path: &str) -> Option<usize> {
        match self.files.read(path) {
            Ok(file) => {
                let left = self.left.checked_sub(self.files.text(file).len());
                if left.is_none() {
                    let message = format!("`{path}` is not checked: the sources have more than {MAX_BYTES} bytes");
                    self.say(Draft::warning(held.place.clone(), message));
                }
                self.left = left?;
                Some(file)
            }
            Err(reason) => {
                let message = format!("`{path}` of the source `{}` cannot be read: {reason}", held.word);
                let draft = if reason.starts_with("it is larger") {
                    Draft::warning(held.place.clone(), message)
                } else {
                    Draft::error(held.place.clone(), message).help("correct it, or remove it from the source")
                };
                self.say(draft);
                None
            }
        }
    }

    /// Returns `path`, or what it is a link to; `None` for a link to the outside.
    fn inside(&self, path: &str) -> Option<String> {
        let tree = self.files.tree();
        if !tree.is_link(path) {
            return Some(path.to_owned());
        }
        tree.relative(&tree.locate(path))
    }

    /// Returns a place of `length` bytes in a file.
    pub(super) const fn place(file: usize, offset: usize, length: usize) -> Place {
        Place { file, span: offset..offset + length }
    }
}
