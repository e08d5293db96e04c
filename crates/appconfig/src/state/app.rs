//! The state of an app while its directory is read.

use std::collections::{BTreeMap, BTreeSet};

use crate::kinds::Kind;
use crate::read::addresses::{Addresses, Fetched};
use crate::read::files::Files;
use crate::report::diagnostic::Severity;
use crate::report::draft::Draft;
use crate::state::file::Checked;

/// The purpose for which a directory is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The directory becomes an app version. Features that Freehold cannot deploy are errors.
    Sync,
    /// The config is only searched for mistakes. Features that Freehold cannot deploy are warnings.
    Check,
}

impl Purpose {
    /// Returns the severity with which features that are not supported yet are reported.
    pub(crate) const fn unsupported(self) -> Severity {
        match self {
            Self::Sync => Severity::Error,
            Self::Check => Severity::Warning,
        }
    }
}

/// The state of an app while its directory is read.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) files: Files,
    pub(crate) checked: Vec<Checked>,
    /// The kinds of the files that could not be parsed.
    pub(crate) broken: Vec<Kind>,
    pub(crate) drafts: Vec<Draft>,
    /// The files that a config names and that cannot be read, by path, each with the number of the draft about it.
    pub(crate) unreadable: BTreeMap<String, usize>,
    pub(crate) purpose: Purpose,
    /// The texts that the caller fetched, by the address that the config names.
    pub(crate) fetched: Fetched,
    pub(crate) addresses: Addresses,
    /// The parts whose sources are not in the directory, each with the address of its source.
    pub(crate) elsewhere: BTreeSet<(String, String)>,
}

impl App {
    /// Returns the files of `kind`.
    pub(crate) fn of(&self, kind: Kind) -> impl Iterator<Item = &Checked> {
        self.checked.iter().filter(move |checked| checked.kind == kind)
    }
}
