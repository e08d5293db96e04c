//! The part of Go's `printf` that JSON values need: `%v %s %q %t %T %d %x %X %o %b %c %f %e %g`, with the flags `-`,
//! `+` and `0`, a width and a precision.

use serde_json::Value;

use crate::format::{print, quoted};
use crate::value::{kind, type_name, whole};

/// The largest width and precision of `printf`, in characters.
const MAX_WIDTH: usize = 4096;

/// The flags, the width and the precision of one `%` directive.
#[derive(Default)]
struct Directive {
    minus: bool,
    plus: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
}

/// Returns `format` with the arguments in place of its directives.
///
/// # Errors
/// The reason, when the directives do not match the arguments, or the result is longer than `max_bytes`.
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
        while let Some(flag) = chars.next_if(|c| "-+0".contains(*c)) {
            match flag {
                '-' => directive.minus = true,
                '+' => directive.plus = true,
                _ => directive.zero = true,
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
        return Err("there are more arguments than `%` directives".to_owned());
    }
    Ok(out)
}

fn digits(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<Option<usize>, String> {
    let mut value = None;
    while let Some(digit) = chars.next_if(char::is_ascii_digit).and_then(|c| c.to_digit(10)) {
        let next = value.unwrap_or(0usize) * 10 + digit as usize;
        if next > MAX_WIDTH {
            return Err(format!("a width or a precision is above {MAX_WIDTH}"));
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
        ('v', Value::Number(number)) if directive.precision.is_some() && number.is_f64() => {
            general(number.as_f64().unwrap_or_default(), directive.precision)
        }
        ('v', _) => print(value),
        ('s', Value::String(text)) => cut(text.clone()),
        ('s', _) => cut(print(value)),
        ('q', Value::String(text)) => quoted(&cut(text.clone())),
        ('q', _) => quoted(&print(value)),
        ('t', Value::Bool(_)) => print(value),
        ('T', _) => type_name(value).to_owned(),
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
            let digits = match (verb, directive.precision) {
                ('g', precision) => general(float, precision),
                ('e', precision) => exponent(&format!("{float:.*e}", precision.unwrap_or(6))),
                (_, precision) => format!("{float:.*}", precision.unwrap_or(6)),
            };
            format!("{sign}{digits}")
        }
        ('t' | 'd' | 'x' | 'X' | 'o' | 'b' | 'c' | 'f' | 'F' | 'e' | 'g', _) => return wrong(),
        _ => return Err(format!("`%{verb}` is not a known directive")),
    })
}

/// Formats a number as Go's `%g` does: with the fewest digits, and with an exponent when the exponent is below -4 or
/// not below the precision, which is 6 by default.
fn general(float: f64, precision: Option<usize>) -> String {
    let scientific = match precision {
        Some(precision) => format!("{float:.*e}", precision.max(1) - 1),
        None => format!("{float:e}"),
    };
    let power: i32 = scientific.split_once('e').and_then(|(_, power)| power.parse().ok()).unwrap_or_default();
    let most = i32::try_from(precision.map_or(6, |precision| precision.max(1))).unwrap_or(i32::MAX);
    if power < -4 || power >= most {
        let (digits, power) = scientific.split_once('e').unwrap_or((&scientific, "0"));
        return exponent(&format!("{}e{power}", without_zeros(digits)));
    }
    match usize::try_from(most - 1 - power) {
        Ok(decimals) if precision.is_some() => without_zeros(&format!("{float:.decimals$}")).to_owned(),
        Ok(_) | Err(_) => float.to_string(),
    }
}

fn without_zeros(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

/// Rewrites an exponent with a sign and at least two digits, as Go does.
fn exponent(text: &str) -> String {
    let (digits, power) = text.split_once('e').unwrap_or((text, "0"));
    match power.strip_prefix('-') {
        Some(power) => format!("{digits}e-{power:0>2}"),
        None => format!("{digits}e+{power:0>2}"),
    }
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
