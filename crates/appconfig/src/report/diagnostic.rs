//! One mistake in an app config: its place, what was expected, and the fix.

use serde::Serialize;

/// How serious a mistake is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The config cannot be used.
    Error,
    /// The config can be used, but a part of it has no effect or probably a wrong meaning.
    Warning,
}

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    pub severity: Severity,
    /// Relative to the app's directory, with forward slashes.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    pub message: String,
    /// The value that was expected there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// How to correct it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// Other places that belong to the mistake.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<Related>,
    /// The marked bytes of the file.
    #[serde(skip)]
    pub(crate) span: std::ops::Range<usize>,
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
