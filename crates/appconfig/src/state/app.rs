//! An app while its directory is read.

use std::collections::BTreeSet;

use crate::kinds::Kind;
use crate::read::addresses::{Addresses, Fetched};
use crate::read::files::Files;
use crate::report::diagnostic::Severity;
use crate::report::draft::Draft;
use crate::state::file::Checked;

/// Why a directory is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To make an app version: whatever Freehold cannot deploy is an error.
    Sync,
    /// To find mistakes in the config.
    Check,
}

impl Purpose {
    /// Returns how serious it is when a config uses something that is not supported yet.
    pub(crate) const fn unsupported(self) -> Severity {
        match self {
            Self::Sync => Severity::Error,
            Self::Check => Severity::Warning,
        }
    }
}

/// An app while its directory is read.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) files: Files,
    pub(crate) checked: Vec<Checked>,
    /// Kinds of the files that are not TOML.
    pub(crate) broken: Vec<Kind>,
    pub(crate) drafts: Vec<Draft>,
    pub(crate) purpose: Purpose,
    /// Texts at the addresses that the config names; the caller fetched them.
    pub(crate) fetched: Fetched,
    pub(crate) addresses: Addresses,
    /// The parts whose sources are not in the directory, each with where its source is.
    pub(crate) elsewhere: BTreeSet<(String, String)>,
}

impl App {
    /// Returns the files of `kind`.
    pub(crate) fn of(&self, kind: Kind) -> impl Iterator<Item = &Checked> {
        self.checked.iter().filter(move |checked| checked.kind == kind)
    }
}
