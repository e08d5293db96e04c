//! Checks CloudFormation templates: their sections, the types and properties of resources, the names that their functions
//! use, their parameters, and the boundary of roles.

mod form;
mod names;
mod parameters;
mod properties;
mod resource_schemas;
mod resource_types;
mod roles;
mod template;

use std::collections::BTreeMap;

use template::Template;

use crate::inspect::declarations::{Form, Found, Outputs};
use crate::inspect::reader::Reader;
use crate::read::document::Node;
use crate::read::files::Place;
use crate::read::yaml;
use crate::report::draft::Draft;
use crate::state::file::Checked;
use crate::state::source::Held;

/// Checks the template in `held`. Returns the types of the resources that it creates under every condition, and its
/// outputs.
pub(super) fn look(reader: &mut Reader<'_>, checked: &Checked, held: &Held) -> Found {
    let Some(file) = reader.open_at(held, &held.path) else { return Found::default() };
    let root = match yaml::parse(reader.text(file)) {
        Ok(root) => root,
        Err(wrong) => {
            let place = Place { file, span: wrong.span };
            let help = "write the template in YAML or JSON; `cloudformation validate-template` reads it too";
            reader.say(Draft::error(place, format!("not a template: {}", wrong.message)).help(help));
            return Found::default();
        }
    };
    let macros = root.get("Transform").is_some() || uses_macro(&root);
    let template = Template { file, root, macros };
    let mut drafts = Vec::new();
    let sound = form::check(&template, &mut drafts);
    if sound && !macros {
        names::check(&template, &mut drafts);
        roles::check(&template, &mut drafts);
    }
    if sound {
        properties::check(&template, &mut drafts);
        parameters::check(&template, checked, held, &mut drafts);
    }
    drafts.into_iter().for_each(|draft| reader.say(draft));
    Found { types: form::types(&template), outputs: outputs(&template, sound) }
}

/// Returns the outputs that a template declares. A macro may add others.
fn outputs(template: &Template, sound: bool) -> Outputs {
    let names: BTreeMap<String, bool> =
        template.names("Outputs").into_iter().map(|name| (name.to_owned(), false)).collect();
    let computed = names.keys().any(|name| name.starts_with("Fn::"));
    Outputs { whole: sound && !template.macros && !computed, names, form: Form::CloudFormation }
}

/// Returns whether a macro is called anywhere in a value.
fn uses_macro(node: &Node) -> bool {
    node.entries().iter().any(|entry| entry.key == "Fn::Transform" || uses_macro(&entry.value))
        || node.elements().iter().any(uses_macro)
}
