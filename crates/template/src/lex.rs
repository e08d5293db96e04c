//! Splits a template into tokens; the text between two actions is one token.

use serde_json::{Number, Value};

use crate::error::ParseError;

/// One token, and the byte offset at which it starts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) at: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    Text(String),
    Open,
    Close,
    /// Space between two tokens of an action. It separates arguments.
    Space,
    Dot,
    /// A field, `.name`; the string is the name without the dot.
    Field(String),
    /// A variable, `$` or `$name`; the string is the name without the `$`.
    Variable(String),
    Word(String),
    Literal(Value),
    Pipe,
    Comma,
    Declare,
    Assign,
    LeftParen,
    RightParen,
}

/// The characters that Go accepts as space inside actions and trims around them.
const SPACES: [char; 4] = [' ', '\t', '\r', '\n'];

/// Splits `text` into tokens.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token>, ParseError> {
    let mut lexer = Lexer { text, at: 0, tokens: Vec::new() };
    let mut trim = false;
    while lexer.at < text.len() {
        trim = lexer.text_and_action(trim)?;
    }
    Ok(lexer.tokens)
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    tokens: Vec<Token>,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn push(&mut self, kind: Kind, length: usize) {
        self.tokens.push(Token { kind, at: self.at });
        self.at += length;
    }

    fn fail<T>(&self, message: impl Into<String>) -> Result<T, ParseError> {
        Err(ParseError::at(self.text, self.at, message))
    }

    /// Reads the text before the next action, and this action. Returns true when the leading space of the text after
    /// the action must be trimmed.
    fn text_and_action(&mut self, trim_start: bool) -> Result<bool, ParseError> {
        let rest = self.rest();
        let Some(open) = rest.find("{{") else {
            self.text(if trim_start { rest.trim_start_matches(SPACES) } else { rest });
            self.at = self.text.len();
            return Ok(false);
        };
        let text = rest.get(..open).unwrap_or_default();
        let action = rest.get(open + 2..).unwrap_or_default();
        let trim_end = action.starts_with('-') && action.get(1..).is_some_and(|t| t.starts_with(SPACES));
        let text = if trim_start { text.trim_start_matches(SPACES) } else { text };
        self.text(if trim_end { text.trim_end_matches(SPACES) } else { text });
        self.at += open;
        if self.comment(if trim_end { 3 } else { 2 })? {
            return Ok(self.text.get(..self.at).is_some_and(|t| t.ends_with("-}}")));
        }
        self.push(Kind::Open, if trim_end { 3 } else { 2 });
        self.action()
    }

    fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.tokens.push(Token { kind: Kind::Text(text.to_owned()), at: self.at });
        }
    }

    /// Skips a comment, `{{/* ... */}}`, whose opening braces have `open` bytes. Returns whether there was a comment.
    fn comment(&mut self, open: usize) -> Result<bool, ParseError> {
        let rest = self.rest();
        let inner = rest.get(open..).unwrap_or_default();
        let spaces = inner.len() - inner.trim_start_matches(SPACES).len();
        if !inner.trim_start_matches(SPACES).starts_with("/*") {
            return Ok(false);
        }
        let start = open + spaces + 2;
        let Some(end) = rest.get(start..).and_then(|t| t.find("*/")) else {
            return self.fail("the comment is never closed; end it with `*/}}`");
        };
        let after = rest.get(start + end + 2..).unwrap_or_default();
        let close = after.trim_start_matches(SPACES);
        let gap = after.len() - close.len();
        let length = if close.starts_with("}}") {
            2
        } else if gap > 0 && close.starts_with("-}}") {
            3
        } else {
            return self.fail("a comment must be alone between `{{` and `}}`; expected `}}` after `*/`");
        };
        self.at += start + end + 2 + gap + length;
        Ok(true)
    }

    /// Reads the tokens of an action. Returns whether the action ends with `-}}`.
    fn action(&mut self) -> Result<bool, ParseError> {
        let open = self.at;
        loop {
            let rest = self.rest();
            let Some(first) = rest.chars().next() else {
                self.at = open;
                return self.fail("the action is never closed; end it with `}}`");
            };
            let trimmed = rest.trim_start_matches(SPACES);
            let spaces = rest.len() - trimmed.len();
            if spaces > 0 {
                if trimmed.starts_with("-}}") {
                    self.at += spaces;
                    self.push(Kind::Close, 3);
                    return Ok(true);
                }
                self.push(Kind::Space, spaces);
                continue;
            }
            if rest.starts_with("}}") {
                self.push(Kind::Close, 2);
                return Ok(false);
            }
            if rest.starts_with("{{") {
                return self.fail("an action inside an action; close the first one with `}}`");
            }
            self.token(first)?;
        }
    }

    fn token(&mut self, first: char) -> Result<(), ParseError> {
        let rest = self.rest();
        match first {
            '|' => self.push(Kind::Pipe, 1),
            ',' => self.push(Kind::Comma, 1),
            '(' => self.push(Kind::LeftParen, 1),
            ')' => self.push(Kind::RightParen, 1),
            '=' => self.push(Kind::Assign, 1),
            ':' if rest.starts_with(":=") => self.push(Kind::Declare, 2),
            '.' => {
                let name = path_name(rest.get(1..).unwrap_or_default());
                if name.is_empty() {
                    self.push(Kind::Dot, 1);
                } else if name.starts_with(|c: char| c.is_ascii_digit()) && !self.chains() {
                    return self.number();
                } else {
                    self.push(Kind::Field(name.to_owned()), name.len() + 1);
                }
            }
            '$' => {
                let name = word(rest.get(1..).unwrap_or_default());
                self.push(Kind::Variable(name.to_owned()), name.len() + 1);
            }
            '"' => return self.quoted(),
            '`' => {
                let Some(end) = rest.get(1..).and_then(|t| t.find('`')) else {
                    return self.fail("the raw string is never closed; end it with a backtick");
                };
                // Go removes carriage returns from raw strings.
                let inner = rest.get(1..=end).unwrap_or_default().replace('\r', "");
                self.push(Kind::Literal(inner.into()), end + 2);
            }
            '\'' => {
                return self
                    .fail("strings in templates are written in double quotes or backticks, not in single quotes");
            }
            c if c.is_ascii_digit() || ((c == '-' || c == '+') && starts_number(rest)) => {
                return self.number();
            }
            c if c.is_alphabetic() || c == '_' => {
                let name = word(rest);
                let kind = match name {
                    "true" => Kind::Literal(Value::Bool(true)),
                    "false" => Kind::Literal(Value::Bool(false)),
                    "nil" => Kind::Literal(Value::Null),
                    _ => Kind::Word(name.to_owned()),
                };
                self.push(kind, name.len());
            }
            c => return self.fail(format!("unexpected character `{c}`")),
        }
        Ok(())
    }

    /// Returns whether a dot at this place continues the operand before it.
    fn chains(&self) -> bool {
        matches!(
            self.tokens.last().map(|token| &token.kind),
            Some(Kind::Field(_) | Kind::Variable(_) | Kind::Word(_) | Kind::RightParen)
        )
    }

    fn number(&mut self) -> Result<(), ParseError> {
        let rest = self.rest();
        let mut before = ' ';
        let end = rest.find(|c: char| {
            let exponent = "eE".contains(before) && !rest.starts_with("0x");
            let sign = "+-".contains(c) && (before == ' ' || exponent);
            before = c;
            !(c.is_ascii_alphanumeric() || c == '.' || c == '_' || sign)
        });
        let text = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
        match parse_number(text) {
            Some(number) => {
                self.push(Kind::Literal(Value::Number(number)), text.len());
                Ok(())
            }
            None => self.fail(format!("`{text}` is not a number")),
        }
    }

    fn quoted(&mut self) -> Result<(), ParseError> {
        let rest = self.rest();
        let mut escaped = false;
        let end = rest.char_indices().skip(1).find(|(_, c)| {
            let ends = *c == '\n' || (*c == '"' && !escaped);
            escaped = *c == '\\' && !escaped;
            ends
        });
        let Some((end, '"')) = end else {
            return self.fail("the string is never closed; end it with `\"`");
        };
        let Some(inner) = unescape(rest.get(1..end).unwrap_or_default()) else {
            return self.fail("the string has an unknown escape; use \\n, \\t, \\\\, \\\", \\xNN or \\uNNNN");
        };
        self.push(Kind::Literal(Value::String(inner)), end + 1);
        Ok(())
    }
}

/// Returns the letters, digits and underscores at the start of `text`.
fn word(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

/// Returns the field name at the start of `text`: words that may be joined by single dashes.
fn path_name(text: &str) -> &str {
    let mut end = word(text).len();
    while end > 0 && text.get(end..).is_some_and(|rest| rest.starts_with('-')) {
        let next = word(text.get(end + 1..).unwrap_or_default()).len();
        if next == 0 {
            break;
        }
        end += 1 + next;
    }
    text.get(..end).unwrap_or_default()
}

fn starts_number(text: &str) -> bool {
    text.get(1..).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn parse_number(text: &str) -> Option<Number> {
    if let Some(whole) = whole_literal(text) {
        return Some(Number::from(whole));
    }
    if !text.contains(['.', 'e', 'E']) || text.contains(|c: char| !(c.is_ascii_digit() || ".eE+-".contains(c))) {
        return None;
    }
    text.parse::<f64>().ok().filter(|n| n.is_finite()).and_then(Number::from_f64)
}

/// Parses a whole number as Go writes it: decimal, `0x` hexadecimal, `0o` or `0` octal, `0b` binary, with underscores.
pub(crate) fn whole_literal(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix(['-', '+']) {
        Some(digits) => (text.get(..1).filter(|sign| *sign == "-").unwrap_or_default(), digits),
        None => ("", text),
    };
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, lower.get(2..)?),
        [b'0', b'o', ..] => (8, lower.get(2..)?),
        [b'0', b'b', ..] => (2, lower.get(2..)?),
        [b'0', _, ..] => (8, lower.get(1..)?),
        _ => (10, lower.as_str()),
    };
    let plain = digits.replace('_', "");
    if plain.starts_with(['+', '-']) || digits.ends_with('_') || digits.contains("__") {
        return None;
    }
    i64::from_str_radix(&format!("{sign}{plain}"), radix).ok()
}

/// Decodes the inside of a quoted string. Returns `None` for an unknown escape, and when the decoded bytes are not
/// UTF-8.
fn unescape(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            push(&mut out, c);
            continue;
        }
        match chars.next()? {
            'n' => out.push(b'\n'),
            't' => out.push(b'\t'),
            'r' => out.push(b'\r'),
            'a' => out.push(7),
            'b' => out.push(8),
            'f' => out.push(12),
            'v' => out.push(11),
            'x' => out.push(u8::try_from(code(&mut chars, 2, 16)?).ok()?),
            'u' => push(&mut out, char::from_u32(code(&mut chars, 4, 16)?)?),
            'U' => push(&mut out, char::from_u32(code(&mut chars, 8, 16)?)?),
            plain @ ('\\' | '"') => push(&mut out, plain),
            first @ '0'..='3' => {
                let rest = code(&mut chars, 2, 8)?;
                out.push(u8::try_from(first.to_digit(8)? * 64 + rest).ok()?);
            }
            _ => return None,
        }
    }
    String::from_utf8(out).ok()
}

fn push(out: &mut Vec<u8>, c: char) {
    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
}

fn code(chars: &mut std::str::Chars<'_>, digits: usize, radix: u32) -> Option<u32> {
    (0..digits).try_fold(0u32, |value, _| value.checked_mul(radix)?.checked_add(chars.next()?.to_digit(radix)?))
}
