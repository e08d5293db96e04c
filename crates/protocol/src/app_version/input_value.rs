//! Answers to inputs. Converts a text from a person to the input's type, or refuses it.

use serde_json::{Number, Value};

use super::inputs::is_empty;
use super::{Input, InputKind};
use crate::digest::canonical;

/// A value is not a valid answer to an input. The message never contains the value, because it may be a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// The input requires an answer, and the value is missing or empty.
    #[error("input `{input}` is required")]
    Missing { input: String },
    /// The value does not have the input's type.
    #[error("input `{input}` must be {expected}, found {found}")]
    Wrong { input: String, expected: &'static str, found: String },
}

impl Input {
    /// Returns `given` converted to the input's type. Forms, commands and stack parameters contain only texts, so a
    /// text is parsed as the input's type:
    ///
    /// | type | texts that are accepted |
    /// |---|---|
    /// | string, yaml, hcl | every text, without a change |
    /// | number | `3`, `-0.5`, `1e3`; whole numbers must fit into 64 bits |
    /// | bool | `true` and `false`, in any case |
    /// | list | JSON such as `["a", 1]`, or words separated by commas: `a, b` |
    /// | json | JSON |
    ///
    /// An optional input may have no answer or a blank text. The value is then an empty list or an empty text, and
    /// templates print nothing for it.
    ///
    /// # Errors
    /// An [`InputError`] that names the input and the expected type.
    pub fn accept(&self, given: &Value) -> Result<Value, InputError> {
        if self.is_unanswered(given) {
            if self.required {
                return Err(InputError::Missing { input: self.name.clone() });
            }
            return Ok(self.nothing());
        }
        let accepted = match (self.kind, given) {
            (InputKind::String | InputKind::Yaml | InputKind::Hcl, Value::String(_))
            | (InputKind::Number, Value::Number(_))
            | (InputKind::Bool, Value::Bool(_))
            | (InputKind::List, Value::Array(_)) => Some(given.clone()),
            (InputKind::Number, Value::String(text)) => number(text.trim()).map(Value::Number),
            (InputKind::Bool, Value::String(text)) => flag(text.trim()).map(Value::Bool),
            (InputKind::List, Value::String(text)) => list(text.trim()).map(Value::Array),
            (InputKind::Json, Value::String(text)) => serde_json::from_str(text).ok(),
            (InputKind::Json, _) => Some(given.clone()),
            (
                InputKind::String
                | InputKind::Yaml
                | InputKind::Hcl
                | InputKind::Number
                | InputKind::Bool
                | InputKind::List,
                _,
            ) => None,
        };
        accepted.filter(|value| canonical::check(value).is_ok()).ok_or_else(|| InputError::Wrong {
            input: self.name.clone(),
            expected: self.kind.expected(),
            found: shape(given),
        })
    }

    /// Returns the value of an optional input without an answer and without a default.
    pub fn nothing(&self) -> Value {
        match self.kind {
            InputKind::List => Value::Array(Vec::new()),
            InputKind::String
            | InputKind::Number
            | InputKind::Json
            | InputKind::Bool
            | InputKind::Yaml
            | InputKind::Hcl => Value::String(String::new()),
        }
    }

    /// Returns whether `given` is empty and so not an answer. For text inputs, white space is an answer.
    fn is_unanswered(&self, given: &Value) -> bool {
        match self.kind {
            InputKind::String | InputKind::Yaml | InputKind::Hcl => is_empty(given),
            InputKind::Number | InputKind::List | InputKind::Json | InputKind::Bool => {
                given.is_null() || given.as_str().is_some_and(|text| text.trim().is_empty())
            }
        }
    }
}

impl InputKind {
    /// Returns the expected value, as the end of a sentence such as "must be a number".
    pub const fn expected(self) -> &'static str {
        match self {
            Self::String => "a text",
            Self::Number => "a number",
            Self::List => "a list, such as `[\"a\", \"b\"]` or `a, b`",
            Self::Json => "JSON",
            Self::Bool => "`true` or `false`",
            Self::Yaml => "a text of YAML",
            Self::Hcl => "a text of HCL",
        }
    }
}

fn number(text: &str) -> Option<Number> {
    if let Ok(whole) = text.parse::<i64>() {
        return Some(whole.into());
    }
    if let Ok(whole) = text.parse::<u64>() {
        return Some(whole.into());
    }
    // A whole number that does not fit into 64 bits is refused, because a floating-point number would lose digits.
    let whole = text.trim_start_matches(['+', '-']).bytes().all(|byte| byte.is_ascii_digit());
    if whole { None } else { Number::from_f64(text.parse().ok()?) }
}

fn flag(text: &str) -> Option<bool> {
    [true, false].into_iter().find(|flag| text.eq_ignore_ascii_case(if *flag { "true" } else { "false" }))
}

fn list(text: &str) -> Option<Vec<Value>> {
    if text.starts_with('[') {
        return serde_json::from_str(text).ok();
    }
    Some(text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(Value::from).collect())
}

fn shape(value: &Value) -> String {
    match value {
        Value::Null => "nothing".into(),
        Value::Bool(_) => "a bool".into(),
        Value::Number(_) if canonical::check(value).is_err() => "a number with more digits than can be stored".into(),
        Value::Number(_) => "a number".into(),
        Value::String(text) => match text.chars().count() {
            1 => "a text of 1 character".into(),
            count => format!("a text of {count} characters"),
        },
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "a map".into(),
    }
}
