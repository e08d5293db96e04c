//! The state that the builders of all component types share.

use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::ComponentName;

use crate::build::sources::Sources;
use crate::check::links::Index;
use crate::read::files::Files;
use crate::state::file::Checked;

/// Builds the components of an app.
pub(super) struct Builder<'a> {
    pub(super) files: &'a Files,
    pub(super) index: &'a Index,
    pub(super) needs: BTreeMap<&'a str, BTreeSet<ComponentName>>,
    pub(super) sources: &'a mut Sources,
}

/// The component that is being built.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) checked: &'a Checked,
    pub(super) name: &'a ComponentName,
}

impl Subject<'_> {
    /// Returns the name of the component in messages and in [`crate::LocalSource`].
    pub(super) fn owner(self) -> String {
        format!("component `{}`", self.name)
    }
}
