//! The arguments of one build, as the program that builds sees them.

use std::collections::BTreeMap;
use std::path::Path;

/// The arguments of one build. Its paths are absolute, and inside the box where there is one.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub(super) context: &'a Path,
    pub(super) dockerfile: &'a Path,
    pub(super) workspace: &'a Path,
    pub(super) args: &'a BTreeMap<String, String>,
    pub(super) target: &'a str,
    /// The hosts that the steps may reach.
    pub(super) hosts: &'a [String],
    /// The words of the Dockerfile that name an image, each with the image's directory relative to the workspace.
    pub(super) bases: &'a [(String, String)],
}
