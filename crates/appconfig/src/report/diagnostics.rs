//! All mistakes of one app config, as a list and as text.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use crate::read::files::Files;
use crate::report::diagnostic::{Diagnostic, Severity};
use crate::report::excerpt;

/// All mistakes of one app config, ordered by file and line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Diagnostics {
    found: Vec<Diagnostic>,
    #[serde(skip)]
    texts: BTreeMap<String, String>,
    #[serde(skip)]
    not_looked_at: Vec<Elsewhere>,
}

/// A part of an app whose source is not in the app's directory. The content of this source was not checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Elsewhere {
    /// The name of the part, such as ``component `web` ``.
    pub part: String,
    /// The address of the source's repository.
    pub source: String,
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
        Self { found, texts, not_looked_at: Vec::new() }
    }

    pub(crate) fn with_elsewhere(mut self, parts: BTreeSet<(String, String)>) -> Self {
        self.not_looked_at = parts.into_iter().map(|(part, source)| Elsewhere { part, source }).collect();
        self
    }

    /// Returns the parts whose sources were not checked, sorted.
    pub fn not_looked_at(&self) -> &[Elsewhere] {
        &self.not_looked_at
    }

    /// Returns the mistakes that `keep` accepts.
    #[must_use]
    pub fn filter(mut self, keep: impl FnMut(&Diagnostic) -> bool) -> Self {
        self.found.retain(keep);
        self
    }

    /// Returns the mistakes one by one.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.found.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Returns whether there is an error, so that the config cannot be used.
    pub fn has_errors(&self) -> bool {
        self.count(Severity::Error) > 0
    }

    /// Returns the number of mistakes of `severity`.
    pub fn count(&self, severity: Severity) -> usize {
        self.found.iter().filter(|one| one.severity == severity).count()
    }

    /// Returns the mistakes as text, each with an excerpt of its file. The text has colours if `colour` is true.
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
