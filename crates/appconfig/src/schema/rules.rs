//! What the reader asks of a table beyond its keys one by one, for the schemas: keys that exclude or need each other.

use serde_json::{Map, Value, json};

use crate::actions::TRIGGERS;

/// What keys of one table are to each other.
#[derive(Debug)]
pub(super) enum Rule {
    /// One of these keys and no other of them.
    ExactlyOne(&'static [&'static str]),
    /// No two of these keys.
    AtMostOne(&'static [&'static str]),
    /// One of these keys is a text that is not empty, and no other of them.
    OneFilled(&'static [&'static str]),
    /// The first key needs the second.
    Needs(&'static str, &'static str),
    /// With one of these words under the first key, the last key is needed. A table has only one of this and `Default`.
    WordNeeds(&'static str, &'static [&'static str], &'static str),
    /// A key that holds one of some words.
    Words(&'static str, &'static [&'static str]),
    /// A key with a form.
    Form(&'static str, &'static str),
    /// The default of an input fits its type.
    Default,
}

/// Where rules hold: names of kinds or types, and of the keys from there on, with dots.
type At = &'static [&'static str];

/// Names of components and actions (`ComponentName`, `ActionName` of the protocol).
const LABEL: &str = "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$";

const POLICIES_OF_ROLES: At = &[
    "role.policies",
    "permissions.provision_role.policies",
    "permissions.maintenance_role.policies",
    "permissions.deprovision_role.policies",
    "permissions.roles.policies",
    "break_glass.role.policies",
];

/// A number in quotes, or nothing between them.
const NUMBER: &str = "^([-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][-+]?[0-9]+)?)?$";

pub(super) const RULES: &[(At, Rule)] = &[
    (&["component"], Rule::Form("name", LABEL)),
    (&["action"], Rule::Form("name", LABEL)),
    (&["terraform_module"], Rule::ExactlyOne(&["source", "public_repo", "connected_repo"])),
    (&["container_image"], Rule::ExactlyOne(&["public", "aws_ecr", "gcp_gar", "oci_layout"])),
    (&["cloudformation_stack"], Rule::ExactlyOne(&["template", "source"])),
    (&["action.steps"], Rule::OneFilled(&["command", "inline_contents"])),
    (&["action.triggers"], Rule::Words("type", &TRIGGERS)),
    (
        &["action.triggers"],
        Rule::WordNeeds("type", &["post-deploy-component", "post-component-deploy"], "component_name"),
    ),
    (POLICIES_OF_ROLES, Rule::AtMostOne(&["managed_policy_name", "contents", "gcp_predefined_role"])),
    (POLICIES_OF_ROLES, Rule::Needs("contents", "name")),
    (&["input", "inputs.input"], Rule::Default),
];

/// Returns the rules for the table at `path`.
pub(super) fn at(path: &str) -> impl Iterator<Item = &'static Rule> {
    RULES.iter().filter(move |(places, _)| places.contains(&path)).map(|(_, rule)| rule)
}

impl Rule {
    /// Adds to the schema of a table what the rule says.
    pub(super) fn add_to(&self, table: &mut Map<String, Value>) {
        match self {
            Self::ExactlyOne(keys) => {
                exclude(table, keys);
                let any: Vec<Value> = keys.iter().map(|key| json!({ "required": [key] })).collect();
                table.insert("anyOf".to_owned(), Value::from(any));
            }
            Self::AtMostOne(keys) => exclude(table, keys),
            Self::OneFilled(keys) => {
                let filled = |key: &&str| json!({ "required": [key], "properties": { *key: { "minLength": 1 } } });
                table.insert("oneOf".to_owned(), keys.iter().map(filled).collect());
            }
            Self::Needs(key, other) => depend(table, key, "required", json!([other])),
            Self::WordNeeds(key, words, other) => {
                table.insert("if".to_owned(), json!({ "required": [key], "properties": { *key: { "enum": words } } }));
                table.insert("then".to_owned(), json!({ "required": [other] }));
            }
            Self::Words(key, words) => set(table, key, "enum", json!(words)),
            Self::Form(key, pattern) => set(table, key, "pattern", json!(pattern)),
            Self::Default => table.extend(defaults()),
        }
    }

    /// Returns the keys that the rule names.
    #[cfg(test)]
    pub(super) fn keys(&self) -> Vec<&'static str> {
        match self {
            Self::ExactlyOne(keys) | Self::AtMostOne(keys) | Self::OneFilled(keys) => keys.to_vec(),
            Self::Needs(key, other) | Self::WordNeeds(key, _, other) => vec![key, other],
            Self::Words(key, _) | Self::Form(key, _) => vec![key],
            Self::Default => vec!["type", "default"],
        }
    }

    /// Returns what the rule says, for the reference; nothing where the schema says it at the key.
    pub(super) fn sentence(&self) -> Option<String> {
        let list = |keys: &[&str]| keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
        match self {
            Self::ExactlyOne(keys) => Some(format!("Exactly one of {}.", list(keys))),
            Self::AtMostOne(keys) => Some(format!("At most one of {}.", list(keys))),
            Self::OneFilled(keys) => Some(format!("Exactly one of {}, and not empty.", list(keys))),
            Self::Needs(key, other) => Some(format!("`{key}` needs `{other}`.")),
            Self::WordNeeds(key, words, other) => Some(format!("`{key}` {} needs `{other}`.", list(words))),
            Self::Words(key, words) => Some(format!("`{key}` is one of {}.", list(words))),
            Self::Form(key, _) => Some(format!(
                "`{key}` is 1 to 64 letters, digits, dashes or underscores, and starts with a letter or digit."
            )),
            Self::Default => Some("`default` fits `type`.".to_owned()),
        }
    }
}

/// Sets `word` of the schema of `key`, where the table has it.
fn set(table: &mut Map<String, Value>, key: &str, word: &str, value: Value) {
    let property = table.get_mut("properties").and_then(|all| all.get_mut(key)).and_then(Value::as_object_mut);
    if let Some(property) = property {
        property.insert(word.to_owned(), value);
    }
}

/// Says of each of `keys` that none of the others stands beside it. Not by `oneOf`: an editor then marks the wrong
/// thing, and offers every key in vain.
fn exclude(table: &mut Map<String, Value>, keys: &[&str]) {
    for key in keys {
        let others = keys.iter().filter(|other| *other != key).map(|other| json!({ "required": [other] }));
        let others: Vec<Value> = others.collect();
        depend(table, key, "not", json!({ "anyOf": others }));
    }
}

/// Sets `word` of what the table has to be once it has `key`.
fn depend(table: &mut Map<String, Value>, key: &str, word: &str, value: Value) {
    let dependencies = table.entry("dependencies").or_insert_with(|| json!({}));
    if let Some(dependencies) = dependencies.as_object_mut() {
        let dependency = dependencies.entry(key).or_insert_with(|| json!({}));
        if let Some(dependency) = dependency.as_object_mut() {
            dependency.insert(word.to_owned(), value);
        }
    }
}

/// Returns which defaults fit which type of input; a text that is to hold JSON is not read here.
fn defaults() -> Map<String, Value> {
    let cases: [(&[&str], Value); 5] = [
        (&["number"], json!({ "type": ["number", "string"], "pattern": NUMBER })),
        (&["bool"], json!({ "enum": [true, false, "true", "false", ""] })),
        (&["list"], json!({ "type": ["array", "string"] })),
        (&["json"], json!({ "type": ["array", "object", "string"] })),
        (&["string", "yaml", "hcl"], json!({ "type": "string" })),
    ];
    // An input without a type is a string.
    let mut rest = json!({ "if": { "not": { "required": ["type"] } }, "then": { "properties": { "default": { "type": "string" } } } });
    for (words, default) in cases {
        rest = json!({
            "if": { "required": ["type"], "properties": { "type": { "enum": words } } },
            "then": { "properties": { "default": default } },
            "else": rest,
        });
    }
    match rest {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}
