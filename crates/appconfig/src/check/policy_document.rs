//! Checks the form of an IAM policy document, so that parts that AWS would refuse or ignore are reported before an
//! install.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;

use freehold_permissions::PLAIN_KEYS;
use freehold_template::nearest;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::read::json;
use crate::report::diagnostic::Severity;

/// The keys of a document (IAM JSON policy elements reference).
const DOCUMENT: [&str; 3] = ["Version", "Id", "Statement"];
/// The keys of a statement (IAM JSON policy elements reference).
const STATEMENT: [&str; 9] =
    ["Sid", "Effect", "Principal", "NotPrincipal", "Action", "NotAction", "Resource", "NotResource", "Condition"];

/// A mistake in a policy document.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Flaw {
    pub(crate) severity: Severity,
    /// The place of the mistake in the text, in bytes.
    pub(crate) range: Range<usize>,
    pub(crate) message: String,
    pub(crate) help: String,
}

type Fields<'a> = BTreeMap<String, &'a RawValue>;

/// Returns the mistakes in `text`; empty for a text that is not JSON, because [`json::check`] reports it.
pub(crate) fn flaws(text: &str) -> Vec<Flaw> {
    let plain = json::without_actions(text);
    let mut reader = Reader { text, plain: &plain, flaws: Vec::new() };
    if let Ok(root) = serde_json::from_str::<&RawValue>(&plain) {
        reader.structure(root);
        reader.document(root);
    }
    reader.flaws
}

/// Returns whether `text` is blank or an empty document (`{}`).
pub(crate) fn is_empty(text: &str) -> bool {
    text.trim().is_empty() || serde_json::from_str::<serde_json::Map<_, _>>(text).is_ok_and(|map| map.is_empty())
}

/// Returns whether `text` is a document whose only statement allows all actions on all resources. As a permissions
/// boundary, it changes nothing.
pub(crate) fn allows_everything(text: &str) -> bool {
    let Ok(document) = serde_json::from_str::<Value>(text) else { return false };
    let is_all = |value: Option<&Value>| match value {
        Some(Value::String(one)) => one == "*",
        Some(Value::Array(all)) => !all.is_empty() && all.iter().all(|one| one == "*"),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => false,
    };
    let statements = match document.get("Statement") {
        Some(Value::Array(all)) => all.as_slice(),
        Some(one) => std::slice::from_ref(one),
        None => return false,
    };
    let [only] = statements else { return false };
    let keys = ["Action", "Effect", "Resource", "Sid"];
    only.as_object().is_some_and(|only| only.keys().all(|key| keys.contains(&key.as_str())))
        && only.get("Effect").is_some_and(|effect| effect == "Allow")
        && is_all(only.get("Action"))
        && is_all(only.get("Resource"))
}

struct Reader<'a> {
    text: &'a str,
    plain: &'a str,
    flaws: Vec<Flaw>,
}

impl<'a> Reader<'a> {
    /// Reports parts that could differ between the contract and the install stack: templates in keys and in the values
    /// of [`PLAIN_KEYS`], and keys that are given twice.
    fn structure(&mut self, raw: &'a RawValue) {
        if let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(raw.get()) {
            return items.into_iter().for_each(|item| self.structure(item));
        }
        let Ok(Entries(entries)) = serde_json::from_str::<Entries<'_>>(raw.get()) else { return };
        let mut seen = BTreeSet::new();
        for (key, value) in &entries {
            let (written, key, value) = (self.text_at(key), &*key.0, *value);
            if key.contains("{{") || written.is_some_and(|text| text.contains("{{")) {
                self.error(
                    value,
                    "the key of this value contains a template",
                    "write the key without a template; only values can be templates",
                );
            } else if !seen.insert(key) {
                let message = format!("key `{key}` is given twice");
                self.error(value, &message, "remove one of them; JSON parsers differ in which value they use");
            } else if PLAIN_KEYS.contains(&key) && (self.templated(value) || value.get().contains("\\u007")) {
                let message = format!("`{key}` contains a template");
                self.error(value, &message, "write the text itself, so that the contract shows what the role may do");
            }
            self.structure(value);
        }
    }

    /// Returns a key as the text has it; `None` for a key that is written with escapes.
    fn text_at(&self, key: &Key<'a>) -> Option<&'a str> {
        let Cow::Borrowed(key) = key.0 else { return None };
        let start = key.as_ptr().addr().checked_sub(self.plain.as_ptr().addr())?;
        self.text.get(start..start + key.len())
    }

    fn document(&mut self, root: &'a RawValue) {
        let Ok(fields) = serde_json::from_str::<Fields>(root.get()) else {
            self.error(
                root,
                "the policy document is not an object",
                "write `{ \"Version\": \"2012-10-17\", \"Statement\": [...] }`",
            );
            return;
        };
        self.unknown(&fields, &DOCUMENT);
        let Some(statements) = fields.get("Statement") else {
            if !fields.keys().any(|key| meant(key, &DOCUMENT) == Some("Statement")) {
                self.warning(
                    root,
                    "the policy document has no `Statement`, so it grants nothing",
                    "add `\"Statement\": [...]`",
                );
            }
            return;
        };
        if let Ok(list) = serde_json::from_str::<Vec<&RawValue>>(statements.get()) {
            list.into_iter().for_each(|statement| self.statement(statement));
        } else {
            self.statement(statements);
        }
    }

    fn statement(&mut self, raw: &'a RawValue) {
        let Ok(fields) = serde_json::from_str::<Fields>(raw.get()) else {
            self.error(
                raw,
                "a statement is not an object",
                "write `{ \"Effect\": \"Allow\", \"Action\": [...], \"Resource\": [...] }`",
            );
            return;
        };
        self.unknown(&fields, &STATEMENT);
        match fields.get("Effect") {
            None => self.error(
                raw,
                "the statement has no `Effect`",
                "add `\"Effect\": \"Allow\"` or `\"Effect\": \"Deny\"`",
            ),
            // `structure` reports an effect that is a template.
            Some(effect) if self.templated(effect) || ["\"Allow\"", "\"Deny\""].contains(&effect.get()) => {}
            Some(effect) => {
                let message = format!("the statement's `Effect` is `{}`", effect.get().trim_matches('"'));
                self.error(effect, &message, "write `\"Allow\"` or `\"Deny\"`");
            }
        }
        for (key, negated) in [("Action", "NotAction"), ("Resource", "NotResource")] {
            match (fields.get(key), fields.get(negated)) {
                (Some(_), None) | (None, Some(_)) => {}
                (None, None) => {
                    let message = format!("the statement has neither `{key}` nor `{negated}`");
                    self.error(raw, &message, &format!("add `\"{key}\": [...]`"));
                }
                (Some(_), Some(second)) => {
                    let message = format!("the statement has both `{key}` and `{negated}`");
                    self.error(second, &message, "keep one of them");
                }
            }
        }
        for key in ["Principal", "NotPrincipal"] {
            if let Some(principal) = fields.get(key) {
                let message =
                    format!("a role's policy must not have `{key}`: the policy always applies to the role itself");
                self.error(principal, &message, &format!("remove `{key}`"));
            }
        }
        for action in ["Action", "NotAction"].into_iter().filter_map(|key| fields.get(key)) {
            self.actions(action);
        }
    }

    fn actions(&mut self, raw: &'a RawValue) {
        let items = serde_json::from_str::<Vec<&RawValue>>(raw.get()).unwrap_or_else(|_| vec![raw]);
        for item in items {
            let word = item.get().trim_matches('"');
            let fits = word == "*" || word.contains(':') || self.templated(item);
            if !item.get().starts_with('"') {
                self.error(item, "an action is not a string", "write `\"service:Action\"`");
            } else if !fits {
                let message = format!("`{word}` is not an action");
                self.error(item, &message, "write the service before it, as in `\"s3:GetObject\"`");
            }
        }
    }

    fn unknown(&mut self, fields: &BTreeMap<String, &'a RawValue>, known: &[&'static str]) {
        for (key, value) in fields.iter().filter(|(key, _)| !known.contains(&key.as_str())) {
            let message = format!("`{key}` is not a key of a policy document");
            let help = match meant(key, known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known keys here: {}", known.join(", ")),
            };
            self.warning(value, &message, &help);
        }
    }

    fn templated(&self, raw: &RawValue) -> bool {
        self.text.get(self.range(raw)).is_some_and(|text| text.contains("{{"))
    }

    /// Returns the position of `raw` in the whole text, in bytes. `raw` must be a part of that text.
    fn range(&self, raw: &RawValue) -> Range<usize> {
        let start = (raw.get().as_ptr().addr()).saturating_sub(self.plain.as_ptr().addr());
        start..start + raw.get().len()
    }

    fn error(&mut self, raw: &RawValue, message: &str, help: &str) {
        self.flaw(Severity::Error, raw, message, help);
    }

    fn warning(&mut self, raw: &RawValue, message: &str, help: &str) {
        self.flaw(Severity::Warning, raw, message, help);
    }

    fn flaw(&mut self, severity: Severity, raw: &RawValue, message: &str, help: &str) {
        let range = self.range(raw);
        self.flaws.push(Flaw { severity, range, message: message.to_owned(), help: help.to_owned() });
    }
}

/// The entries of an object in the order of the text, also those with the same key.
struct Entries<'a>(Vec<(Key<'a>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Entries<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EachEntry)
    }
}

struct EachEntry;

impl<'de> Visitor<'de> for EachEntry {
    type Value = Entries<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Entries<'de>, A::Error> {
        let mut all = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            all.push(entry);
        }
        Ok(Entries(all))
    }
}

/// A key of a JSON object. It borrows from the document's text; a key with escapes is copied instead.
struct Key<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl<'de> Visitor<'de> for Text {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(key)))
            }

            fn visit_str<E>(self, key: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(key.to_owned())))
            }
        }

        deserializer.deserialize_str(Text)
    }
}

fn meant(key: &str, known: &[&'static str]) -> Option<&'static str> {
    nearest(key, known.iter().copied()).and_then(|near| known.iter().copied().find(|word| *word == near))
}
