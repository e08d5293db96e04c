//! Converts values of a config into the form that an app version has.

use std::collections::BTreeMap;

use freehold_domain::install::labels;
use freehold_protocol::app_version::RunInput;
use freehold_protocol::limits::MAX_RUN_INPUT_BYTES;
use freehold_protocol::terraform::{REFUSED_VARIABLE_HELP, is_refused_variable, refused_variable};
use serde_json::Value;

use crate::build::data_files::{self, Language};
use crate::kinds::Kind;
use crate::read::document::{Data, Entry, Node};
use crate::read::files::Files;
use crate::report::draft::Draft;
use crate::state::file::Checked;

/// Returns a table of numbers, booleans and strings, all converted to strings.
pub(crate) fn scalars(node: Option<&Node>) -> BTreeMap<String, String> {
    let entries = node.map(Node::entries).unwrap_or_default();
    entries.iter().filter_map(|entry| Some((entry.key.clone(), entry.value.to_scalar_text()?))).collect()
}

/// Returns the labels of installs under `key`, if the file has this key. Reports labels that no install can have.
pub(crate) fn install_labels(checked: &Checked, key: &str) -> (Option<BTreeMap<String, String>>, Option<Draft>) {
    let labels = checked.root.get(key).map(|node| scalars(Some(node)));
    let error = labels.as_ref().and_then(|labels| labels::check(labels).err());
    let draft = error.map(|error| Draft::error(checked.place_of(&checked.root, key), error.to_string()));
    (labels, draft)
}

/// Returns an error for each variable under `env_vars` that an app must not set for Terraform.
pub(crate) fn refused_variables(checked: &Checked) -> Vec<Draft> {
    let entries = checked.root.get("env_vars").map(Node::entries).unwrap_or_default();
    let refused = entries.iter().filter(|entry| is_refused_variable(&entry.key));
    let error = |entry: &Entry| Draft::error(checked.key_place(entry), refused_variable(&entry.key));
    refused.map(|entry| error(entry).help(REFUSED_VARIABLE_HELP)).collect()
}

/// Returns a warning about a `terraform_version` that is not a version, such as `latest`.
pub(crate) fn not_a_version(checked: &Checked) -> Option<Draft> {
    let node = checked.root.get("terraform_version")?;
    let text = node.as_text().filter(|text| !text.is_empty())?;
    let is_version = text.trim_start_matches('v').starts_with(|c: char| c.is_ascii_digit());
    let message = format!("`terraform_version` is `{text}`, which is not a version");
    (!is_version).then(|| Draft::warning(checked.place(node), message).help("write a version, such as `1.11.3`"))
}

/// Reports the variable files of a Terraform module that are not HCL.
pub(crate) fn mistakes_in_variables(files: &Files, checked: &Checked) -> Vec<Draft> {
    let texts = checked.root.tables("var_file").iter().filter_map(|file| file.get("contents"));
    texts.filter_map(|node| data_files::mistake(files, checked, node, "variable file", Language::Hcl)).collect()
}

/// Returns a table of any values, all converted to JSON.
pub(crate) fn values(node: Option<&Node>) -> BTreeMap<String, Value> {
    let entries = node.map(Node::entries).unwrap_or_default();
    entries.iter().map(|entry| (entry.key.clone(), entry.value.to_json())).collect()
}

/// The maximum length of the name of an input or a secret, in characters.
const MAX_NAME: usize = 200;
/// The maximum length of the name of an input of a run, in characters.
const MAX_WORD: usize = 64;

/// Reports a name that `what`, such as "an input", cannot have. Some inputs and all secrets are secrets in AWS, whose
/// names contain this name.
pub(crate) fn unusable_name(checked: &Checked, node: &Node, what: &str) -> Option<Draft> {
    let name = node.text("name")?;
    let is_usable = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(is_usable) {
        return None;
    }
    Some(unusable(checked, node, what, &format!("1 to {MAX_NAME} letters, digits, dashes or underscores")))
}

/// Reports a name that an input of a run cannot have. The inputs of actions become environment variables.
fn unusable_word(checked: &Checked, node: &Node, what: &str) -> Option<Draft> {
    let name = node.text("name")?;
    let is_usable = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let starts_well = name.starts_with(|first: char| !first.is_ascii_digit());
    if starts_well && name.len() <= MAX_WORD && name.bytes().all(is_usable) {
        return None;
    }
    let expected = format!("1 to {MAX_WORD} letters, digits or underscores, and no digit at the start");
    Some(unusable(checked, node, what, &expected))
}

fn unusable(checked: &Checked, node: &Node, what: &str, expected: &str) -> Draft {
    let name: String = node.text("name").unwrap_or_default().chars().take(80).collect();
    let message = format!("`{name}` is not a name that {what} can have");
    Draft::error(checked.place_of(node, "name"), message).expected(expected)
}

/// Returns the inputs of a run of the action or the runbook in `checked`. Reports a name that an input cannot have, a
/// name that two inputs have, and inputs that are too long together.
pub(crate) fn run_inputs(checked: &Checked) -> (Vec<RunInput>, Vec<Draft>) {
    let (mut found, mut drafts): (Vec<RunInput>, Vec<Draft>) = Default::default();
    let named = checked.root.tables("inputs").iter().filter(|node| node.get("name").is_some());
    for node in named {
        let text = |key: &str| node.text(key).unwrap_or_default().to_owned();
        let name = text("name");
        let (kind, what) = match checked.kind {
            Kind::Action => ("action", "an input of an action"),
            _ => ("runbook", "an input of a runbook"),
        };
        drafts.extend(unusable_word(checked, node, what));
        // Inputs of actions are environment variables in upper case.
        let is_same = |known: &RunInput| match checked.kind {
            Kind::Action => known.name.eq_ignore_ascii_case(&name),
            _ => known.name == name,
        };
        if found.iter().any(is_same) {
            let message = format!("the {kind} has two inputs `{name}`");
            drafts.push(Draft::error(checked.place_of(node, "name"), message).help("rename one of them"));
            continue;
        }
        let (description, default) = (text("description"), text("default"));
        found.push(RunInput { name, description, required: node.flag("required"), default });
    }
    let bytes: usize = found.iter().map(|input| input.name.len() + input.default.len()).sum();
    if bytes > MAX_RUN_INPUT_BYTES {
        let message = format!("the inputs and their defaults have {bytes} bytes, more than {MAX_RUN_INPUT_BYTES}");
        drafts.push(Draft::error(checked.place_of(&checked.root, "name"), message).help("shorten the defaults"));
    }
    (found, drafts)
}

/// Returns the strings of a list.
pub(crate) fn texts(node: Option<&Node>) -> Vec<String> {
    node.map(Node::items).unwrap_or_default().iter().filter_map(Node::as_text).map(str::to_owned).collect()
}

/// Returns a whole number. A number that is too large becomes `u32::MAX`.
pub(crate) fn whole(node: Option<&Node>) -> Option<u32> {
    match node?.data {
        Data::Whole(number) if number >= 0 => Some(u32::try_from(number).unwrap_or(u32::MAX)),
        _ => None,
    }
}
