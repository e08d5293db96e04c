//! Local sources that were packed, the resources that they declare, and where their Terraform providers come from.

use std::collections::BTreeSet;

use freehold_protocol::terraform::ProviderSource;

use crate::read::document::Node;
use crate::read::files::Place;

/// The name of the sandbox in messages.
pub(crate) const SANDBOX: &str = "the sandbox";

/// A directory or file of the app that is the source of one part.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    /// The part, such as ``component `web` ``.
    pub(crate) owner: String,
    /// The place at which the config names the source.
    pub(crate) place: Place,
    /// The text with which the config names the source.
    pub(crate) word: String,
    /// The path of the source, relative to the app's directory.
    pub(crate) path: String,
    /// The paths of the packed files, relative to `path`. For a single file, its name in the archive.
    pub(crate) paths: BTreeSet<String>,
}

/// A resource that the source of a component declares.
#[derive(Debug, Clone)]
pub(crate) struct Made {
    /// The name of the component.
    pub(crate) component: String,
    /// The type of the resource, as Terraform or CloudFormation names it.
    pub(crate) kind: String,
    pub(crate) place: Place,
}

/// Returns where the part in `root` gets its Terraform providers from.
pub(crate) fn provider_source(root: &Node) -> ProviderSource {
    if root.text("providers") == Some("registry") { ProviderSource::Registry } else { ProviderSource::Packed }
}
