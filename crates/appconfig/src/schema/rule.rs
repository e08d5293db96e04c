//! A rule about the keys of a table, as JSON Schema and as a sentence.

use serde_json::{Map, Value, json};

/// A rule about keys of one table. A key is *present* if the table has it. A key is *given* if it is present and its
/// value is neither `false` nor empty.
#[derive(Debug)]
pub(super) enum Rule {
    /// Exactly one of these keys is present.
    ExactlyOne(&'static [&'static str]),
    /// At most one of these keys is present.
    AtMostOne(&'static [&'static str]),
    /// Exactly one of these keys is given.
    OneGiven(&'static [&'static str]),
    /// At most one of these keys is given.
    AtMostOneGiven(&'static [&'static str]),
    /// At least one of the keys in the list is given, unless the key in the second field has the text in the third
    /// field as its value, such as `mode` and `build-only`.
    SomeGivenUnless(&'static [&'static str], &'static str, &'static str),
    /// When the first key is given, the others have to be given too.
    Needs(&'static str, &'static [&'static str]),
    /// When the first key is given, none of the others may be present.
    Excludes(&'static str, &'static [&'static str]),
    /// The text of a key decides which other keys are needed. When the flag is set, the first case also covers a
    /// table without the key.
    ByWord(&'static str, bool, &'static [Case]),
    /// A key holds one of the texts in the list.
    Words(&'static str, &'static [&'static [&'static str]]),
    /// A key, a pattern that its text must match, and a description of the pattern.
    Form(&'static str, &'static str, &'static str),
    /// A key, a schema that its value must fit, and a description of the schema.
    Holds(&'static str, fn() -> Value, &'static str),
    /// The default of an input fits its type.
    Default,
    /// A signature is checked either with a key, or with an identity that an issuer confirms.
    Signature,
}

/// Some values of a key, and the other keys that are needed with them.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) words: &'static [&'static str],
    pub(super) needs: &'static [&'static str],
    pub(super) how: How,
}

/// How many of the keys are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// All keys are given.
    All,
    /// Exactly one of the keys is present.
    One,
}

impl Rule {
    /// Adds the rule to the schema of a table.
    pub(super) fn add_to(&self, table: &mut Map<String, Value>) {
        match self {
            Self::ExactlyOne(keys) => {
                exclude(table, keys, there);
                table.insert("anyOf".to_owned(), keys.iter().map(|key| there(key)).collect());
            }
            Self::AtMostOne(keys) => exclude(table, keys, there),
            Self::OneGiven(keys) => {
                table.insert("oneOf".to_owned(), keys.iter().map(|key| given(key)).collect());
            }
            Self::AtMostOneGiven(keys) => exclude(table, keys, given),
            Self::SomeGivenUnless(keys, key, word) => {
                let unless = json!({ "required": [key], "properties": { *key: { "const": word } } });
                table.insert("anyOf".to_owned(), keys.iter().map(|key| given(key)).chain([unless]).collect());
            }
            Self::Needs(key, others) => {
                if let Value::Object(needed) = all_given(others) {
                    depend(table, key, |then| then.extend(needed));
                }
            }
            Self::Excludes(key, others) => {
                let others: Vec<Value> = others.iter().map(|key| there(key)).collect();
                depend(table, key, |then| {
                    then.insert("not".to_owned(), json!({ "anyOf": others }));
                });
            }
            Self::ByWord(key, unsaid, cases) => {
                for (at, case) in cases.iter().enumerate() {
                    let is_word = json!({ *key: { "enum": case.words } });
                    let condition = match at {
                        0 if *unsaid => json!({ "properties": is_word }),
                        _ => json!({ "required": [key], "properties": is_word }),
                    };
                    let then = match case.how {
                        How::All => all_given(case.needs),
                        How::One => json!({ "oneOf": case.needs.iter().map(|key| there(key)).collect::<Vec<_>>() }),
                    };
                    choose(table, condition, then);
                }
            }
            Self::Words(key, words) => set(table, key, "enum", json!(words.concat())),
            Self::Form(key, pattern, _) => set(table, key, "pattern", json!(pattern)),
            Self::Holds(key, schema, _) => {
                if let Value::Object(schema) = schema() {
                    schema.into_iter().for_each(|(word, value)| set(table, key, &word, value));
                }
            }
            Self::Default => defaults(table),
            Self::Signature => signature(table),
        }
    }

    /// Returns the keys that the rule names.
    #[cfg(test)]
    pub(super) fn keys(&self) -> Vec<&'static str> {
        match self {
            Self::ExactlyOne(keys) | Self::AtMostOne(keys) | Self::OneGiven(keys) | Self::AtMostOneGiven(keys) => {
                keys.to_vec()
            }
            Self::SomeGivenUnless(keys, key, _) | Self::Needs(key, keys) | Self::Excludes(key, keys) => {
                [keys, &[*key][..]].concat()
            }
            Self::ByWord(key, _, cases) => cases.iter().flat_map(|case| case.needs).chain([key]).copied().collect(),
            Self::Words(key, _) | Self::Form(key, ..) | Self::Holds(key, ..) => vec![key],
            Self::Default => vec!["type", "default"],
            Self::Signature => vec!["type", "public_key", "issuer", "subject", "subject_regexp"],
        }
    }

    /// Returns the rule as sentences, for the reference.
    pub(super) fn sentences(&self) -> Vec<String> {
        match self {
            Self::ExactlyOne(keys) | Self::OneGiven(keys) => vec![format!("Exactly one of {}.", list(keys))],
            Self::AtMostOne(keys) | Self::AtMostOneGiven(keys) => vec![format!("At most one of {}.", list(keys))],
            Self::SomeGivenUnless(keys, key, word) => {
                vec![format!("One of {}, unless `{key}` is `{word}`.", list(keys))]
            }
            Self::Needs(key, others) => vec![format!("`{key}` needs {}.", list(others))],
            Self::Excludes(key, others) => vec![format!("`{key}` excludes {}.", list(others))],
            Self::ByWord(key, _, cases) => cases
                .iter()
                .map(|case| {
                    let any = if case.how == How::One { "exactly one of " } else { "" };
                    format!("`{key}` {} needs {any}{}.", list(case.words), list(case.needs))
                })
                .collect(),
            Self::Words(key, words) => vec![format!("`{key}` is one of {}.", list(&words.concat()))],
            Self::Form(key, _, form) | Self::Holds(key, _, form) => vec![format!("`{key}` is {form}.")],
            Self::Default => vec!["`default` fits `type`.".to_owned()],
            Self::Signature => {
                vec!["Either `public_key`, or `issuer` with exactly one of `subject`, `subject_regexp`.".to_owned()]
            }
        }
    }
}

fn list(keys: &[&str]) -> String {
    keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ")
}

fn there(key: &str) -> Value {
    json!({ "required": [key] })
}

fn given(key: &str) -> Value {
    json!({ "required": [key], "properties": { key: not_empty() } })
}

fn all_given(keys: &[&str]) -> Value {
    let filled: Map<String, Value> = keys.iter().map(|key| ((*key).to_owned(), not_empty())).collect();
    json!({ "required": keys, "properties": filled })
}

fn not_empty() -> Value {
    json!({ "not": { "enum": [false, "", [], {}] } })
}

/// Sets the keyword `word` in the schema of `key`, if the table has that key.
fn set(table: &mut Map<String, Value>, key: &str, word: &str, value: Value) {
    let property = table.get_mut("properties").and_then(|all| all.get_mut(key)).and_then(Value::as_object_mut);
    if let Some(property) = property {
        property.insert(word.to_owned(), value);
    }
}

/// Makes each of `keys` exclude the others. This does not use `oneOf`, because editors would then mark the wrong place
/// and offer keys that are not allowed.
fn exclude(table: &mut Map<String, Value>, keys: &[&str], is: fn(&str) -> Value) {
    for key in keys {
        let others: Vec<Value> = keys.iter().filter(|other| *other != key).map(|other| is(other)).collect();
        let none = json!({ "anyOf": others });
        let forbid = |inner: &mut Map<String, Value>| {
            inner.insert("not".to_owned(), none);
        };
        if is(key) == there(key) {
            inside(table, "dependencies", |all| inside(all, key, forbid));
        } else {
            depend(table, key, forbid);
        }
    }
}

/// Changes the schema that applies to the table when `key` is given.
fn depend(table: &mut Map<String, Value>, key: &str, change: impl FnOnce(&mut Map<String, Value>)) {
    inside(table, "dependencies", |all| {
        inside(all, key, |one| {
            one.insert("if".to_owned(), given(key));
            inside(one, "then", change);
        });
    });
}

/// Changes the object under `word`, and creates it first when it is missing.
fn inside(object: &mut Map<String, Value>, word: &str, change: impl FnOnce(&mut Map<String, Value>)) {
    if let Some(inner) = object.entry(word).or_insert_with(|| json!({})).as_object_mut() {
        change(inner);
    }
}

/// Adds a schema that applies under a condition. If several conditions hold, the first of them decides.
fn choose(table: &mut Map<String, Value>, condition: Value, then: Value) {
    if table.contains_key("if") {
        inside(table, "else", |rest| choose(rest, condition, then));
    } else {
        table.insert("if".to_owned(), condition);
        table.insert("then".to_owned(), then);
    }
}

/// A pattern for the text of a number, an empty text, or a template.
const NUMBER: &str = r"^([-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]+)?)?$|\{\{";

/// Adds the schemas of defaults for each type of input. A text that contains JSON, YAML or HCL is not checked here.
fn defaults(table: &mut Map<String, Value>) {
    let cases: [(&[&str], Value); 5] = [
        (&["number"], json!({ "type": ["number", "string"], "pattern": NUMBER })),
        (&["bool"], json!({ "type": ["boolean", "string"], "pattern": r"^(true|false)?$|\{\{" })),
        (&["list"], json!({ "type": ["array", "string"] })),
        (&["json"], json!({ "type": ["array", "object", "string"] })),
        (&["yaml", "hcl"], json!({ "type": "string" })),
    ];
    for (words, default) in cases {
        let condition = json!({ "required": ["type"], "properties": { "type": { "enum": words } } });
        choose(table, condition, json!({ "properties": { "default": default } }));
    }
    // An input without a type is a string too. For such an input the reader only warns about numbers and booleans, so
    // they are accepted.
    let scalar = json!({ "type": ["string", "number", "boolean"] });
    let condition = json!({ "properties": { "type": { "const": "string" } } });
    choose(table, condition, json!({ "properties": { "default": scalar } }));
}

fn signature(table: &mut Map<String, Value>) {
    let keyless = json!({ "anyOf": [
        { "required": ["type"], "properties": { "type": { "enum": ["sigstore_keyless", "keyless"] } } },
        { "not": { "anyOf": [there("type"), there("public_key")] } },
    ] });
    let identity = json!({
        "required": ["issuer"],
        "oneOf": [there("subject"), there("subject_regexp")],
        "not": there("public_key"),
    });
    choose(table, keyless, identity);
    let key = json!({
        "required": ["public_key"],
        "not": { "anyOf": [there("issuer"), there("subject"), there("subject_regexp")] },
    });
    table.insert("else".to_owned(), key);
}
