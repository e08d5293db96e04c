//! Health: starts checks by hand and by schedule, and takes their results and those of required checks.

pub mod check_health;
pub(crate) mod plan;
pub(crate) mod record;
pub mod report_check;
