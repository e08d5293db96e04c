//! Drift: starts checks by hand and by schedule, takes their results, and takes what people say about them.

pub mod acknowledge_drift;
pub mod detect_drift;
pub mod ignore_drift;
pub(crate) mod plan;
pub(crate) mod result;
