//! Builds the inputs of an app and their groups from `inputs.toml`, `inputs/` and `input_groups/`.

use freehold_protocol::app_version::{Input, InputGroup, InputKind};
use serde_json::Value;

use crate::build::values::unusable_name;
use crate::check::input_values::{Misfit, misfit};
use crate::kinds::Kind;
use crate::read::document::{Data, Node};
use crate::read::files::Files;
use crate::report::draft::Draft;
use crate::state::app::App;
use crate::state::file::Checked;

/// Returns the app's input groups, in the order of the config.
pub(crate) fn groups(app: &App) -> Vec<InputGroup> {
    let mut groups: Vec<InputGroup> = Vec::new();
    for checked in &app.checked {
        let nodes: &[Node] = match checked.kind {
            Kind::Inputs => checked.root.tables("group"),
            Kind::InputGroup => std::slice::from_ref(&checked.root),
            _ => continue,
        };
        for node in nodes {
            let text = |key: &str| node.text(key).unwrap_or_default().to_owned();
            if let Some(name) = node.text("name")
                && !groups.iter().any(|group| group.name == name)
            {
                let (display_name, description) = (text("display_name"), text("description"));
                groups.push(InputGroup { name: name.to_owned(), display_name, description });
            }
        }
    }
    groups
}

/// Returns the app's inputs, sorted by name. Reports defaults that do not fit the types of their inputs.
pub(crate) fn build(app: &mut App) -> Vec<Input> {
    let mut inputs = Vec::new();
    let mut drafts = Vec::new();
    for checked in &app.checked {
        let nodes: &[Node] = match checked.kind {
            Kind::Inputs => checked.root.tables("input"),
            Kind::Input => std::slice::from_ref(&checked.root),
            _ => continue,
        };
        for node in nodes {
            if let Some(input) = input(&app.files, checked, node, &mut drafts) {
                odd(checked, node, &input, &mut drafts);
                inputs.push(input);
            }
        }
    }
    app.drafts.extend(drafts);
    inputs.sort_by(|a, b| a.name.cmp(&b.name));
    inputs.dedup_by(|a, b| a.name == b.name);
    inputs
}

fn input(files: &Files, checked: &Checked, node: &Node, drafts: &mut Vec<Draft>) -> Option<Input> {
    let text = |key: &str| node.text(key).unwrap_or_default().to_owned();
    let name = node.text("name")?;
    drafts.extend(unusable_name(checked, node, "an input"));
    let kind = kind(node);
    Some(Input {
        name: name.to_owned(),
        display_name: text("display_name"),
        description: text("description"),
        group: text("group"),
        kind,
        required: node.flag("required"),
        sensitive: node.flag("sensitive"),
        customer: node.flag("user_configurable") || node.text("source") == Some("customer"),
        internal: node.flag("internal"),
        default: default(files, checked, node, kind, drafts),
    })
}

/// Returns the type of an input; a string if the config names no type.
fn kind(node: &Node) -> InputKind {
    match node.text("type") {
        Some("number") => InputKind::Number,
        Some("list") => InputKind::List,
        Some("json") => InputKind::Json,
        Some("bool") => InputKind::Bool,
        Some("yaml") => InputKind::Yaml,
        Some("hcl") => InputKind::Hcl,
        Some(_) | None => InputKind::String,
    }
}

/// Returns the default of an input. Reports a default that does not fit the input's type. Most configs write defaults
/// of all types as strings.
fn default(files: &Files, checked: &Checked, node: &Node, kind: InputKind, drafts: &mut Vec<Draft>) -> Option<Value> {
    let default = node.get("default")?;
    let (name, is_secret) = (node.text("name").unwrap_or_default(), node.flag("sensitive"));
    let expected = match (kind, &default.data) {
        (_, Data::Text(text)) => {
            if let Some(Misfit { offset, message, expected }) = misfit(kind, text) {
                let place = offset.map_or(checked.place(default), |at| checked.place_in(files, default, at));
                let draft = Draft::error(place, format!("the default of input `{name}` {message}"));
                drafts.push(draft.expected(expected).secret_if(is_secret));
            }
            return Some(default.to_json());
        }
        (InputKind::Number, Data::Whole(_) | Data::Fraction(_))
        | (InputKind::Bool, Data::Flag(_))
        | (InputKind::List, Data::List(_))
        | (InputKind::Json, Data::List(_) | Data::Table(_)) => return Some(default.to_json()),
        (InputKind::String, Data::Whole(_) | Data::Fraction(_) | Data::Flag(_) | Data::Date(_)) => {
            let message = format!("the default of input `{name}` is {}, but its type is a string", default.kind());
            let draft = Draft::warning(checked.place(default), message);
            drafts.push(draft.help("put the value in quotes, or set `type`").secret_if(is_secret));
            return default.to_scalar_text().map(Value::from);
        }
        (InputKind::String, _) => "a string; put the value in quotes, or set `type`",
        (InputKind::Yaml, _) => "a string that holds YAML",
        (InputKind::Hcl, _) => "a string that holds HCL",
        (InputKind::Number, _) => "a number",
        (InputKind::Bool, _) => "`true` or `false`",
        (InputKind::List, _) => "a list",
        (InputKind::Json, _) => "a table, a list, or a string that holds JSON",
    };
    let message = format!("the default of input `{name}` does not fit its type");
    drafts.push(Draft::error(checked.place(default), message).expected(expected).secret_if(is_secret));
    None
}

/// Reports keys of an input that contradict each other.
fn odd(checked: &Checked, node: &Node, input: &Input, drafts: &mut Vec<Draft>) {
    let name = &input.name;
    let default = node.entry("default").filter(|entry| entry.value.as_text() != Some(""));
    if let (Some(default), Some(required)) = (default, node.entry("required").filter(|_| input.required)) {
        let message = format!("input `{name}` has a default, so `required` has no effect");
        let draft = Draft::warning(checked.key_place(required), message);
        let draft = draft.related(checked.key_place(default), "the default").help("remove one of them");
        drafts.push(draft.secret_if(input.sensitive));
    }
    if let Some(default) = default.filter(|_| input.sensitive) {
        let message = format!("input `{name}` is sensitive, and everyone who reads the app can read its default");
        let draft = Draft::warning(checked.key_place(default), message);
        drafts.push(draft.secret().help("remove the default, or make it a secret in `secrets.toml`"));
    }
    if let (Some(source), Some(flag)) = (node.entry("source"), node.entry("user_configurable"))
        && (source.value.as_text() == Some("customer")) != node.flag("user_configurable")
    {
        let message = format!("`source` and `user_configurable` of input `{name}` contradict each other");
        let draft = Draft::error(checked.key_place(source), message);
        drafts.push(draft.related(checked.key_place(flag), "the other key").help("keep `user_configurable`"));
    }
    if let Some(internal) = node.entry("internal").filter(|_| input.internal && input.customer) {
        let message = format!("input `{name}` is internal, and the install stack asks the customer for it");
        let draft = Draft::warning(checked.key_place(internal), message);
        drafts.push(draft.help("remove `internal`, or let the vendor answer: remove `user_configurable` or `source`"));
    }
}
