//! The errors of templates, with their positions and a hint.

use serde::Serialize;

/// The reason why a text is not a template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{message} (line {line}, column {column})")]
pub struct ParseError {
    pub message: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// The offset, from 0, in bytes.
    pub offset: usize,
}

/// The reason why a template could not be rendered over a tree. It never contains a value of the tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{kind} (line {line}, column {column})")]
pub struct RenderError {
    pub kind: RenderErrorKind,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// The offset, from 0, in bytes.
    pub offset: usize,
}

/// The kinds of rendering errors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum RenderErrorKind {
    #[error("`{path}` has no value{}", hint(nearest))]
    MissingKey {
        path: String,
        /// The existing key that is most similar to the missing one.
        nearest: Option<String>,
    },
    #[error("`{path}` cannot be read: its parent is {found}, not a map")]
    NotAMap { path: String, found: &'static str },
    #[error("`{path}` is null; set it, or use the template function `default` to give a value in its place")]
    Null { path: String },
    #[error("`{function}`: {message}")]
    Function { function: String, message: String },
    #[error("{0}")]
    Misuse(String),
    #[error("rendering the template takes more than {limit} {unit}; shorten the template, or loop over fewer values")]
    Limit { limit: u64, unit: &'static str },
}

fn hint(nearest: &Option<String>) -> String {
    nearest.as_ref().map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

/// Returns the line and the column, both from 1, of the byte at `offset`.
pub(crate) fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    (line, before.get(start..).unwrap_or_default().chars().count() + 1)
}

impl ParseError {
    pub(crate) fn at(text: &str, offset: usize, message: impl Into<String>) -> Self {
        let (line, column) = position(text, offset);
        Self { message: message.into(), line, column, offset }
    }
}

impl RenderError {
    pub(crate) fn at(text: &str, offset: usize, kind: RenderErrorKind) -> Self {
        let (line, column) = position(text, offset);
        Self { kind, line, column, offset }
    }
}
