//! The functions of Sprig on numbers: arithmetic on integers of 64 bits, and rounding. A result that does not fit is an
//! error, where Sprig would wrap around.

use serde_json::{Number, Value};

use crate::functions::function::{Answer, Function, MANY, at, made, number, plain};
use crate::lex::whole_literal;
use crate::value::{V, kind};

pub(super) static FUNCTIONS: &[Function] = &[
    plain("int", 1, 1, |args, _| made(int(at(args, 0))?)),
    plain("int64", 1, 1, |args, _| made(int(at(args, 0))?)),
    plain("atoi", 1, 1, |args, _| made(int(at(args, 0))?)),
    plain("float64", 1, 1, |args, _| fraction(float(at(args, 0))?)),
    plain("add", 1, MANY, |args, _| fold(args, i64::checked_add)),
    plain("add1", 1, 1, |args, _| {
        made(int(at(args, 0))?.checked_add(1).ok_or("the result does not fit into 64 bits")?)
    }),
    plain("sub", 2, 2, |args, _| fold(args, i64::checked_sub)),
    plain("mul", 1, MANY, |args, _| fold(args, i64::checked_mul)),
    plain("div", 2, 2, |args, _| divide(args, i64::checked_div)),
    plain("mod", 2, 2, |args, _| divide(args, i64::checked_rem)),
    plain("max", 1, MANY, |args, _| fold(args, |a, b| Some(a.max(b)))),
    plain("biggest", 1, MANY, |args, _| fold(args, |a, b| Some(a.max(b)))),
    plain("min", 1, MANY, |args, _| fold(args, |a, b| Some(a.min(b)))),
    plain("floor", 1, 1, |args, _| fraction(float(at(args, 0))?.floor())),
    plain("ceil", 1, 1, |args, _| fraction(float(at(args, 0))?.ceil())),
    plain("round", 2, 2, |args, _| {
        let places = i32::try_from(number(at(args, 1))?).map_err(|_| "too many decimal places".to_owned())?;
        let power = 10f64.powi(places);
        let digit = power * float(at(args, 0))?;
        let rounded = if digit.fract() >= 0.5 { digit.ceil() } else { digit.floor() };
        fraction(rounded / power)
    }),
];

fn int(value: &Value) -> Result<i64, String> {
    match value {
        Value::Null => Ok(0),
        Value::Bool(flag) => Ok(i64::from(*flag)),
        Value::String(text) => {
            // `3.0` counts as 3, as in Sprig.
            let whole = match text.split_once('.') {
                Some((whole, zeros)) if zeros.chars().all(|c| c == '0') => whole,
                _ => text.as_str(),
            };
            whole_literal(whole).ok_or_else(|| "the string is not a whole number".to_owned())
        }
        #[expect(clippy::cast_possible_truncation, reason = "a fraction is cut, as in Sprig; the cast saturates")]
        Value::Number(number) => Ok(number.as_i64().unwrap_or_else(|| number.as_f64().unwrap_or_default() as i64)),
        other => Err(format!("expected a number, got {}", kind(other))),
    }
}

fn float(value: &Value) -> Result<f64, String> {
    match value {
        Value::Null => Ok(0.0),
        Value::Bool(flag) => Ok(f64::from(u8::from(*flag))),
        Value::String(text) => text.parse().map_err(|_| "the string is not a number".to_owned()),
        Value::Number(number) => number.as_f64().ok_or_else(|| "the number is too large".to_owned()),
        other => Err(format!("expected a number, got {}", kind(other))),
    }
}

fn fraction<'t>(value: f64) -> Answer<'t> {
    let number = Number::from_f64(value).ok_or("the result is not a number")?;
    Ok(V::made(Value::Number(number)))
}

fn fold<'t>(args: &[V<'t>], step: fn(i64, i64) -> Option<i64>) -> Answer<'t> {
    let mut total = int(at(args, 0))?;
    for arg in args.iter().skip(1) {
        total = step(total, int(arg.get())?).ok_or("the result does not fit into 64 bits")?;
    }
    made(total)
}

fn divide<'t>(args: &[V<'t>], step: fn(i64, i64) -> Option<i64>) -> Answer<'t> {
    if int(at(args, 1))? == 0 {
        return Err("division by zero".to_owned());
    }
    fold(args, step)
}
