//! Finds, reads, parses and packs the files of an app config.

pub(crate) mod addresses;
pub(crate) mod archive;
pub(crate) mod disk;
pub(crate) mod document;
pub(crate) mod files;
pub(crate) mod json;
#[cfg(feature = "memory")]
pub(crate) mod memory;
pub(crate) mod paths;
pub(crate) mod recognition;
pub(crate) mod tree;
pub(crate) mod yaml;
