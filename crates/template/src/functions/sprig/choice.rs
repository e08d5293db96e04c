//! The functions of Sprig for fallbacks, conditions and errors.

use serde_json::Value;

use super::arguments::last;
use crate::functions::function::{Answer, Function, MANY, at, lenient, light, made, text};
use crate::value::{V, truth, type_name};

pub(super) static FUNCTIONS: &[Function] = &[
    lenient("default", 1, 2, |args, _| fallback(args)),
    lenient("coalesce", 0, MANY, |args, _| {
        Ok(args.iter().find(|arg| truth(arg.get())).cloned().unwrap_or_else(V::null))
    }),
    lenient("empty", 1, 1, |args, _| made(!truth(at(args, 0)))),
    lenient("all", 0, MANY, |args, _| made(args.iter().all(|arg| truth(arg.get())))),
    lenient("any", 0, MANY, |args, _| made(args.iter().any(|arg| truth(arg.get())))),
    lenient("required", 2, 2, |args, _| match at(args, 1) {
        Value::Null => Err(text(at(args, 0))?.to_owned()),
        Value::String(value) if value.is_empty() => Err(text(at(args, 0))?.to_owned()),
        _ => Ok(last(args)),
    }),
    light("fail", 1, 1, |args, _| Err(text(at(args, 0))?.to_owned())),
    light("ternary", 3, 3, |args, _| {
        let pick = if truth(at(args, 2)) { args.first() } else { args.get(1) };
        Ok(pick.cloned().unwrap_or_else(V::null))
    }),
    lenient("kindOf", 1, 1, |args, _| made(type_name(at(args, 0)))),
    lenient("kindIs", 2, 2, |args, _| made(type_name(at(args, 1)) == text(at(args, 0))?)),
];

fn fallback<'t>(args: &[V<'t>]) -> Answer<'t> {
    match args {
        [_, value] if truth(value.get()) => Ok(value.clone()),
        [fallback, ..] => Ok(fallback.clone()),
        [] => Ok(V::null()),
    }
}
