//! The functions of Sprig that take or make lists.

use std::collections::BTreeSet;

use serde_json::Value;

use super::arguments::{list, texts};
use crate::format::print;
use crate::functions::function::{Answer, Function, MANY, Room, at, light, made, number, plain, text};
use crate::json::{self, Form};
use crate::value::{V, truth};

pub(super) static FUNCTIONS: &[Function] = &[
    plain("list", 0, MANY, |args, _| made(args.iter().map(|arg| arg.get().clone()).collect::<Vec<_>>())),
    plain("tuple", 0, MANY, |args, _| made(args.iter().map(|arg| arg.get().clone()).collect::<Vec<_>>())),
    light("first", 1, 1, |args, _| {
        let _ = list(at(args, 0))?;
        Ok(args.first().and_then(|arg| arg.child(|v| v.as_array()?.first())).unwrap_or_else(V::null))
    }),
    light("last", 1, 1, |args, _| {
        let _ = list(at(args, 0))?;
        Ok(args.first().and_then(|arg| arg.child(|v| v.as_array()?.last())).unwrap_or_else(V::null))
    }),
    plain("rest", 1, 1, |args, _| made(list(at(args, 0))?.get(1..).unwrap_or_default().to_vec())),
    plain("initial", 1, 1, |args, _| {
        made(list(at(args, 0))?.split_last().map(|(_, others)| others.to_vec()).unwrap_or_default())
    }),
    plain("append", 2, 2, |args, _| made([list(at(args, 0))?.as_slice(), &[at(args, 1).clone()]].concat())),
    plain("push", 2, 2, |args, _| made([list(at(args, 0))?.as_slice(), &[at(args, 1).clone()]].concat())),
    plain("prepend", 2, 2, |args, _| made([&[at(args, 1).clone()], list(at(args, 0))?.as_slice()].concat())),
    plain("concat", 0, MANY, |args, _| {
        let lists = args.iter().map(|arg| list(arg.get())).collect::<Result<Vec<_>, _>>()?;
        made(lists.into_iter().flatten().cloned().collect::<Vec<_>>())
    }),
    plain("reverse", 1, 1, |args, _| made(list(at(args, 0))?.iter().rev().cloned().collect::<Vec<_>>())),
    plain("uniq", 1, 1, |args, _| {
        let mut seen = BTreeSet::new();
        made(list(at(args, 0))?.iter().filter(|item| seen.insert(key(item))).cloned().collect::<Vec<_>>())
    }),
    plain("without", 1, MANY, |args, _| {
        let out: BTreeSet<String> = args.iter().skip(1).map(|arg| key(arg.get())).collect();
        made(list(at(args, 0))?.iter().filter(|item| !out.contains(&key(item))).cloned().collect::<Vec<_>>())
    }),
    plain("compact", 1, 1, |args, _| {
        made(list(at(args, 0))?.iter().filter(|item| truth(item)).cloned().collect::<Vec<_>>())
    }),
    plain("has", 2, 2, |args, _| match at(args, 1) {
        Value::Null => made(false),
        other => made(list(other)?.contains(at(args, 0))),
    }),
    plain("chunk", 2, 2, |args, _| {
        let size = usize::try_from(number(at(args, 0))?).unwrap_or_default();
        if size == 0 {
            return Err("the size of a chunk must be at least 1".to_owned());
        }
        made(list(at(args, 1))?.chunks(size).map(|part| Value::from(part.to_vec())).collect::<Vec<_>>())
    }),
    plain("sortAlpha", 1, 1, |args, _| {
        let mut found = texts(at(args, 0));
        found.sort();
        made(found)
    }),
    plain("toStrings", 1, 1, |args, _| made(texts(at(args, 0)))),
    plain("join", 2, 2, join),
    plain("until", 1, 1, |args, room| {
        let end = number(at(args, 0))?;
        made(steps(0, end, if end < 0 { -1 } else { 1 }, room)?)
    }),
    plain("untilStep", 3, 3, |args, room| {
        made(steps(number(at(args, 0))?, number(at(args, 1))?, number(at(args, 2))?, room)?)
    }),
    plain("seq", 0, 3, |args, room| {
        let numbers = args.iter().map(|arg| number(arg.get())).collect::<Result<Vec<_>, _>>()?;
        let found: Vec<String> = seq(&numbers, room)?.iter().map(print).collect();
        made(found.join(" "))
    }),
];

/// Returns a text that is the same for equal values and different for other values.
fn key(value: &Value) -> String {
    json::write(value, Form::Raw)
}

fn join<'t>(args: &[V<'t>], room: Room) -> Answer<'t> {
    let separator = text(at(args, 0))?;
    let found = texts(at(args, 1));
    room.check(found.len().saturating_mul(separator.len()))?;
    made(found.join(separator))
}

/// Returns the numbers from `start` to `stop`, without `stop` itself, at a distance of `step`. Returns no numbers when
/// `step` does not lead to `stop`.
fn steps(start: i64, stop: i64, step: i64, room: Room) -> Result<Vec<Value>, String> {
    let away = if stop < start { step >= 0 } else { step <= 0 };
    if away || start == stop {
        return Ok(Vec::new());
    }
    let count = start.abs_diff(stop).div_ceil(step.unsigned_abs());
    room.check(usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(16))?;
    Ok(std::iter::successors(Some(start), |at| at.checked_add(step))
        .take_while(|at| if step > 0 { *at < stop } else { *at > stop })
        .map(Value::from)
        .collect())
}

/// Returns the numbers that Sprig's `seq` prints. They are those of the Unix command `seq`, except when the numbers
/// descend.
fn seq(numbers: &[i64], room: Room) -> Result<Vec<Value>, String> {
    let beyond = |end: i64, by: i64| end.checked_add(by).ok_or_else(|| "the last number is too large".to_owned());
    match *numbers {
        [end] => seq(&[1, end], room),
        [start, end] => {
            let step = if end < start { -1 } else { 1 };
            steps(start, beyond(end, step)?, step, room)
        }
        [start, step, end] => {
            if end < start && step > 0 {
                return Ok(Vec::new());
            }
            steps(start, beyond(end, if end < start { -1 } else { 1 })?, step, room)
        }
        _ => Ok(Vec::new()),
    }
}
