//! Checks that every name in a function or condition refers to a part that the template defines (CloudFormation user
//! guide, "Intrinsic functions").

use std::collections::BTreeSet;

use freehold_template::nearest;

use super::template::Template;
use crate::read::document::Node;
use crate::report::draft::Draft;

const PSEUDO: [&str; 8] = [
    "AWS::AccountId",
    "AWS::NoValue",
    "AWS::NotificationARNs",
    "AWS::Partition",
    "AWS::Region",
    "AWS::StackId",
    "AWS::StackName",
    "AWS::URLSuffix",
];

const FUNCTIONS: [&str; 25] = [
    "Fn::And",
    "Fn::Base64",
    "Fn::Cidr",
    "Fn::Contains",
    "Fn::EachMemberEquals",
    "Fn::EachMemberIn",
    "Fn::Equals",
    "Fn::FindInMap",
    "Fn::GetAZs",
    "Fn::GetAtt",
    "Fn::GetStackOutput",
    "Fn::If",
    "Fn::ImportValue",
    "Fn::Join",
    "Fn::Length",
    "Fn::Not",
    "Fn::Or",
    "Fn::RefAll",
    "Fn::Select",
    "Fn::Split",
    "Fn::Sub",
    "Fn::ToJsonString",
    "Fn::Transform",
    "Fn::ValueOf",
    "Fn::ValueOfAll",
];

/// Reports every name that the template uses and does not define.
pub(super) fn check(template: &Template, drafts: &mut Vec<Draft>) {
    let (parameters, resources) = (template.names("Parameters"), template.names("Resources"));
    let (conditions, mappings) = (template.names("Conditions"), template.names("Mappings"));
    let mut looker = Looker { template, parameters, resources, conditions, mappings, drafts };
    for (section, condition_of) in [("Resources", "resource"), ("Outputs", "output")] {
        for entry in template.section(section).map(Node::entries).unwrap_or_default() {
            if let Some(condition) = entry.value.get("Condition").filter(|node| node.as_text().is_some()) {
                looker.condition(condition, &format!("{condition_of} `{}`", entry.key));
            }
            if section == "Resources" {
                looker.depends_on(&entry.value, &entry.key);
                entry.value.entries().iter().filter(|e| e.key != "Metadata").for_each(|e| looker.value(&e.value));
            } else {
                looker.value(&entry.value);
            }
        }
    }
    for entry in template.section("Conditions").map(Node::entries).unwrap_or_default() {
        looker.in_condition(&entry.value, &entry.key);
    }
}

/// Returns the function that `short` probably means. `Ref` is the only one whose long form has no `Fn::`.
fn nearest_function(short: &str) -> Option<String> {
    let known = FUNCTIONS.iter().map(|name| name.trim_start_matches("Fn::")).chain(["Ref"]);
    nearest(short, known).map(|name| if name == "Ref" { name.to_owned() } else { format!("Fn::{name}") })
}

struct Looker<'t> {
    template: &'t Template,
    parameters: BTreeSet<&'t str>,
    resources: BTreeSet<&'t str>,
    conditions: BTreeSet<&'t str>,
    mappings: BTreeSet<&'t str>,
    drafts: &'t mut Vec<Draft>,
}

impl Looker<'_> {
    fn value(&mut self, node: &Node) {
        node.elements().iter().for_each(|item| self.value(item));
        for entry in node.entries() {
            match (entry.key.as_str(), node.entries().len()) {
                ("Ref", 1) => self.reference(&entry.value),
                ("Fn::GetAtt", 1) => self.attribute(&entry.value),
                ("Fn::Sub", 1) => self.substitution(&entry.value),
                ("Fn::If", 1) => {
                    if let Some(condition) = entry.value.elements().first() {
                        self.condition(condition, "`Fn::If`");
                    }
                }
                ("Fn::FindInMap", 1) => self.mapping(&entry.value),
                (key, 1) if key.starts_with("Fn::") && !FUNCTIONS.contains(&key) => {
                    let short = key.trim_start_matches("Fn::");
                    let place = self.template.place_of(&entry.key_span);
                    let draft = Draft::error(place, format!("CloudFormation has no function `{short}`"));
                    self.drafts.push(draft.meant(nearest_function(short).as_deref()));
                }
                _ => {}
            }
            self.value(&entry.value);
        }
    }

    /// Checks a condition. Inside of a condition, the key `Condition` names another condition.
    fn in_condition(&mut self, node: &Node, owner: &str) {
        node.elements().iter().for_each(|item| self.in_condition(item, owner));
        for entry in node.entries() {
            match entry.key.as_str() {
                "Condition" => self.condition(&entry.value, &format!("condition `{owner}`")),
                "Ref" => self.reference(&entry.value),
                "Fn::FindInMap" => self.mapping(&entry.value),
                _ => {}
            }
            self.in_condition(&entry.value, owner);
        }
    }

    fn reference(&mut self, node: &Node) {
        let Some(name) = node.as_text() else { return };
        if !self.is_value(name) {
            let known = self.parameters.iter().chain(&self.resources).copied().chain(PSEUDO).collect();
            self.unknown(node, &format!("there is no parameter or resource `{name}`"), name, known);
        }
    }

    fn is_value(&self, name: &str) -> bool {
        self.parameters.contains(name) || self.resources.contains(name) || PSEUDO.contains(&name)
    }

    fn attribute(&mut self, node: &Node) {
        let Some(first) = node.elements().first() else { return };
        let Some(name) = first.as_text() else { return };
        if !self.resources.contains(name) {
            let known = self.resources.iter().copied().collect();
            self.unknown(
                first,
                &format!("the template reads an attribute of resource `{name}`, which does not exist"),
                name,
                known,
            );
        }
    }

    fn substitution(&mut self, node: &Node) {
        let items = node.elements();
        let own = items.get(1).map(Node::entries).unwrap_or_default();
        let Some(text) = node.as_text().or_else(|| items.first()?.as_text()) else { return };
        let marked = items.first().unwrap_or(node);
        for name in variables(text) {
            let resource = name.split('.').next().unwrap_or_default();
            let known = if name.contains('.') { self.resources.contains(resource) } else { self.is_value(name) };
            if !known && !own.iter().any(|entry| entry.key == name) {
                let all = self.parameters.iter().chain(&self.resources).copied().chain(PSEUDO);
                let all = all.chain(own.iter().map(|entry| entry.key.as_str())).collect();
                self.unknown(marked, &format!("there is no parameter or resource for `${{{name}}}`"), resource, all);
            }
        }
    }

    fn condition(&mut self, node: &Node, owner: &str) {
        let Some(name) = node.as_text() else { return };
        if !self.conditions.contains(name) {
            let known = self.conditions.iter().copied().collect();
            self.unknown(node, &format!("{owner} names condition `{name}`, which does not exist"), name, known);
        }
    }

    fn mapping(&mut self, node: &Node) {
        let Some(first) = node.elements().first() else { return };
        let Some(name) = first.as_text() else { return };
        if !self.mappings.contains(name) {
            let known = self.mappings.iter().copied().collect();
            self.unknown(first, &format!("there is no mapping `{name}`"), name, known);
        }
    }

    fn depends_on(&mut self, resource: &Node, owner: &str) {
        let Some(node) = resource.get("DependsOn") else { return };
        let one = node.as_text().map(|_| node);
        for item in node.elements().iter().chain(one) {
            let Some(name) = item.as_text() else { continue };
            if !self.resources.contains(name) {
                let known = self.resources.iter().copied().collect();
                let message = format!("resource `{owner}` depends on `{name}`, which does not exist");
                self.unknown(item, &message, name, known);
            }
        }
    }

    fn unknown(&mut self, node: &Node, message: &str, name: &str, known: Vec<&str>) {
        let draft = Draft::error(self.template.place(node), message);
        self.drafts.push(match nearest(name, known) {
            near @ Some(_) => draft.meant(near),
            None => draft.help("define it in the template, or correct the name"),
        });
    }
}

/// Returns the names in the `${Name}` expressions of `text`. Literals such as `${!Name}` are left out.
fn variables(text: &str) -> impl Iterator<Item = &str> {
    text.split("${").skip(1).filter_map(|rest| {
        let name = rest.get(..rest.find('}')?)?.trim();
        (!name.is_empty() && !name.starts_with('!')).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_form_of_a_mistyped_function_decides() {
        assert_eq!(nearest_function("Reff").as_deref(), Some("Ref"));
        assert_eq!(nearest_function("Joyn").as_deref(), Some("Fn::Join"));
        assert_eq!(nearest_function("Nothing"), None);
    }
}
