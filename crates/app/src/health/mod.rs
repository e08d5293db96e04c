//! Health: starts checks by hand and by schedule, and takes their results.

pub mod check_health;
pub(crate) mod plan;
pub(crate) mod record;
