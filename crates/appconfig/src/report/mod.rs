//! Mistakes in an app config, and how a terminal shows them.

pub(crate) mod diagnostic;
pub(crate) mod excerpt;
