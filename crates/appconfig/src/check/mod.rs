//! Checks names, references, cycles, and the syntax of texts in other languages.

pub(crate) mod cycles;
pub(crate) mod default_off;
pub(crate) mod effect;
pub(crate) mod ignored_files;
pub(crate) mod index;
pub(crate) mod input_values;
pub(crate) mod links;
pub(crate) mod names;
pub(crate) mod operation_roles;
pub(crate) mod permitted;
pub(crate) mod policy_document;
pub(crate) mod references;
pub(crate) mod syntax;
pub(crate) mod undeployable;
pub(crate) mod untried;
pub(crate) mod validate;
