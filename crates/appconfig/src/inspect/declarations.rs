//! The declarations in a source that other parts of the app rely on.

use std::collections::BTreeMap;

use crate::read::files::Place;

/// The declarations of one source.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The types of the resources that the source always creates, with their places.
    pub(super) types: Vec<(String, Place)>,
    pub(super) outputs: Outputs,
}

/// The outputs that a source declares.
#[derive(Debug, Default)]
pub(super) struct Outputs {
    /// The outputs, and whether each of them is sensitive.
    pub(super) names: BTreeMap<String, bool>,
    /// Whether all outputs are known. A JSON file, a macro or a file with a mistake may declare more.
    pub(super) whole: bool,
    pub(super) form: Form,
}

/// The language in which outputs are declared.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Form {
    #[default]
    Terraform,
    CloudFormation,
}
