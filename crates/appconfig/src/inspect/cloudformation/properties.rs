//! Checks the properties of resources against the schemas of their types: names, required properties, and the sort of
//! literal values. A part that the template computes is not checked.

use std::collections::BTreeSet;
use std::ops::Range;

use freehold_template::nearest;

use super::resource_schemas::{Inside, Shape, Values, properties_of};
use super::resource_types;
use super::template::Template;
use crate::read::document::{Data, Entry, Node};
use crate::report::draft::Draft;

/// Macros of AWS after which the properties of resources outside of `AWS::Serverless` are the same as before.
const TRANSFORMS: [&str; 5] = [
    "AWS::CodeDeployBlueGreen",
    "AWS::LanguageExtensions",
    "AWS::SecretsManager-2020-07-23",
    "AWS::SecretsManager-2024-09-16",
    "AWS::Serverless-2016-10-31",
];

/// Texts that YAML and JSON read as null.
const NOTHING: [&str; 5] = ["", "~", "null", "Null", "NULL"];

/// Warns of properties that do not match their schema. They are not errors, because a schema can be older than AWS.
pub(super) fn check(template: &Template, drafts: &mut Vec<Draft>) {
    let resources = template.section("Resources");
    if !transforms_are_known(template) || [Some(&template.root), resources].into_iter().flatten().any(calls_macro) {
        return;
    }
    for resource in resources.map(Node::entries).unwrap_or_default() {
        let Some(kind) = resource.value.text("Type") else { continue };
        let Some((shape, values)) = properties_of(kind).filter(|_| !is_computed(&resource.value)) else { continue };
        let mut looker = Looker { template, resource: &resource.key, kind, drafts };
        match resource.value.entry("Properties").filter(|entry| !is_nothing(&entry.value)) {
            Some(entry) => looker.value(&entry.value, values, "", &entry.key_span, &resource.key_span),
            None => looker.required(shape, &[], "", &resource.key_span),
        }
    }
}

fn transforms_are_known(template: &Template) -> bool {
    let Some(node) = template.root.get("Transform") else { return true };
    let names: &[Node] = if node.as_text().is_some() { std::slice::from_ref(node) } else { node.items() };
    names.iter().all(|name| name.as_text().is_some_and(|name| TRANSFORMS.contains(&name)))
}

fn calls_macro(node: &Node) -> bool {
    node.get("Fn::Transform").is_some()
}

/// Returns whether CloudFormation computes the value, or a part of its keys.
fn is_computed(node: &Node) -> bool {
    let is_reference = node.entries().len() == 1 && node.get("Ref").is_some();
    is_reference || node.entries().iter().any(|entry| entry.key.starts_with("Fn::") || entry.key == "<<")
}

fn is_nothing(node: &Node) -> bool {
    node.as_text().is_some_and(|text| NOTHING.contains(&text))
}

/// Returns the two values of `Fn::If`.
fn branches(node: &Node) -> Option<&[Node]> {
    let [Entry { key, value, .. }] = node.entries() else { return None };
    value.elements().get(1..).filter(|_| key == "Fn::If")
}

struct Looker<'t> {
    template: &'t Template,
    resource: &'t str,
    kind: &'t str,
    drafts: &'t mut Vec<Draft>,
}

impl Looker<'_> {
    /// Checks a value. `path` names the property, and `at` is the place of its key. A missing required property is
    /// reported at `owner`.
    fn value(&mut self, node: &Node, values: Values, path: &str, at: &Range<usize>, owner: &Range<usize>) {
        if let Some(branches) = branches(node) {
            branches.iter().for_each(|branch| self.value(branch, values, path, &branch.span, &start(branch)));
            return;
        }
        if values.are_any() || is_computed(node) {
            return;
        }
        match (&node.data, values.inside) {
            (Data::Table(entries), Inside::Properties(shape)) => self.properties(entries, shape, path, owner),
            (Data::Table(entries), Inside::Entries(inner)) => {
                for entry in entries {
                    let path = format!("{path}.{}", entry.key);
                    self.value(&entry.value, Values::parse(inner), &path, &entry.key_span, &entry.key_span);
                }
            }
            (Data::List(items), Inside::Items(inner)) => {
                for item in items {
                    self.value(item, Values::parse(inner), path, &item.span, &start(item));
                }
            }
            _ if !may_have(values, node) => self.wrong(node, values, path, at),
            _ => {}
        }
    }

    fn properties(&mut self, given: &[Entry], shape: Shape, path: &str, owner: &Range<usize>) {
        let mut meant = BTreeSet::new();
        for entry in given {
            let path = if path.is_empty() { entry.key.clone() } else { format!("{path}.{}", entry.key) };
            match shape.property(&entry.key) {
                Some(property) => self.value(&entry.value, property.values, &path, &entry.key_span, &entry.key_span),
                None if shape.is_open() => {}
                None => meant.extend(self.unknown(entry, given, shape, &path)),
            }
        }
        let given: Vec<&str> = given.iter().map(|entry| entry.key.as_str()).chain(meant).collect();
        self.required(shape, &given, path, owner);
    }

    /// Reports a property that the type does not have; returns the property that was probably meant.
    fn unknown(&mut self, entry: &Entry, given: &[Entry], shape: Shape, path: &str) -> Option<&'static str> {
        let others = shape.properties().map(|property| property.name);
        let near = nearest(&entry.key, others.filter(|name| !given.iter().any(|entry| entry.key == *name)));
        let message = format!("`{}` has no property `{path}`", self.kind);
        let draft = Draft::warning(self.template.place_of(&entry.key_span), message);
        self.drafts.push(match near {
            Some(_) => draft.meant(near),
            None => draft.help(format!("remove it, unless it is newer than {}", resource_types::source())),
        });
        near
    }

    /// Reports the required properties that are not in `given`.
    fn required(&mut self, shape: Shape, given: &[&str], path: &str, at: &Range<usize>) {
        for property in shape.properties().filter(|property| property.is_required && !given.contains(&property.name)) {
            let name = property.name;
            let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
            let message =
                format!("resource `{}` has no property `{path}`, which `{}` requires", self.resource, self.kind);
            self.drafts.push(Draft::warning(self.template.place_of(at), message).help(format!("add `{name}`")));
        }
    }

    fn wrong(&mut self, node: &Node, values: Values, path: &str, at: &Range<usize>) {
        let (found, span) = match node.data {
            Data::List(_) => ("a list", at),
            Data::Table(_) => ("a map", at),
            _ => ("a text", &node.span),
        };
        let path = if path.is_empty() { "Properties" } else { path };
        let message = format!("property `{path}` of resource `{}` is {found}", self.resource);
        self.drafts.push(Draft::warning(self.template.place_of(span), message).expected(expected(values)));
    }
}

/// Returns the place of the first key of a map, or the place of a value that is not a map.
fn start(node: &Node) -> Range<usize> {
    node.entries().first().map_or_else(|| node.span.clone(), |entry| entry.key_span.clone())
}

/// Returns whether a property may have the literal `node`. The parser returns numbers and booleans as texts too. The
/// value of a text with a template is not known yet.
fn may_have(values: Values, node: &Node) -> bool {
    match &node.data {
        Data::List(_) => values.may_be('l'),
        Data::Table(_) => values.may_be('m'),
        Data::Text(text) => {
            let is_unknown = is_nothing(node) || text.contains("{{") || text.starts_with(['{', '[']);
            is_unknown
                || values.may_be('s')
                || (values.may_be('n') && may_be_number(text))
                || (values.may_be('b') && may_be_boolean(text))
        }
        Data::Whole(_) | Data::Fraction(_) | Data::Flag(_) | Data::Date(_) => true,
    }
}

/// Returns whether YAML 1.1 or 1.2 may read the text as a number: with an exponent, `_`, a base or base-60 parts.
fn may_be_number(text: &str) -> bool {
    let plain = text.trim().replace('_', "");
    let digits = plain.trim_start_matches(['+', '-', '.']);
    let has_base = ["0x", "0o", "0b"].iter().any(|base| digits.starts_with(base));
    digits.parse::<f64>().is_ok() || has_base || digits.chars().all(|c| c.is_ascii_digit() || c == ':' || c == '.')
}

/// Returns whether YAML 1.1 or 1.2, or CloudFormation, may read the text as a boolean.
fn may_be_boolean(text: &str) -> bool {
    let words = ["true", "false", "yes", "no", "on", "off", "y", "n", "1", "0"];
    words.iter().any(|word| text.trim().eq_ignore_ascii_case(word))
}

/// Returns the values that a property may have, for a message.
fn expected(values: Values) -> String {
    let sorts = [('s', "a text"), ('n', "a number"), ('b', "`true` or `false`"), ('l', "a list"), ('m', "a map")];
    let named: Vec<&str> = sorts.iter().filter(|(letter, _)| values.may_be(*letter)).map(|(_, name)| *name).collect();
    named.join(" or ")
}

#[cfg(test)]
mod tests {
    use super::super::resource_schemas::kinds;
    use super::*;

    fn text(text: &str) -> Node {
        Node { span: 0..0, data: Data::Text(text.to_owned()) }
    }

    fn map(entries: impl IntoIterator<Item = (String, Node)>) -> Node {
        let entry = |(key, value)| Entry { key, key_span: 0..0, value };
        Node { span: 0..0, data: Data::Table(entries.into_iter().map(entry).collect()) }
    }

    fn list(items: Vec<Node>) -> Node {
        Node { span: 0..0, data: Data::List(items) }
    }

    /// Returns the properties that a shape requires, with values that their schemas allow.
    fn required(shape: Shape) -> Vec<(String, Node)> {
        let required = shape.properties().filter(|property| property.is_required);
        required.map(|property| (property.name.to_owned(), sample(property.values))).collect()
    }

    fn sample(values: Values) -> Node {
        match values.inside {
            Inside::Properties(shape) => map(required(shape)),
            Inside::Items(inner) => list(vec![sample(Values::parse(inner))]),
            Inside::Entries(inner) => map([("k".to_owned(), sample(Values::parse(inner)))]),
            Inside::Unknown if values.may_be('s') => text("x"),
            Inside::Unknown if values.may_be('n') => text("1"),
            Inside::Unknown if values.may_be('b') => text("true"),
            Inside::Unknown if values.may_be('l') => list(Vec::new()),
            Inside::Unknown => map([]),
        }
    }

    /// Returns how many mistakes a resource of type `kind` with these properties has.
    fn mistakes(kind: &str, properties: Vec<(String, Node)>) -> usize {
        let resource = map([("Type".to_owned(), text(kind)), ("Properties".to_owned(), map(properties))]);
        let root = map([("Resources".to_owned(), map([("R".to_owned(), resource)]))]);
        let mut drafts = Vec::new();
        check(&Template { file: 0, root, macros: false }, &mut drafts);
        drafts.len()
    }

    fn with(properties: &[(String, Node)], name: &str, value: Node) -> Vec<(String, Node)> {
        let others = properties.iter().filter(|(known, _)| known != name).cloned();
        others.chain([(name.to_owned(), value)]).collect()
    }

    #[test]
    fn every_type_passes_with_what_it_requires_and_fails_without() {
        for kind in kinds() {
            let (shape, _) = properties_of(kind).unwrap();
            let sound = required(shape);
            assert_eq!(mistakes(kind, sound.clone()), 0, "{kind}");

            for (missing, _) in &sound {
                let rest = sound.iter().filter(|(name, _)| name != missing).cloned().collect();
                assert_eq!(mistakes(kind, rest), 1, "{kind} without {missing}");
            }
            let unknown = with(&sound, "Xyzzy123456789", text("x"));
            assert_eq!(mistakes(kind, unknown), usize::from(!shape.is_open()), "{kind}");
        }
    }

    #[test]
    fn every_property_passes_with_its_sort_or_computed_and_fails_with_another() {
        for kind in kinds() {
            let (shape, _) = properties_of(kind).unwrap();
            let sound = required(shape);
            for property in shape.properties() {
                let found = |value: Node| mistakes(kind, with(&sound, property.name, value));
                let name = format!("{kind}.{}", property.name);
                assert_eq!(found(sample(property.values)), 0, "{name}");
                assert_eq!(found(map([("Fn::GetAtt".to_owned(), list(vec![text("a"), text("b")]))])), 0, "{name}");

                let wrong_list = usize::from(!property.values.may_be('l'));
                assert_eq!(found(list(vec![map([("Ref".to_owned(), text("x"))])])), wrong_list, "{name}");
                let computed = || map([("Ref".to_owned(), text("AWS::NoValue"))]);
                let branches = vec![text("C"), list(vec![computed()]), computed()];
                assert_eq!(found(map([("Fn::If".to_owned(), list(branches))])), wrong_list, "{name}");
            }
        }
    }

    #[test]
    fn texts_that_yaml_may_read_as_numbers_and_booleans_are_taken_for_them() {
        for number in ["1", "-1.5", "+3", "1e3", "1_000", "0x1F", "0o17", "190:20:30", ".5", ".inf"] {
            assert!(may_be_number(number), "{number}");
        }
        for other in ["30s", "soon", "1 day", "five", "1,000"] {
            assert!(!may_be_number(other), "{other}");
        }
        assert!(may_be_boolean("True") && may_be_boolean("off") && !may_be_boolean("maybe") && !may_be_boolean("2"));
    }
}
