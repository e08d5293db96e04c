//! A directory while it is read.

use crate::kinds::Kind;
use crate::read::addresses::{Addresses, Fetched};
use crate::read::files::Files;
use crate::report::diagnostic::Severity;
use crate::report::draft::Draft;
use crate::state::checked::Checked;

/// What a directory is read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To make an app version of it: what cannot be deployed is an error.
    Sync,
    /// To say what is wrong with it.
    Check,
}

impl Purpose {
    /// Returns how bad something is that the format has and that cannot be done yet.
    pub(crate) const fn unsupported(self) -> Severity {
        match self {
            Self::Sync => Severity::Error,
            Self::Check => Severity::Warning,
        }
    }
}

/// A directory while it is read.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) files: Files,
    pub(crate) checked: Vec<Checked>,
    /// Kinds of the files that are not TOML.
    pub(crate) broken: Vec<Kind>,
    pub(crate) drafts: Vec<Draft>,
    pub(crate) purpose: Purpose,
    /// Texts behind addresses, fetched before.
    pub(crate) fetched: Fetched,
    pub(crate) addresses: Addresses,
}

impl App {
    /// Returns the files of `kind`.
    pub(crate) fn of(&self, kind: Kind) -> impl Iterator<Item = &Checked> {
        self.checked.iter().filter(move |checked| checked.kind == kind)
    }
}
