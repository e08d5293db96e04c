//! Runbooks: runs their steps in an install, one workflow after the other.

pub mod advance_run;
pub mod cancel_run;
pub mod resume_run;
pub mod run_after_deploy;
pub mod run_runbook;
