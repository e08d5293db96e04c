//! What is known of an app config while it is read; the rules and the builders share it.

pub(crate) mod app;
pub(crate) mod checked;
