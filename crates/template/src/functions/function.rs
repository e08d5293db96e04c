//! A function of a template: its name, the number of its arguments, its cost, and its code.

use serde_json::Value;

use crate::value::{V, kind, whole};

/// The result of a function. The error says what the function does not accept, without the values themselves.
pub(crate) type Answer<'t> = Result<V<'t>, String>;

/// One function.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) min: usize,
    pub(crate) max: usize,
    /// Whether it accepts a missing key, as null.
    pub(crate) lenient: bool,
    /// How the cost of a call is counted.
    pub(crate) cost: Cost,
    pub(crate) call: for<'t> fn(&[V<'t>], Room) -> Answer<'t>,
}

/// Names are unique, so functions are equal when their names are.
impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// How many steps a call counts for its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cost {
    /// None: the function returns one of them or a small value.
    Light,
    /// One for each 256 bytes.
    Walk,
    /// One for each byte: the function runs a pattern over them.
    Search,
}

/// How many bytes a function may make.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room(pub(crate) usize);

impl Room {
    /// Refuses a result of more than the allowed bytes.
    pub(crate) fn check(self, bytes: usize) -> Result<(), String> {
        if bytes <= self.0 { Ok(()) } else { Err(format!("the result is larger than {} bytes", self.0)) }
    }
}

/// Any number of arguments.
pub(crate) const MANY: usize = usize::MAX;

type Call = for<'t> fn(&[V<'t>], Room) -> Answer<'t>;

pub(crate) const fn plain(name: &'static str, min: usize, max: usize, call: Call) -> Function {
    Function { name, min, max, lenient: false, cost: Cost::Walk, call }
}

pub(crate) const fn light(name: &'static str, min: usize, max: usize, call: Call) -> Function {
    Function { name, min, max, lenient: false, cost: Cost::Light, call }
}

pub(crate) const fn lenient(name: &'static str, min: usize, max: usize, call: Call) -> Function {
    Function { name, min, max, lenient: true, cost: Cost::Light, call }
}

pub(crate) const fn search(name: &'static str, min: usize, max: usize, call: Call) -> Function {
    Function { name, min, max, lenient: false, cost: Cost::Search, call }
}

pub(crate) fn made<'t>(value: impl Into<Value>) -> Answer<'t> {
    Ok(V::made(value.into()))
}

/// Returns argument `index`; null when it is absent, which the table's `min` excludes.
pub(crate) fn at<'a>(args: &'a [V<'_>], index: usize) -> &'a Value {
    args.get(index).map_or(&Value::Null, V::get)
}

pub(crate) fn text(value: &Value) -> Result<&str, String> {
    value.as_str().ok_or_else(|| format!("expected a string, got {}", kind(value)))
}

pub(crate) fn number(value: &Value) -> Result<i64, String> {
    value.as_number().and_then(whole).ok_or_else(|| {
        format!("expected a whole number, got {}", if value.is_number() { "a fraction" } else { kind(value) })
    })
}
