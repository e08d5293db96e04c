//! Local sources that were packed, and the resources that they declare.

use std::collections::BTreeSet;

use crate::read::files::Place;

/// A directory or file of the app that is the source of one part.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    /// The part, such as ``component `web` ``.
    pub(crate) owner: String,
    /// Where the config names the source.
    pub(crate) place: Place,
    /// How the config names the source.
    pub(crate) word: String,
    /// Relative to the app's directory.
    pub(crate) path: String,
    /// The paths of the packed files, from `path`; for a single file, its name in the archive.
    pub(crate) paths: BTreeSet<String>,
}

/// A resource that the source of a component declares.
#[derive(Debug, Clone)]
pub(crate) struct Made {
    /// The name of the component.
    pub(crate) component: String,
    /// The type, as Terraform or CloudFormation names it.
    pub(crate) kind: String,
    pub(crate) place: Place,
}
