//! The rules of jobs, workflows and installs: which states they may reach, and what runs next. The crate uses no I/O,
//! clock or randomness: callers pass in the time and new ids, and get decisions as values.

pub mod absence;
pub mod audit;
pub mod build;
pub mod contacted_hosts;
pub mod contract;
pub mod cron;
pub mod deployability;
pub mod diff;
pub mod drift;
pub mod forget_install;
pub mod graph;
pub mod health;
pub mod inputs;
pub mod install;
pub mod job;
pub mod notification;
pub mod plan;
pub mod plural;
pub mod preflight;
pub mod prune_artifacts;
pub mod region;
pub mod reports;
pub mod required_checks;
pub mod role_switches;
pub mod runbook;
pub mod runs_as;
pub mod sandbox;
pub mod sealed_inputs;
pub mod sensitive_outputs;
pub mod spread;
pub mod suggestion;
pub mod toggles;
pub mod webhook;
pub mod workflow;

pub use audit::AuditRecord;
pub use install::Install;
pub use job::{Job, JobEvent, JobState, Rejected, Step};
pub use workflow::{Workflow, WorkflowState};
