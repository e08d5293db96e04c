//! Warns about files, keys and values that have no effect: Freehold only reads and checks them.

use crate::kinds::Kind;
use crate::kinds::spec::{Effect, Key};
use crate::read::document::Entry;
use crate::read::files::Place;
use crate::report::draft::Draft;

/// Returns the warning about a file of a kind that has no effect.
pub(crate) fn of_file(kind: Kind, place: Place, path: &str) -> Option<Draft> {
    match kind.effect() {
        Effect::Works | Effect::NeverFor(..) => None,
        Effect::Never(instead) => Some(without_effect(place, &format!("`{path}`"), instead)),
    }
}

/// Returns the warning about a key that has no effect. Returns `None` if the value is `false`, zero or empty, or if the
/// whole file has no effect.
pub(crate) fn of_key(kind: Kind, key: &Key, entry: &Entry, file: usize) -> Option<Draft> {
    if kind.effect() != Effect::Works || entry.value.is_nothing() {
        return None;
    }
    let name = &entry.key;
    let place = Place { file, span: entry.value.span.clone() };
    match key.effect {
        Effect::Works => None,
        Effect::Never(instead) => {
            let place = Place { file, span: entry.key_span.clone() };
            Some(without_effect(place, &format!("`{name}`"), instead))
        }
        Effect::NeverFor(of, instead) => {
            (entry.value.as_text() == Some(of)).then(|| without_effect(place, &format!("`{name} = \"{of}\"`"), instead))
        }
    }
}

/// Returns the warning that `what`, a file, a key or a value, has no effect. `instead` is what Freehold does, or what a
/// vendor can do, instead.
pub(crate) fn without_effect(place: Place, what: &str, instead: &str) -> Draft {
    Draft::warning(place, format!("{what} has no effect")).help(instead)
}
