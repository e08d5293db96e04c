//! What the files of each kind of component share while components are built.

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::ComponentName;

use crate::build::sources::Sources;
use crate::check::links::Index;
use crate::read::files::Files;
use crate::state::file::Checked;

/// The components of an app while they are built.
pub(super) struct Builder<'a> {
    pub(super) files: &'a Files,
    pub(super) index: &'a Index,
    pub(super) needs: BTreeMap<&'a str, BTreeSet<ComponentName>>,
    pub(super) sources: &'a mut Sources,
}

/// One component while it is built.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) checked: &'a Checked,
    pub(super) name: &'a ComponentName,
}

impl Subject<'_> {
    /// Returns how messages and sources name the component.
    pub(super) fn owner(self) -> String {
        format!("component `{}`", self.name)
    }
}
