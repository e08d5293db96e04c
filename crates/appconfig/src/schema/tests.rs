//! Schemas against the tables that they are made of, and against the reader of those tables.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jsonschema::Validator;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::kind::Shape;
use super::{SchemaKind, pattern, rules, schema, schema_kinds, shape};
use crate::check::validate::validate;
use crate::kinds::spec::{Holds, Key, seconds};
use crate::kinds::{COMPONENT_TYPES, Kind, component_keys};
use crate::read::addresses::Addresses;
use crate::read::addresses::Fetched;
use crate::read::disk::Disk;
use crate::read::document;
use crate::read::files::Files;
use crate::report::diagnostic::Severity;
use crate::state::app::{App, Purpose};

#[test]
fn every_rule_is_about_keys_that_are_there() {
    let lost: Vec<String> = rules::RULES
        .iter()
        .flat_map(|(places, rule)| places.iter().map(move |place| (*place, rule)))
        .filter(|(place, rule)| {
            let known = keys_at(place);
            known.is_empty() || !rule.keys().iter().all(|key| known.contains(key))
        })
        .map(|(place, rule)| format!("{place}: {rule:?}"))
        .collect();

    assert!(lost.is_empty(), "{}", lost.join("\n"));
}

fn keys_at(place: &str) -> Vec<&'static str> {
    let (name, path) = place.split_once('.').unwrap_or((place, ""));
    let kind = schema_kinds().find(|kind| kind.name() == name);
    let mut tables: Vec<&[Key]> = match kind.map(|kind| kind.0) {
        Some(Shape::File(kind)) => vec![kind.keys()],
        Some(Shape::Component(word)) => vec![Kind::Component.keys(), component_keys(word)],
        None => Vec::new(),
    };
    for part in path.split('.').filter(|part| !part.is_empty()) {
        let key = tables.iter().copied().flatten().find(|key| key.name == part);
        tables = match key.map(|key| key.holds) {
            Some(Holds::Table(keys) | Holds::Tables(keys)) => vec![keys],
            _ => Vec::new(),
        };
    }
    tables.into_iter().flatten().map(|key| key.name).collect()
}

#[test]
fn every_key_says_what_it_is_for() {
    let mut silent = Vec::new();

    for kind in schema_kinds() {
        let keys = match kind.0 {
            Shape::File(kind) => kind.keys(),
            Shape::Component(word) => component_keys(word),
        };
        undocumented(kind.name(), keys, &mut silent);
    }

    assert!(silent.is_empty(), "{}", silent.join("\n"));
}

fn undocumented(path: &str, keys: &[Key], silent: &mut Vec<String>) {
    for key in keys {
        let path = format!("{path}.{}", key.name);
        if let Holds::Table(keys) | Holds::Tables(keys) = key.holds {
            undocumented(&path, keys, silent);
        }
        if key.doc.is_empty() {
            silent.push(path);
        }
    }
}

proptest! {
    #[test]
    fn a_duration_that_the_reader_takes_has_the_form(
        parts in prop::collection::vec((0_u32..5000, prop::sample::select(vec!['h', 'm', 's'])), 1..4),
        most in prop::sample::select(vec![90_u32, 1800, 3600, 5400]),
    ) {
        let text: String = parts.iter().map(|(number, unit)| format!("{number}{unit}")).collect();
        let form = jsonschema::draft7::new(&json!({ "pattern": pattern::duration(most) })).unwrap();

        let taken = seconds(&text).is_some_and(|secs| (1..=most).contains(&secs));

        if taken || parts.len() == 1 {
            prop_assert_eq!(form.is_valid(&json!(text)), taken, "{}", text);
        }
    }
}

/// Values of every type, and words that belong in places of all kinds.
fn anything() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!("x"),
        json!(""),
        json!("5m"),
        json!("2h"),
        json!("aws"),
        json!("pulumi"),
        json!(7),
        json!(-1),
        json!(1.5),
        json!(true),
        json!([]),
        json!(["a"]),
        json!([1]),
        json!([{}]),
        json!({}),
        json!({ "a": "b" }),
        json!({ "a": ["b"] }),
    ])
}

/// Values as the table asks for them, and now and then another.
fn value(holds: Holds) -> BoxedStrategy<Value> {
    let right = match holds {
        Holds::Text | Holds::Template | Holds::TemplateFile | Holds::File => Just(json!("x")).boxed(),
        Holds::Word(words) => prop::sample::select(words).prop_map(Value::from).boxed(),
        Holds::Flag => any::<bool>().prop_map(Value::from).boxed(),
        Holds::Whole => (0..9).prop_map(Value::from).boxed(),
        Holds::Duration(most) => (0..=most + 1).prop_map(|secs| json!(format!("{secs}s"))).boxed(),
        Holds::Texts => prop::collection::vec("[a-z]", 0..3).prop_map(Value::from).boxed(),
        Holds::Scalars => Just(json!({ "a": "b", "c": 1, "d": 1.5, "e": false })).boxed(),
        Holds::Values => Just(json!({ "a": [1, { "b": "c" }] })).boxed(),
        Holds::Table(keys) => table(&[keys]),
        Holds::Tables(keys) => prop::collection::vec(table(&[keys]), 0..3).prop_map(Value::from).boxed(),
        Holds::Any => anything().boxed(),
    };
    prop_oneof![24 => right, 1 => anything()].boxed()
}

/// Tables as `tables` ask for them, and now and then without a key or with another.
fn table(tables: &[&'static [Key]]) -> BoxedStrategy<Value> {
    let keys: Vec<_> = tables
        .iter()
        .copied()
        .flatten()
        .map(|key| {
            let chance = if key.must { 0.98 } else { 0.3 };
            prop::option::weighted(chance, value(key.holds)).prop_map(|value| (key.name.to_owned(), value))
        })
        .collect();
    (keys, prop::option::weighted(0.1, anything()))
        .prop_map(|(keys, other)| {
            let all = keys.into_iter().chain([("no_such_key".to_owned(), other)]);
            Value::Object(all.filter_map(|(name, value)| Some((name, value?))).collect::<Map<_, _>>())
        })
        .boxed()
}

/// Returns a file of any kind, with the kind's schema without rules.
fn file() -> impl Strategy<Value = (Kind, Value, Value)> {
    let kinds: Vec<SchemaKind> = schema_kinds().filter(|kind| kind.0 != Shape::File(Kind::Component)).collect();
    prop::sample::select(kinds).prop_flat_map(|kind| {
        let (kind, tables, of_type) = match kind.0 {
            Shape::File(kind) => (kind, vec![kind.keys()], None),
            Shape::Component(word) => (Kind::Component, vec![Kind::Component.keys(), component_keys(word)], Some(word)),
        };
        let schema = if kind.is_open() {
            shape::open_table(kind.keys())
        } else {
            let parts: Vec<(&str, &[Key])> = tables.iter().map(|keys| ("-", *keys)).collect();
            Value::Object(shape::tables(&parts))
        };
        table(&tables).prop_map(move |mut file| {
            if let (Some(word), Some(Value::String(given))) = (of_type, file.get_mut("type")) {
                word.clone_into(given);
            }
            (kind, file, schema.clone())
        })
    })
}

/// Returns a value as TOML; the tables of a file are written in one line each.
fn toml(value: &Value) -> String {
    let inside = |table: &Map<String, Value>| -> Vec<String> {
        table.iter().map(|(key, value)| format!("\"{key}\" = {}", toml(value))).collect()
    };
    match value {
        Value::Object(table) => format!("{{ {} }}", inside(table).join(", ")),
        Value::Array(items) => format!("[{}]", items.iter().map(toml).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

fn toml_file(file: &Value) -> String {
    let table = file.as_object().unwrap();
    table.iter().map(|(key, value)| format!("\"{key}\" = {}\n", toml(value))).collect()
}

/// Returns the first mistake that the reader finds in a file when it compares it with its tables.
fn mistake(kind: Kind, text: &str) -> Option<String> {
    let home = tempfile::tempdir().unwrap();
    let mut app = App {
        files: Files::new(Box::new(Disk::new(home.path()))),
        checked: Vec::new(),
        broken: Vec::new(),
        drafts: Vec::new(),
        unreadable: std::collections::BTreeMap::new(),
        purpose: Purpose::Check,
        fetched: Fetched::new(),
        addresses: Addresses::default(),
        elsewhere: std::collections::BTreeSet::new(),
    };
    let file = app.files.add("a.toml".to_owned(), text.to_owned());
    validate(&mut app, file, kind, document::parse(text).unwrap());
    let mut found = app.drafts.into_iter().map(|draft| draft.finish(&app.files));
    found.find(|one| one.severity == Severity::Error).map(|one| one.message)
}

/// The schemas of components, by type and as a whole.
static COMPONENTS: LazyLock<BTreeMap<&str, Validator>> = LazyLock::new(|| {
    let words = COMPONENT_TYPES.iter().copied().chain(["component"]);
    words.map(|word| (word, compiled(&schema(word.parse().unwrap())))).collect()
});

fn compiled(schema: &Value) -> Validator {
    jsonschema::draft7::new(schema).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_table_is_taken_by_its_schema_when_the_reader_takes_it((kind, file, schema) in file()) {
        let text = toml_file(&file);

        let (read, schemed) = (mistake(kind, &text), compiled(&schema).validate(&file).map_err(|error| error.to_string()));

        prop_assert_eq!(read.is_none(), schemed.is_ok(), "{:?}\n{}\nreader: {:?}\nschema: {:?}", kind, text, read, schemed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_schema_of_any_component_says_what_that_of_its_type_says(
        (word, file) in prop::sample::select(COMPONENT_TYPES).prop_flat_map(|word| {
            table(&[Kind::Component.keys(), component_keys(word)]).prop_map(move |mut file| {
                if let Some(Value::String(given)) = file.get_mut("type") {
                    word.clone_into(given);
                }
                (word, file)
            })
        }),
    ) {
        let (any, typed) = (&COMPONENTS["component"], &COMPONENTS[word]);

        prop_assert_eq!(any.is_valid(&file), typed.is_valid(&file), "{}", file);
    }
}
