//! Builds the parts of an app version: one file for each kind of file in a config directory.

pub(crate) mod actions;
pub(crate) mod app;
pub(crate) mod branch;
pub(crate) mod components;
pub(crate) mod data_files;
pub(crate) mod file;
pub(crate) mod input_sources;
pub(crate) mod inputs;
pub(crate) mod installs;
pub(crate) mod kyverno;
pub(crate) mod metadata;
pub(crate) mod policies;
pub(crate) mod roles;
pub(crate) mod runbooks;
pub(crate) mod sandbox;
pub(crate) mod schedule;
pub(crate) mod secrets;
pub(crate) mod sources;
pub(crate) mod stack;
pub(crate) mod values;
