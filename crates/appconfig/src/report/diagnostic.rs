//! A mistake in an app config: its place, the expected value, and the fix.

use serde::Serialize;

/// The severity of a mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The config cannot be used.
    Error,
    /// The config can be used, but a part of it has no effect, or probably does not mean what the author wanted.
    Warning,
}

/// A mistake in an app config.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    pub severity: Severity,
    /// The path of the file relative to the app's directory, with forward slashes.
    pub file: String,
    /// The line of the mistake, from 1.
    pub line: usize,
    /// The column of the mistake in characters, from 1.
    pub column: usize,
    pub message: String,
    /// A description of the expected value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// A sentence about how to correct the mistake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// Other places that belong to the mistake.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<Related>,
    /// The marked bytes of the file.
    #[serde(skip)]
    pub(crate) span: std::ops::Range<usize>,
    /// Whether the line may have a secret value and is not shown.
    #[serde(skip)]
    pub(crate) is_secret: bool,
}

/// Another place that belongs to a mistake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Related {
    pub file: String,
    pub line: usize,
    pub column: usize,
    pub message: String,
    #[serde(skip)]
    pub(crate) span: std::ops::Range<usize>,
}
