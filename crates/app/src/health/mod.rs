//! Health: starts checks by hand and by schedule, and records their results and the results of required checks.

pub(crate) mod awaited_checks;
pub mod check_health;
pub(crate) mod plan;
pub(crate) mod record;
pub mod report_check;
