//! Finds, reads, parses and packs the files of an app config.

pub(crate) mod addresses;
pub(crate) mod archive;
pub(crate) mod document;
pub(crate) mod files;
pub(crate) mod json;
pub(crate) mod paths;
pub(crate) mod shape;
pub(crate) mod tree;
