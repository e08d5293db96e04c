//! Warns about files and keys that have no effect: Freehold only reads and checks them.

use crate::kinds::Kind;
use crate::kinds::spec::{Effect, Key};
use crate::read::document::Entry;
use crate::read::files::Place;
use crate::report::draft::Draft;

const HELP: &str = "Freehold reads and checks it, and does nothing else with it";

/// Returns the warning about a file of a kind that has no effect.
pub(crate) fn of_file(kind: Kind, place: Place, path: &str) -> Option<Draft> {
    let message = match kind.effect() {
        Effect::Works | Effect::NotYetFor(_) => return None,
        Effect::NotYet => format!("`{path}` has no effect yet"),
        Effect::Never => format!("`{path}` has no effect"),
    };
    Some(Draft::warning(place, message).help(HELP))
}

/// Returns the warning about a key that has no effect. Returns `None` if the value switches nothing on, or if the whole
/// file has no effect.
pub(crate) fn of_key(kind: Kind, key: &Key, entry: &Entry, file: usize) -> Option<Draft> {
    if kind.effect() != Effect::Works || entry.value.is_nothing() {
        return None;
    }
    let name = &entry.key;
    let (span, message) = match key.effect {
        Effect::Works => return None,
        Effect::NotYet => (&entry.key_span, format!("`{name}` has no effect yet")),
        Effect::Never => (&entry.key_span, format!("`{name}` has no effect")),
        Effect::NotYetFor(words) => {
            let word = entry.value.as_text().filter(|text| words.contains(text))?;
            (&entry.value.span, format!("`{name} = \"{word}\"` has no effect yet"))
        }
    };
    Some(Draft::warning(Place { file, span: span.clone() }, message).help(HELP))
}
