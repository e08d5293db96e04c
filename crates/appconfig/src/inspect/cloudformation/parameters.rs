//! Checks the parameters that a component gives to its template, and the capabilities that the config acknowledges.

use freehold_template::nearest;

use super::form;
use super::template::Template;
use crate::read::document::Node;
use crate::report::draft::Draft;
use crate::state::file::Checked;
use crate::state::source::Held;

/// Resource types that CloudFormation creates only if the caller acknowledges it, each with the property that gives the
/// resource a name; empty if there is none (CloudFormation API, `CreateChangeSet`, "Capabilities").
const ACKNOWLEDGED: [(&str, &str); 8] = [
    ("AWS::IAM::AccessKey", ""),
    ("AWS::IAM::Group", "GroupName"),
    ("AWS::IAM::InstanceProfile", "InstanceProfileName"),
    ("AWS::IAM::ManagedPolicy", "ManagedPolicyName"),
    ("AWS::IAM::Policy", ""),
    ("AWS::IAM::Role", "RoleName"),
    ("AWS::IAM::User", "UserName"),
    ("AWS::IAM::UserToGroupAddition", ""),
];

pub(super) fn check(template: &Template, checked: &Checked, held: &Held, drafts: &mut Vec<Draft>) {
    let declared = template.section("Parameters").map(Node::entries).unwrap_or_default();
    let given = checked.root.get("parameters").map(Node::entries).unwrap_or_default();
    for entry in given.iter().filter(|entry| !declared.iter().any(|known| known.key == entry.key)) {
        let draft = Draft::error(
            checked.key_place(entry),
            format!("the template `{}` has no parameter `{}`", held.path, entry.key),
        );
        let known = declared.iter().map(|entry| entry.key.as_str());
        drafts.push(match nearest(&entry.key, known) {
            near @ Some(_) => draft.meant(near),
            None => draft.help("declare it below `Parameters:` of the template, or remove it here"),
        });
    }
    let missing =
        declared.iter().filter(|entry| entry.value.get("Default").is_none() && !entry.key.starts_with("Fn::"));
    for entry in missing.filter(|entry| !given.iter().any(|known| known.key == entry.key)) {
        let place =
            checked.root.entry("parameters").map_or_else(|| held.place.clone(), |entry| checked.key_place(entry));
        let message =
            format!("the template `{}` needs parameter `{}`, but the config has no value for it", held.path, entry.key);
        let draft = Draft::error(place, message);
        let draft = draft.related(template.place_of(&entry.key_span), "declared here without a default");
        drafts.push(
            draft.help(format!("add `{} = \"...\"` to `[parameters]`, or give the parameter a `Default`", entry.key)),
        );
    }
    capabilities(template, checked, drafts);
}

/// Reports the first IAM resource of a template that needs a capability which the config does not acknowledge.
fn capabilities(template: &Template, checked: &Checked, drafts: &mut Vec<Draft>) {
    let acknowledged = |word: &str| {
        let list = checked.root.get("capabilities").map(Node::elements).unwrap_or_default();
        list.iter().any(|node| node.as_text() == Some(word))
    };
    if acknowledged("CAPABILITY_NAMED_IAM") || form::types(template).is_empty() {
        return;
    }
    let resources = template.section("Resources").map(Node::entries).unwrap_or_default();
    for entry in resources.iter().filter(|entry| entry.value.get("Condition").is_none()) {
        let Some(kind) = entry.value.get("Type") else { continue };
        let Some((_, name)) = ACKNOWLEDGED.iter().find(|(known, _)| kind.as_text() == Some(known)) else { continue };
        let named = entry.value.get("Properties").is_some_and(|properties| properties.get(name).is_some());
        let word = if named { "CAPABILITY_NAMED_IAM" } else { "CAPABILITY_IAM" };
        if named || !acknowledged(word) {
            let place = checked
                .root
                .entry("capabilities")
                .map_or_else(|| checked.place_of(&checked.root, "type"), |entry| checked.place(&entry.value));
            let message = format!("resource `{}` of the template needs the capability `{word}`", entry.key);
            let draft = Draft::error(place, message).related(template.place(kind), "this resource");
            drafts.push(draft.help(format!("add `capabilities = [\"{word}\"]`")));
            return;
        }
    }
}
