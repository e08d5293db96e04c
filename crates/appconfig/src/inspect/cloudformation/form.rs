//! Checks the form of a template: its sections, and the keys of resources and parameters (CloudFormation user guide,
//! "Template anatomy").

use freehold_template::nearest;

use super::resource_types;
use super::template::Template;
use crate::read::document::{Data, Entry, Node};
use crate::read::files::Place;
use crate::report::draft::Draft;

const SECTIONS: [&str; 11] = [
    "AWSTemplateFormatVersion",
    "Description",
    "Metadata",
    "Parameters",
    "Rules",
    "Mappings",
    "Conditions",
    "Transform",
    "Resources",
    "Outputs",
    "Hooks",
];

const RESOURCE: [&str; 9] = [
    "Type",
    "Properties",
    "DependsOn",
    "Condition",
    "Metadata",
    "CreationPolicy",
    "UpdatePolicy",
    "DeletionPolicy",
    "UpdateReplacePolicy",
];

/// Reports mistakes of form that CloudFormation refuses. Returns false if the text is not a template at all.
pub(super) fn check(template: &Template, drafts: &mut Vec<Draft>) -> bool {
    if !matches!(template.root.data, Data::Table(_)) {
        let draft = Draft::error(Place { file: template.file, span: 0..1 }, "the template is not a map of sections");
        drafts.push(draft.help("write `Resources:` and the resources below it"));
        return false;
    }
    for entry in template.root.entries() {
        if !SECTIONS.contains(&entry.key.as_str()) && !template.macros {
            drafts.push(unknown(template, entry, "section", &SECTIONS));
        }
    }
    twice(template, &template.root, drafts);
    for section in ["Parameters", "Resources", "Outputs"] {
        parts(template, section, drafts);
    }
    let resources = template.section("Resources").map(Node::entries).unwrap_or_default();
    if resources.is_empty() {
        let span = template.root.entry("Resources").map_or(0..1, |entry| entry.key_span.clone());
        let draft = Draft::error(template.place_of(&span), "the template has no resources");
        drafts.push(draft.help("add one below `Resources:`; a stack of CloudFormation needs at least one resource"));
    }
    for entry in resources.iter().filter(|entry| !entry.key.starts_with("Fn::")) {
        resource(template, entry, drafts);
    }
    true
}

/// Returns the types of the resources that are created under every condition, with their places.
pub(super) fn types(template: &Template) -> Vec<(String, Place)> {
    let resources = template.section("Resources").map(Node::entries).unwrap_or_default();
    let certain = resources.iter().filter(|entry| entry.value.get("Condition").is_none());
    let types = certain.filter_map(|entry| entry.value.get("Type"));
    types.filter_map(|node| Some((node.as_text()?.to_owned(), template.place(node)))).collect()
}

/// Checks that every entry of a section is a map and has a name that CloudFormation accepts. A parameter needs a
/// `Type`, and an output a `Value`.
fn parts(template: &Template, section: &str, drafts: &mut Vec<Draft>) {
    let Some(node) = template.section(section) else { return };
    let empty = matches!(&node.data, Data::Text(text) if text.is_empty());
    if !matches!(node.data, Data::Table(_)) && !empty {
        drafts.push(Draft::error(template.place(node), format!("section `{section}` is not a map")));
    }
    twice(template, node, drafts);
    for entry in node.entries().iter().filter(|entry| !entry.key.starts_with("Fn::")) {
        let what = section.trim_end_matches('s').to_lowercase();
        if !entry.key.chars().all(|c| c.is_ascii_alphanumeric()) {
            let message = format!("the name of {what} `{}` has a character that is not a letter or a digit", entry.key);
            drafts.push(Draft::error(template.place_of(&entry.key_span), message).help("rename it"));
        }
        if !matches!(entry.value.data, Data::Table(_)) {
            let message = format!("{what} `{}` is not a map", entry.key);
            drafts.push(Draft::error(template.place_of(&entry.key_span), message));
        } else if section == "Parameters" && entry.value.get("Type").is_none() {
            let message = format!("parameter `{}` has no `Type`", entry.key);
            drafts.push(Draft::error(template.place_of(&entry.key_span), message).help("add `Type: String`"));
        } else if section == "Outputs" && entry.value.get("Value").is_none() {
            let message = format!("output `{}` has no `Value`", entry.key);
            drafts.push(Draft::error(template.place_of(&entry.key_span), message).help("add `Value: ...`"));
        }
    }
}

fn resource(template: &Template, entry: &Entry, drafts: &mut Vec<Draft>) {
    if !matches!(entry.value.data, Data::Table(_)) {
        return;
    }
    match entry.value.get("Type") {
        None => {
            let message = format!("resource `{}` has no `Type`", entry.key);
            let draft = Draft::error(template.place_of(&entry.key_span), message);
            drafts.push(draft.help("add its type, such as `Type: AWS::SQS::Queue`"));
        }
        Some(node) => {
            let kind = node.as_text().filter(|text| text.contains("::"));
            if kind.is_none() && !template.macros {
                let draft = Draft::error(template.place(node), format!("resource `{}` has no known `Type`", entry.key));
                drafts.push(draft.expected("a type such as `AWS::SQS::Queue` or `Custom::Name`"));
            } else if let Some(kind) = kind.filter(|kind| !template.macros && !resource_types::may_exist(kind)) {
                drafts.push(unknown_type(template.place(node), kind));
            }
        }
    }
    for inner in entry.value.entries() {
        if !RESOURCE.contains(&inner.key.as_str()) && !template.macros {
            drafts.push(unknown(template, inner, "key of a resource", &RESOURCE));
        }
    }
    twice(template, &entry.value, drafts);
}

/// Warns about a type that AWS does not have. It is not an error, because a type can be newer than the list.
fn unknown_type(place: Place, kind: &str) -> Draft {
    let draft = Draft::warning(place, format!("CloudFormation has no resource type `{kind}`"));
    match resource_types::similar(kind) {
        Some(near) => draft.meant(Some(&near)),
        None => draft
            .help(format!("correct the type; if it is newer than {}, ignore this warning", resource_types::source())),
    }
}

fn unknown(template: &Template, entry: &Entry, what: &str, known: &[&str]) -> Draft {
    let message = format!("`{}` is not a {what}", entry.key);
    let draft = Draft::error(template.place_of(&entry.key_span), message);
    match nearest(&entry.key, known.iter().copied()) {
        near @ Some(_) => draft.meant(near),
        None => draft.help(format!("expected one of: {}", known.join(", "))),
    }
}

/// Warns about a key that is given twice, because YAML parsers differ in which of the two values they use.
fn twice(template: &Template, node: &Node, drafts: &mut Vec<Draft>) {
    let mut seen = std::collections::BTreeMap::new();
    for entry in node.entries() {
        if let Some(first) = seen.insert(entry.key.as_str(), &entry.key_span) {
            let draft =
                Draft::warning(template.place_of(&entry.key_span), format!("key `{}` is given twice", entry.key));
            drafts.push(draft.related(template.place_of(first), "first given here").help("remove one of them"));
        }
    }
}
