//! The questions of an app: `inputs.toml` and `inputs/`.

use freehold_protocol::app_version::{Input, InputKind};

use crate::build::App;
use crate::diagnostic::Draft;
use crate::document::{Data, Node};
use crate::kinds::Kind;
use crate::validate::Checked;

/// Returns the app's inputs, sorted by name; says which defaults do not fit their type.
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
            if let Some(draft) = misfit(checked, node) {
                drafts.push(draft);
            }
            inputs.extend(input(node));
        }
    }
    app.drafts.extend(drafts);
    inputs.sort_by(|a, b| a.name.cmp(&b.name));
    inputs.dedup_by(|a, b| a.name == b.name);
    inputs
}

fn input(node: &Node) -> Option<Input> {
    let text = |key: &str| node.text(key).unwrap_or_default().to_owned();
    Some(Input {
        name: node.text("name")?.to_owned(),
        display_name: text("display_name"),
        description: text("description"),
        group: text("group"),
        kind: kind(node),
        required: node.flag("required"),
        sensitive: node.flag("sensitive"),
        customer: node.flag("user_configurable"),
        internal: node.flag("internal"),
        default: node.get("default").map(Node::to_json),
    })
}

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

/// Says why a default does not fit the input's type. Defaults written as strings are what most configs do.
fn misfit(checked: &Checked, node: &Node) -> Option<Draft> {
    let default = node.get("default")?;
    let expected = match (kind(node), &default.data) {
        (InputKind::String | InputKind::Yaml | InputKind::Hcl, Data::Text(_))
        | (InputKind::Number, Data::Whole(_) | Data::Fraction(_))
        | (InputKind::Bool, Data::Flag(_))
        | (InputKind::List, Data::List(_))
        | (InputKind::Json, Data::List(_) | Data::Table(_)) => return None,
        (InputKind::Number, Data::Text(text)) if text.is_empty() || text.parse::<f64>().is_ok() => {
            return None;
        }
        (InputKind::Bool, Data::Text(text)) if matches!(text.as_str(), "" | "true" | "false") => return None,
        (InputKind::List, Data::Text(_)) => return None,
        (InputKind::Json, Data::Text(text)) => match serde_json::from_str::<serde_json::Value>(text) {
            Ok(_) => return None,
            Err(_) => "valid JSON",
        },
        (InputKind::String, _) => "a string; put the value in quotes, or set `type`",
        (InputKind::Yaml | InputKind::Hcl, _) => "a string",
        (InputKind::Number, _) => "a number",
        (InputKind::Bool, _) => "`true` or `false`",
        (InputKind::List, _) => "a list",
        (InputKind::Json, _) => "a table, a list, or a string that holds JSON",
    };
    let name = node.text("name").unwrap_or_default();
    let message = format!("the default of input `{name}` does not fit its type");
    Some(Draft::error(checked.place(default), message).expected(expected))
}
