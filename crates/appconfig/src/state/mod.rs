//! The state of an app config while it is read, which the checks and the builders share.

pub(crate) mod app;
pub(crate) mod file;
pub(crate) mod roles;
pub(crate) mod source;
