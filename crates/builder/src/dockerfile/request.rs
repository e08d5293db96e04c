//! The arguments of one build, with paths as Buildah or `buildctl` sees them.

use std::collections::BTreeMap;
use std::path::Path;

/// The arguments of one build. The paths are absolute. With a box, they are the paths inside the box.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub(super) context: &'a Path,
    pub(super) dockerfile: &'a Path,
    pub(super) workspace: &'a Path,
    pub(super) args: &'a BTreeMap<String, String>,
    pub(super) target: &'a str,
    /// The hosts that the steps may reach.
    pub(super) hosts: &'a [String],
    /// Pairs: the name of an image in the Dockerfile, and the directory of its layout, relative to the workspace.
    pub(super) bases: &'a [(String, String)],
}
