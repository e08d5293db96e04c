//! Mistakes in an app config: where, what was expected, and the fix.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::read::files::{Files, Place};
use crate::report::excerpt;

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

/// A mistake while it is being described.
#[derive(Debug)]
#[must_use]
pub(crate) struct Draft {
    severity: Severity,
    place: Place,
    message: String,
    expected: Option<String>,
    help: Option<String>,
    related: Vec<(Place, String)>,
}

impl Draft {
    pub(crate) fn error(place: Place, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, place, message)
    }

    pub(crate) fn warning(place: Place, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, place, message)
    }

    pub(crate) fn new(severity: Severity, place: Place, message: impl Into<String>) -> Self {
        Self { severity, place, message: message.into(), expected: None, help: None, related: Vec::new() }
    }

    /// Says that what `named` (such as "`./a/b.sh`") stands for lies in a folder that is not here at all.
    pub(crate) fn absent(severity: Severity, place: Place, named: &str, folder: &str) -> Self {
        Self::new(severity, place, format!("{named} cannot be read: folder `{folder}` is not here"))
            .help("a sync needs it: fetch or generate the folder, or correct the path")
    }

    pub(crate) fn expected(mut self, text: impl Into<String>) -> Self {
        self.expected = Some(text.into());
        self
    }

    pub(crate) fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }

    /// Adds the word that was probably meant, when there is one.
    pub(crate) fn meant(self, near: Option<&str>) -> Self {
        match near {
            Some(near) => self.help(format!("did you mean `{near}`?")),
            None => self,
        }
    }

    pub(crate) fn related(mut self, place: Place, message: impl Into<String>) -> Self {
        self.related.push((place, message.into()));
        self
    }

    pub(crate) fn finish(self, files: &Files) -> Diagnostic {
        let (file, line, column) = files.position(&self.place);
        let related = self
            .related
            .into_iter()
            .map(|(place, message)| {
                let (file, line, column) = files.position(&place);
                Related { file, line, column, message, span: place.span }
            })
            .collect();
        Diagnostic {
            severity: self.severity,
            file,
            line,
            column,
            message: self.message,
            expected: self.expected,
            help: self.help,
            related,
            span: self.place.span,
        }
    }
}

/// All mistakes of one directory, ordered by file and line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Diagnostics {
    found: Vec<Diagnostic>,
    #[serde(skip)]
    texts: BTreeMap<String, String>,
}

impl Diagnostics {
    pub(crate) fn new(mut found: Vec<Diagnostic>, files: &Files) -> Self {
        found.sort_by(|a, b| {
            (&a.file, a.span.start, a.severity, &a.message).cmp(&(&b.file, b.span.start, b.severity, &b.message))
        });
        found.dedup();
        let named = found.iter().flat_map(|one| {
            std::iter::once(one.file.clone()).chain(one.related.iter().map(|related| related.file.clone()))
        });
        let texts = named.filter_map(|file| Some((file.clone(), files.text_of(&file)?.to_owned()))).collect();
        Self { found, texts }
    }

    /// Returns each mistake.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.found.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Returns whether the config cannot be used.
    pub fn has_errors(&self) -> bool {
        self.count(Severity::Error) > 0
    }

    /// Returns how many mistakes are of `severity`.
    pub fn count(&self, severity: Severity) -> usize {
        self.found.iter().filter(|one| one.severity == severity).count()
    }

    /// Returns the text for a person: each mistake with an excerpt of its file; with colours when `colour`.
    pub fn render(&self, colour: bool) -> String {
        let parts: Vec<String> = self.found.iter().map(|one| excerpt::render(one, &self.texts, colour)).collect();
        parts.join("\n\n")
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostics {}
