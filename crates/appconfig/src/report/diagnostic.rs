//! Mistakes in an app config: where, what was expected, and the fix.

use serde::Serialize;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The config cannot be used.
    Error,
    /// The config can be used; something in it has no effect or is probably meant otherwise.
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
    /// What belongs at the place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// The way out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// Other places that play a part.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<Related>,
    /// The marked bytes of the file.
    #[serde(skip)]
    pub(crate) span: std::ops::Range<usize>,
}

/// Another place that plays a part in a mistake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Related {
    pub file: String,
    pub line: usize,
    pub column: usize,
    pub message: String,
    #[serde(skip)]
    pub(crate) span: std::ops::Range<usize>,
}
