//! Drift: starts checks by hand and by schedule, records their results, and lets people acknowledge or ignore
//! differences.

pub mod acknowledge_drift;
pub mod detect_drift;
pub mod ignore_drift;
pub(crate) mod plan;
pub(crate) mod result;
