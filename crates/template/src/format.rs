//! How values become text: Go's `%v`, and `printf`.

use serde_json::{Number, Value};

use crate::value::{entries, kind};

/// The widest that `printf` pads, in characters.
const MAX_WIDTH: usize = 4096;

/// Returns `value` as `{{ value }}` prints it.
pub(crate) fn print(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("<nil>"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&number_text(number)),
        Value::String(text) => out.push_str(text),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(' ');
                }
                write(item, out);
            }
            out.push(']');
        }
        Value::Object(map) => {
            out.push_str("map[");
            for (at, (key, item)) in entries(map).into_iter().enumerate() {
                if at > 0 {
                    out.push(' ');
                }
                out.push_str(key);
                out.push(':');
                write(item, out);
            }
            out.push(']');
        }
    }
}

/// Returns a number without an exponent and without a fraction that is zero.
fn number_text(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 1e15 => format!("{float:.0}"),
        _ => number.to_string(),
    }
}

/// One `%` directive's flags.
#[derive(Default)]
struct Directive {
    minus: bool,
    plus: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
}

/// Returns `format` with its directives filled from `arguments`.
///
/// # Errors
/// When directives and arguments do not fit, or the result is longer than `max_bytes`.
pub(crate) fn printf(format: &str, arguments: &[&Value], max_bytes: usize) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = arguments.iter();
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut directive = Directive::default();
        while let Some(flag) = chars.next_if(|c| "-+0# ".contains(*c)) {
            match flag {
                '-' => directive.minus = true,
                '+' => directive.plus = true,
                '0' => directive.zero = true,
                _ => {}
            }
        }
        directive.width = digits(&mut chars)?.unwrap_or(0);
        if chars.next_if_eq(&'.').is_some() {
            directive.precision = Some(digits(&mut chars)?.unwrap_or(0));
        }
        let Some(verb) = chars.next() else {
            return Err("the format ends inside a `%` directive".to_owned());
        };
        if verb == '%' {
            out.push('%');
            continue;
        }
        let Some(argument) = rest.next() else {
            return Err(format!("no argument is left for `%{verb}`"));
        };
        pad(&mut out, &directive, verb_text(verb, &directive, argument)?, argument);
        if out.len() > max_bytes {
            return Err(format!("the result is larger than {max_bytes} bytes"));
        }
    }
    if rest.next().is_some() {
        return Err("more arguments than `%` directives".to_owned());
    }
    Ok(out)
}

fn digits(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<Option<usize>, String> {
    let mut value = None;
    while let Some(digit) = chars.next_if(char::is_ascii_digit).and_then(|c| c.to_digit(10)) {
        let next = value.unwrap_or(0usize) * 10 + digit as usize;
        if next > MAX_WIDTH {
            return Err(format!("a width or precision above {MAX_WIDTH}"));
        }
        value = Some(next);
    }
    Ok(value)
}

fn verb_text(verb: char, directive: &Directive, value: &Value) -> Result<String, String> {
    let wrong = || Err(format!("`%{verb}` does not print {}", kind(value)));
    let cut = |text: String| match directive.precision {
        Some(length) => text.chars().take(length).collect(),
        None => text,
    };
    Ok(match (verb, value) {
        ('v', _) => print(value),
        ('s', Value::String(text)) => cut(text.clone()),
        ('s', _) => cut(print(value)),
        ('q', Value::String(_)) => value.to_string(),
        ('q', _) => Value::String(print(value)).to_string(),
        ('t', Value::Bool(_)) => print(value),
        ('T', _) => kind(value).trim_start_matches("a ").to_owned(),
        ('d' | 'x' | 'X' | 'o' | 'b' | 'c', Value::Number(number)) => {
            let Some(whole) = whole(number) else {
                return wrong();
            };
            match verb {
                'd' if directive.plus && whole >= 0 => format!("+{whole}"),
                'd' => whole.to_string(),
                'c' => match u32::try_from(whole).ok().and_then(char::from_u32) {
                    Some(c) => c.to_string(),
                    None => return wrong(),
                },
                _ => radix(verb, whole),
            }
        }
        ('x' | 'X', Value::String(text)) => {
            text.bytes().map(|b| if verb == 'x' { format!("{b:02x}") } else { format!("{b:02X}") }).collect()
        }
        ('f' | 'F' | 'e' | 'g', Value::Number(number)) => {
            let Some(float) = number.as_f64() else {
                return wrong();
            };
            let sign = if directive.plus && float >= 0.0 { "+" } else { "" };
            match (verb, directive.precision) {
                ('g', _) => format!("{sign}{float}"),
                ('e', precision) => format!("{sign}{float:.*e}", precision.unwrap_or(6)),
                (_, precision) => format!("{sign}{float:.*}", precision.unwrap_or(6)),
            }
        }
        ('t' | 'd' | 'x' | 'X' | 'o' | 'b' | 'c' | 'f' | 'F' | 'e' | 'g', _) => return wrong(),
        _ => return Err(format!("`%{verb}` is not a known directive")),
    })
}

fn radix(verb: char, whole: i64) -> String {
    let sign = if whole < 0 { "-" } else { "" };
    let size = whole.unsigned_abs();
    match verb {
        'x' => format!("{sign}{size:x}"),
        'X' => format!("{sign}{size:X}"),
        'o' => format!("{sign}{size:o}"),
        _ => format!("{sign}{size:b}"),
    }
}

/// Returns `number` when it has no fraction.
pub(crate) fn whole(number: &Number) -> Option<i64> {
    number.as_i64().or_else(|| {
        let float = number.as_f64()?;
        #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
        (float.fract() == 0.0 && float.abs() < 9e15).then_some(float as i64)
    })
}

fn pad(out: &mut String, directive: &Directive, text: String, value: &Value) {
    let missing = directive.width.saturating_sub(text.chars().count());
    if directive.minus {
        out.push_str(&text);
        out.extend(std::iter::repeat_n(' ', missing));
    } else if directive.zero && value.is_number() {
        let (sign, digits) = match text.strip_prefix(['-', '+']) {
            Some(digits) => (text.get(..1).unwrap_or_default(), digits),
            None => ("", text.as_str()),
        };
        out.push_str(sign);
        out.extend(std::iter::repeat_n('0', missing));
        out.push_str(digits);
    } else {
        out.extend(std::iter::repeat_n(' ', missing));
        out.push_str(&text);
    }
}
