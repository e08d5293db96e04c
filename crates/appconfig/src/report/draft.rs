//! A mistake that is still being described. It has a place in a file, but no line and column yet.

use crate::read::files::{Files, Place};
use crate::report::diagnostic::{Diagnostic, Related, Severity};

/// A mistake that is still being described.
#[derive(Debug)]
#[must_use]
pub(crate) struct Draft {
    severity: Severity,
    place: Place,
    message: String,
    expected: Option<String>,
    help: Option<String>,
    related: Vec<(Place, String)>,
    is_secret: bool,
}

impl Draft {
    pub(crate) fn error(place: Place, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, place, message)
    }

    pub(crate) fn warning(place: Place, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, place, message)
    }

    pub(crate) fn new(severity: Severity, place: Place, message: impl Into<String>) -> Self {
        Self {
            severity,
            place,
            message: message.into(),
            expected: None,
            help: None,
            related: Vec::new(),
            is_secret: false,
        }
    }

    /// Returns the mistake for a file in a directory that does not exist. `named` is how the message names the file,
    /// such as "`./a/b.sh`".
    pub(crate) fn absent(severity: Severity, place: Place, named: &str, directory: &str) -> Self {
        Self::new(severity, place, format!("{named} cannot be read: directory `{directory}` does not exist"))
            .help("a sync needs this directory: fetch or generate it, or correct the path")
    }

    pub(crate) fn expected(mut self, text: impl Into<String>) -> Self {
        self.expected = Some(text.into());
        self
    }

    pub(crate) fn help(mut self, text: impl Into<String>) -> Self {
        self.help = Some(text.into());
        self
    }

    /// Reports the place without the text of its line, because the line may have a secret value.
    pub(crate) fn secret(mut self) -> Self {
        self.is_secret = true;
        self
    }

    /// Does the same as [`Draft::secret`] if `is_secret` is true.
    pub(crate) fn secret_if(self, is_secret: bool) -> Self {
        if is_secret { self.secret() } else { self }
    }

    /// Adds the help "did you mean" with the name `near`, if there is one.
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

    /// Adds a place to a mistake that was reported before.
    pub(crate) fn also(&mut self, place: Place, message: impl Into<String>) {
        self.related.push((place, message.into()));
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
            is_secret: self.is_secret,
        }
    }
}
