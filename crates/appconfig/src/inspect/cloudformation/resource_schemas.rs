//! The properties that CloudFormation's resource types have, as the resource schemas of cfn-lint list them.
//! `tests/infra/resources/resource_schemas.py` writes the table and describes its form.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::LazyLock;

use flate2::read::ZlibDecoder;

/// The table, compressed with zlib: 189 KB instead of 696.
const TABLE: &[u8] = include_bytes!("resource-schemas.zlib");

static TEXT: LazyLock<String> = LazyLock::new(|| {
    let mut text = String::new();
    // INVARIANT: the table is a part of the program. A test reads it; without it, no property is checked.
    ZlibDecoder::new(TABLE).read_to_string(&mut text).map(|_| text).unwrap_or_default()
});

static SCHEMAS: LazyLock<Schemas> = LazyLock::new(|| {
    let (top, services) = TEXT.rsplit_once("\n\n").unwrap_or_default();
    let shapes: Vec<&str> = top.split('\n').skip(1).collect();
    let of_service = |line: &'static str| {
        let (service, kinds) = line.split_once(' ').unwrap_or_default();
        let kinds = kinds.split(' ').filter_map(|kind| kind.split_once('='));
        kinds.filter_map(move |(kind, number)| Some((format!("AWS::{service}::{kind}"), number.parse().ok()?)))
    };
    Schemas { types: services.lines().flat_map(of_service).collect(), shapes }
});

struct Schemas {
    shapes: Vec<&'static str>,
    /// The number of the shape of each type.
    types: BTreeMap<String, usize>,
}

/// The properties of a resource type, or of a map inside of a property.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape(&'static str);

/// A property, and what its schema says about it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Property {
    pub(super) name: &'static str,
    pub(super) is_required: bool,
    pub(super) values: Values,
}

/// The values that a property may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Values {
    /// A letter for each sort of value: `s` text, `n` number, `b` boolean, `l` list, `m` map; `*` for all.
    letters: &'static str,
    pub(super) inside: Inside,
}

/// The form of the values inside of a list or a map, by a schema.
#[derive(Debug, Clone, Copy)]
pub(super) enum Inside {
    Unknown,
    /// The values of a list; the text has the form of [`Values`].
    Items(&'static str),
    /// The values of a map with any keys; the text has the form of [`Values`].
    Entries(&'static str),
    Properties(Shape),
}

/// Returns the values that the property `Properties` of a resource of type `kind` may have; `None` for an unknown type.
pub(super) fn properties_of(kind: &str) -> Option<(Shape, Values)> {
    let shape = shape(*SCHEMAS.types.get(kind)?)?;
    Some((shape, Values { letters: "", inside: Inside::Properties(shape) }))
}

/// Returns the types of the table.
#[cfg(test)]
pub(super) fn kinds() -> impl Iterator<Item = &'static str> {
    SCHEMAS.types.keys().map(String::as_str)
}

fn shape(number: usize) -> Option<Shape> {
    SCHEMAS.shapes.get(number).copied().map(Shape)
}

impl Shape {
    /// Returns whether a map of this shape may have properties that the shape does not name.
    pub(super) fn is_open(self) -> bool {
        self.0.starts_with('+')
    }

    pub(super) fn properties(self) -> impl Iterator<Item = Property> {
        self.0.split(' ').filter_map(|word| {
            let (name, rest) = word.split_at(word.find(['=', '!'])?);
            let is_required = rest.starts_with('!');
            Some(Property { name, is_required, values: Values::parse(rest.get(1..)?) })
        })
    }

    pub(super) fn property(self, name: &str) -> Option<Property> {
        self.properties().find(|property| property.name == name)
    }
}

impl Values {
    /// Parses the values of a property, such as `sn`, `[s` or `{12`.
    pub(super) fn parse(text: &'static str) -> Self {
        let end = text.find(|c: char| c == '[' || c == '{' || c.is_ascii_digit()).unwrap_or(text.len());
        let (letters, rest) = text.split_at(end);
        let inside = match (rest.strip_prefix('['), rest.strip_prefix('{')) {
            (Some(items), _) => Inside::Items(items),
            (_, Some(entries)) => Inside::Entries(entries),
            _ => rest.parse().ok().and_then(shape).map_or(Inside::Unknown, Inside::Properties),
        };
        Self { letters, inside }
    }

    pub(super) fn are_any(self) -> bool {
        self.letters == "*"
    }

    /// Returns whether the property may have a value of the sort that `letter` stands for.
    pub(super) fn may_be(self, letter: char) -> bool {
        let inside = match self.inside {
            Inside::Unknown => false,
            Inside::Items(_) => letter == 'l',
            Inside::Entries(_) | Inside::Properties(_) => letter == 'm',
        };
        inside || self.are_any() || self.letters.contains(letter)
    }
}

#[cfg(test)]
mod tests {
    use super::super::resource_types;
    use super::*;

    #[test]
    fn the_table_has_the_types_of_the_list() {
        let source = TEXT.lines().next().unwrap();

        assert_eq!(source, resource_types::source());
        assert!(SCHEMAS.types.len() > 1800, "{}", SCHEMAS.types.len());
        for kind in SCHEMAS.types.keys() {
            assert!(resource_types::may_exist(kind) && properties_of(kind).is_some(), "{kind}");
        }
        for absent in ["AWS::CloudFormation::CustomResource", "AWS::Serverless::Function", "AWS::SQS::Queu", "A::B::C"]
        {
            assert!(properties_of(absent).is_none(), "{absent}");
        }
    }

    #[test]
    fn every_word_of_the_table_is_read() {
        for line in &SCHEMAS.shapes {
            let words = line.split(' ').filter(|word| *word != "+").count();
            let properties: Vec<Property> = Shape(line).properties().collect();
            assert_eq!(properties.len(), words, "{line}");
            for Property { name, values, .. } in properties {
                let mut values = values;
                while let Inside::Items(text) | Inside::Entries(text) = values.inside {
                    values = Values::parse(text);
                }
                let is_known = matches!(values.inside, Inside::Properties(_)) || !values.letters.is_empty();
                assert!(is_known && values.letters.chars().all(|c| "snblm*".contains(c)), "{name} in {line}");
            }
        }
    }

    #[test]
    fn properties_are_read_with_their_values() {
        let (queue, _) = properties_of("AWS::SQS::Queue").unwrap();
        let (policy, _) = properties_of("AWS::SNS::TopicPolicy").unwrap();

        assert!(!queue.is_open() && queue.properties().all(|property| !property.is_required));
        assert!(queue.property("DelaySeconds").unwrap().values.may_be('n'));
        let redrive = queue.property("RedrivePolicy").unwrap().values;
        assert!(redrive.may_be('s') && redrive.may_be('m') && !redrive.may_be('l'));
        let required = policy.properties().filter(|property| property.is_required).map(|property| property.name);
        assert_eq!(required.collect::<Vec<_>>(), ["PolicyDocument", "Topics"]);
    }
}
