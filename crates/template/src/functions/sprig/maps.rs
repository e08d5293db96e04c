//! The functions of Sprig that take or make maps. They do not change their arguments: `merge` returns a new map.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::arguments::map;
use crate::format::print;
use crate::functions::function::{Answer, Function, MANY, at, lenient, light, made, plain, text};
use crate::value::{V, entries, truth};

pub(super) static FUNCTIONS: &[Function] = &[
    plain("dict", 0, MANY, |args, _| dict(args)),
    lenient("hasKey", 2, 2, |args, _| made(at(args, 0).get(text(at(args, 1))?).is_some())),
    light("get", 2, 2, |args, _| {
        let (map, name) = (map(at(args, 0))?, text(at(args, 1))?);
        if !map.contains_key(name) {
            return made("");
        }
        Ok(args.first().and_then(|arg| arg.child(|v| v.get(name))).unwrap_or_else(V::null))
    }),
    light("dig", 3, MANY, |args, _| dig(args)),
    plain("keys", 0, MANY, |args, _| {
        let maps = args.iter().map(|arg| map(arg.get())).collect::<Result<Vec<_>, _>>()?;
        made(maps.into_iter().flat_map(entries).map(|(key, _)| key.clone()).collect::<Vec<_>>())
    }),
    plain("values", 1, 1, |args, _| {
        made(entries(map(at(args, 0))?).into_iter().map(|(_, value)| value.clone()).collect::<Vec<_>>())
    }),
    plain("pluck", 1, MANY, |args, _| {
        let name = text(at(args, 0))?;
        let maps = args.iter().skip(1).map(|arg| map(arg.get())).collect::<Result<Vec<_>, _>>()?;
        made(maps.into_iter().filter_map(|map| map.get(name)).cloned().collect::<Vec<_>>())
    }),
    plain("pick", 1, MANY, |args, _| {
        let from = map(at(args, 0))?;
        let names = names(args)?;
        let kept = names.iter().filter_map(|name| Some(((*name).to_owned(), from.get(*name)?.clone())));
        made(Value::Object(kept.collect()))
    }),
    plain("omit", 1, MANY, |args, _| {
        let names = names(args)?;
        let kept = map(at(args, 0))?.iter().filter(|(name, _)| !names.contains(name.as_str()));
        made(Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect()))
    }),
    plain("merge", 1, MANY, |args, _| merged(args, false)),
    plain("mergeOverwrite", 1, MANY, |args, _| merged(args, true)),
    plain("deepCopy", 1, 1, |args, _| Ok(args.first().cloned().unwrap_or_else(V::null))),
    plain("deepEqual", 2, 2, |args, _| made(at(args, 0) == at(args, 1))),
];

fn names<'a>(args: &'a [V<'_>]) -> Result<BTreeSet<&'a str>, String> {
    args.iter().skip(1).map(|arg| text(arg.get())).collect()
}

fn dict<'t>(args: &[V<'t>]) -> Answer<'t> {
    let mut map = Map::new();
    for pair in args.chunks(2) {
        let value = pair.get(1).ok_or("the last key has no value")?;
        map.insert(print(at(pair, 0)), value.get().clone());
    }
    made(map)
}

/// Looks up the keys one after the other, each in the value of the key before it. The first key is looked up in the
/// last argument. Returns the second to last argument when a key is missing.
fn dig<'t>(args: &[V<'t>]) -> Answer<'t> {
    let [keys @ .., fallback, root] = args else {
        return Ok(V::null());
    };
    let mut value = root.clone();
    for key in keys {
        let name = text(key.get())?;
        map(value.get())?;
        match value.child(|v| v.get(name)) {
            Some(child) => value = child,
            None => return Ok(fallback.clone()),
        }
    }
    Ok(value)
}

fn merged<'t>(args: &[V<'t>], overwrite: bool) -> Answer<'t> {
    let mut into = map(at(args, 0))?.clone();
    for arg in args.iter().skip(1) {
        merge(&mut into, map(arg.get())?, overwrite);
    }
    made(into)
}

/// Copies the entries of `from` into `into`, nested maps included. Replaces an existing value only when it is empty or
/// `overwrite` is set.
fn merge(into: &mut Map<String, Value>, from: &Map<String, Value>, overwrite: bool) {
    for (name, value) in from {
        match (into.get_mut(name), value) {
            (Some(Value::Object(inner)), Value::Object(other)) => merge(inner, other, overwrite),
            (Some(slot), value) => {
                if overwrite || !truth(slot) {
                    *slot = value.clone();
                }
            }
            (None, Value::Null) if !overwrite => {}
            (None, value) => {
                into.insert(name.clone(), value.clone());
            }
        }
    }
}
