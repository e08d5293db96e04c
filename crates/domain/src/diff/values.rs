//! Compares two JSON values key by key; each side of a difference is cut to fit into one line.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The maximum length of the text for one side of a difference, in characters.
const WIDTH: usize = 60;
/// The number of characters that are shown of a long common beginning.
const LEAD: usize = 12;

/// A key with different values in the two versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The path of the key, such as `vars.bucket` or `steps.show.command`.
    pub key: String,
    /// The value in the first version, as shortened JSON; absent when the first version does not have the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The value in the second version, as shortened JSON; absent when the second version does not have the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// Returns the keys in which `from` and `to` differ, in the order of the keys.
pub(super) fn changes(from: &Value, to: &Value) -> Vec<Change> {
    let mut found = Vec::new();
    walk("", Some(from), Some(to), &mut found);
    found
}

/// Returns the change of the text under `key`, if the two texts differ.
pub(super) fn change_of_text(key: &str, from: &str, to: &str) -> Option<Change> {
    let value = |text: &str| (!text.is_empty()).then(|| Value::String(text.to_owned()));
    let (from, to) = (value(from), value(to));
    (from != to).then(|| leaf(key, from.as_ref(), to.as_ref()))
}

fn walk(key: &str, from: Option<&Value>, to: Option<&Value>, found: &mut Vec<Change>) {
    let none = Map::new();
    match (from, to) {
        (from, to) if from == to => {}
        (Some(Value::Object(from)), Some(Value::Object(to))) => objects(key, from, to, found),
        (None, Some(Value::Object(to))) if !to.is_empty() => objects(key, &none, to, found),
        (Some(Value::Object(from)), None) if !from.is_empty() => objects(key, from, &none, found),
        (Some(Value::Array(from)), Some(Value::Array(to))) => arrays(key, from, to, found),
        (from, to) => found.push(leaf(key, from, to)),
    }
}

fn objects(key: &str, from: &Map<String, Value>, to: &Map<String, Value>, found: &mut Vec<Change>) {
    let names: BTreeSet<&String> = from.keys().chain(to.keys()).collect();
    for name in names {
        walk(&below(key, name), from.get(name), to.get(name), found);
    }
}

fn below(key: &str, name: &str) -> String {
    let name: String = name.chars().flat_map(|c| if c.is_control() { vec!['?'] } else { vec![c] }).collect();
    if key.is_empty() { name } else { format!("{key}.{name}") }
}

/// Compares two lists. If all elements have names, elements of the same name are compared; otherwise the change shows
/// the elements that only one list has.
fn arrays(key: &str, from: &[Value], to: &[Value], found: &mut Vec<Change>) {
    if let (Some(before), Some(after)) = (by_name(from), by_name(to)) {
        let count = found.len();
        let names: BTreeSet<&&str> = before.keys().chain(after.keys()).collect();
        for name in names {
            walk(&below(key, name), before.get(*name).copied(), after.get(*name).copied(), found);
        }
        if found.len() > count {
            return;
        }
    }
    let (gone, new) = (only_in(from, to), only_in(to, from));
    if gone.is_empty() && new.is_empty() {
        let key = below(key, "(order)");
        found.push(leaf(&key, Some(&Value::from(from)), Some(&Value::from(to))));
    } else {
        let side = |list: Vec<Value>| (!list.is_empty()).then_some(Value::Array(list));
        found.push(leaf(key, side(gone).as_ref(), side(new).as_ref()));
    }
}

fn by_name(list: &[Value]) -> Option<BTreeMap<&str, &Value>> {
    let named: BTreeMap<&str, &Value> =
        list.iter().filter_map(|value| Some((value.get("name")?.as_str()?, value))).collect();
    (named.len() == list.len()).then_some(named)
}

/// Returns the elements of `list` that `other` does not have. Equal elements are counted: if `list` has two of them and
/// `other` has one, the result has one.
fn only_in(list: &[Value], other: &[Value]) -> Vec<Value> {
    let mut rest: Vec<&Value> = other.iter().collect();
    let mut only = Vec::new();
    for value in list {
        match rest.iter().position(|known| *known == value) {
            Some(at) => drop(rest.swap_remove(at)),
            None => only.push(value.clone()),
        }
    }
    only
}

fn leaf(key: &str, from: Option<&Value>, to: Option<&Value>) -> Change {
    let (from, to) = match (from, to) {
        (Some(Value::String(from)), Some(Value::String(to))) if from.contains('\n') || to.contains('\n') => {
            let (from, to) = first_lines(from, to);
            (Some(from), Some(to))
        }
        (from, to) => (from.map(json), to.map(json)),
    };
    let skip = match (&from, &to) {
        (Some(from), Some(to)) => common(from, to),
        _ => 0,
    };
    Change { key: key.to_owned(), from: from.map(|text| short(&text, skip)), to: to.map(|text| short(&text, skip)) }
}

/// Returns, from each of the two texts, the first line in which they differ.
fn first_lines(from: &str, to: &str) -> (String, String) {
    let mut at = 1;
    let (mut before, mut after) = (from.lines(), to.lines());
    loop {
        match (before.next(), after.next()) {
            (Some(a), Some(b)) if a == b => at += 1,
            (None, None) => return ("(different line endings)".into(), "(different line endings)".into()),
            (a, b) => {
                let line = |text: Option<&str>| match text {
                    Some(text) => format!("line {at}: {}", json(&Value::String(text.to_owned()))),
                    None => format!("{} lines", at - 1),
                };
                return (line(a), line(b));
            }
        }
    }
}

fn json(value: &Value) -> String {
    value.to_string()
}

/// Returns how many equal characters to leave out at the start of both texts. The last [`LEAD`] equal characters stay.
fn common(from: &str, to: &str) -> usize {
    if from.chars().count().max(to.chars().count()) <= WIDTH {
        return 0;
    }
    let common = from.chars().zip(to.chars()).take_while(|(a, b)| a == b).count();
    if common > 2 * LEAD { common - LEAD } else { 0 }
}

fn short(text: &str, skip: usize) -> String {
    let mut out = String::new();
    if skip > 0 {
        out.push('…');
    }
    let mut rest = text.chars().skip(skip);
    out.extend(rest.by_ref().take(WIDTH));
    if rest.next().is_some() {
        out.push('…');
    }
    out
}
