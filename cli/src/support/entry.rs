//! The entries of a bundle: each is redacted when it is made, and has a limited size.

use freehold_protocol::Digest;
use freehold_redaction::{redact_by_shape, redact_json_by_shape};
use serde::Serialize;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::output::bytes;

/// The maximum size of an entry, in bytes.
pub(super) const MAX_ENTRY_BYTES: usize = 256 * 1024;
/// The fields of records and reports with the ids of keys, which are not secret.
const KEY_IDS: [&str; 3] = ["key", "replaced_by", "runner"];

/// A file of a bundle.
#[derive(Debug, Serialize)]
pub(super) struct Entry {
    /// Its name in the archive.
    pub(super) name: String,
    /// What it contains, in a few words.
    pub(super) about: &'static str,
    pub(super) bytes: usize,
    pub(super) sha256: Digest,
    /// The number of places with a mask.
    pub(super) redacted: usize,
    /// Whether older content was left out because of the maximum size.
    pub(super) is_cut: bool,
    #[serde(skip)]
    pub(super) content: Vec<u8>,
}

impl Entry {
    /// Returns an entry with a JSON document, whose texts are redacted.
    ///
    /// # Errors
    /// When the document is too large.
    pub(super) fn document(name: &str, about: &'static str, mut value: Value) -> Result<Self> {
        let redacted = redact_json_by_shape(&mut value, &KEY_IDS);
        let content = serde_json::to_vec_pretty(&value).map_err(|error| unwritable(&error))?;
        if content.len() > MAX_ENTRY_BYTES {
            let most = bytes(MAX_ENTRY_BYTES.try_into().unwrap_or(u64::MAX));
            return Err(Error::failed(format!("it has more than {most}")));
        }
        Ok(Self::of(name.to_owned(), about, content, (redacted, false)))
    }

    /// Returns an entry with one line of JSON for each of `items`, which are the oldest first and are redacted. The oldest
    /// are left out if all of them are too large. `is_cut` is true if the caller left out older ones.
    pub(super) fn lines(name: &str, about: &'static str, items: Vec<Value>, is_cut: bool) -> Result<Self> {
        let (mut lines, mut size, mut redacted, all) = (Vec::new(), 0, 0, items.len());
        for mut item in items.into_iter().rev() {
            let places = redact_json_by_shape(&mut item, &KEY_IDS);
            let line = serde_json::to_string(&item).map_err(|error| unwritable(&error))? + "\n";
            size += line.len();
            if size > MAX_ENTRY_BYTES {
                break;
            }
            redacted += places;
            lines.push(line);
        }
        let is_cut = is_cut || lines.len() < all;
        lines.reverse();
        Ok(Self::of(name.to_owned(), about, lines.concat().into_bytes(), (redacted, is_cut)))
    }

    /// Returns an entry with the end of a text, which is redacted. With `is_cut`, the text begins in the middle of a line,
    /// which is left out: it may have the end of a secret.
    pub(super) fn text(name: String, about: &'static str, text: &str, is_cut: bool) -> Self {
        let (text, is_cut) = end_of(text, is_cut);
        let redacted = redact_by_shape(text);
        Self::of(name, about, redacted.text.into_bytes(), (redacted.places, is_cut))
    }

    fn of(name: String, about: &'static str, content: Vec<u8>, (redacted, is_cut): (usize, bool)) -> Self {
        Self { name, about, bytes: content.len(), sha256: Digest::of(&content), redacted, is_cut, content }
    }
}

/// Returns the whole lines at the end of `text`, and whether text before them was left out.
fn end_of(text: &str, is_cut: bool) -> (&str, bool) {
    let from = text.len().saturating_sub(MAX_ENTRY_BYTES);
    if from == 0 && !is_cut {
        return (text, false);
    }
    let line_end = text.bytes().skip(from).position(|byte| byte == b'\n').map(|at| from + at + 1);
    (line_end.and_then(|start| text.get(start..)).unwrap_or_default(), true)
}

fn unwritable(error: &serde_json::Error) -> Error {
    Error::internal(format!("cannot write JSON: {error}"))
}

/// A part that could not be read.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Missing {
    pub(super) what: String,
    pub(super) reason: String,
}

/// The entries of a bundle, and the parts that it lacks.
#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) entries: Vec<Entry>,
    pub(super) missing: Vec<Missing>,
    /// The first error about a part.
    pub(super) error: Option<Error>,
}

impl Parts {
    /// Adds an entry, or the reason why there is none.
    pub(super) fn add(&mut self, what: &str, entry: Result<Entry>) {
        match entry {
            Ok(entry) => self.entries.push(entry),
            Err(error) => self.lack(what, error),
        }
    }

    /// Adds the reason why a part could not be read. The text is redacted like any other.
    pub(super) fn lack(&mut self, what: &str, error: Error) {
        let reason = redact_by_shape(&error.to_string()).text;
        self.missing.push(Missing { what: what.to_owned(), reason });
        self.error.get_or_insert(error);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_that_is_too_long_loses_whole_lines_at_its_beginning() {
        let text = format!("first\n{}\nlast\n", "n ".repeat(MAX_ENTRY_BYTES / 2));

        let entry = Entry::text("a.log".to_owned(), "a log", &text, false);
        let rest = Entry::text("a.log".to_owned(), "a log", "half of a li\nne\n", true);

        assert_eq!((String::from_utf8(entry.content).unwrap(), entry.is_cut), ("last\n".to_owned(), true));
        assert_eq!((rest.content, rest.is_cut), (b"ne\n".to_vec(), true));
        let whole = Entry::text("a.log".to_owned(), "a log", "one\ntwo", false);
        assert_eq!((whole.content, whole.is_cut), (b"one\ntwo".to_vec(), false));
    }

    #[test]
    fn of_a_long_list_the_newest_items_stay_in_their_order() {
        let items: Vec<Value> = (0..5).map(|at| json!({ "at": at, "text": "n ".repeat(40_000) })).collect();

        let entry = Entry::lines("a.jsonl", "a list", items, false).unwrap();

        let text = String::from_utf8(entry.content).unwrap();
        let kept: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(kept.iter().map(|one| one["at"].as_u64().unwrap()).collect::<Vec<_>>(), [2, 3, 4]);
        assert!(entry.is_cut);
        assert!(!Entry::lines("a.jsonl", "a list", vec![json!(1)], false).unwrap().is_cut);
        assert!(Entry::lines("a.jsonl", "a list", vec![json!(1)], true).unwrap().is_cut);
    }

    #[test]
    fn a_document_that_is_too_large_is_missing_with_the_reason_and_a_secret_in_a_reason_is_redacted() {
        let mut parts = Parts::default();

        parts.add("a.json", Entry::document("a.json", "a document", json!("n ".repeat(MAX_ENTRY_BYTES))));
        parts.add("b.json", Err(Error::failed("got wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY back")));
        parts.add("c.json", Entry::document("c.json", "a document", json!({ "token": "x", "n": 1 })));

        let reasons: Vec<&str> = parts.missing.iter().map(|one| one.reason.as_str()).collect();
        assert_eq!(reasons, ["it has more than 256.00 KiB", "got [redacted] back"]);
        assert_eq!((parts.entries.len(), parts.entries[0].redacted), (1, 1));
    }
}
