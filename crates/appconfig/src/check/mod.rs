//! Checks names, references, cycles, and the syntax of texts in other languages.

pub(crate) mod absent_dependencies;
pub(crate) mod cycles;
pub(crate) mod effect;
pub(crate) mod ignored_files;
pub(crate) mod index;
pub(crate) mod input_values;
pub(crate) mod links;
pub(crate) mod missing_cluster;
pub(crate) mod missing_permissions;
pub(crate) mod missing_programs;
pub(crate) mod names;
pub(crate) mod operation_roles;
pub(crate) mod policy_answers;
pub(crate) mod policy_document;
pub(crate) mod pulumi_programs;
pub(crate) mod references;
pub(crate) mod syntax;
pub(crate) mod undeployable_parts;
pub(crate) mod unused_keys;
pub(crate) mod validate;
