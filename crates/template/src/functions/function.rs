//! The type of a function that templates call: its name, the number of its arguments, its cost, and its code.

use serde_json::Value;

use crate::value::{V, kind, whole};

/// The result of a function. The error describes the arguments that the function does not accept, but does not contain
/// them.
pub(crate) type Answer<'t> = Result<V<'t>, String>;

/// A function that templates can call.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) min: usize,
    pub(crate) max: usize,
    /// True when the function accepts a missing key as null.
    pub(crate) lenient: bool,
    /// The steps that a call costs.
    pub(crate) cost: Cost,
    pub(crate) call: for<'t> fn(&[V<'t>], Room) -> Answer<'t>,
}

/// Compares functions by their names, which are unique.
impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// The number of steps that a call costs for its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cost {
    /// The call costs no steps, because the function returns one of its arguments or a small value.
    Light,
    /// One step for each 256 bytes of the arguments.
    Walk,
    /// As `Walk`, and one more step for each byte of the arguments, because the function runs a pattern over them.
    Search,
}

/// The maximum size, in bytes, of the value that a function makes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room(pub(crate) usize);

impl Room {
    /// Returns an error when a result has more bytes than allowed.
    pub(crate) fn check(self, bytes: usize) -> Result<(), String> {
        if bytes <= self.0 { Ok(()) } else { Err(format!("the result is larger than {} bytes", self.0)) }
    }
}

/// The `max` of a function that takes any number of arguments.
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

/// Returns argument `index`, or null when it is absent. A required argument is never absent, because `min` is checked
/// before the call.
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
