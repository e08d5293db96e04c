//! Mistakes in an app config, and how a terminal shows them.

pub(crate) mod diagnostic;
pub(crate) mod diagnostics;
pub(crate) mod draft;
pub(crate) mod excerpt;
