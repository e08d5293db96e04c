//! The pure rules: what a job, a workflow and an install may become, and what runs next. No I/O, clock or randomness:
//! `now` and ids are passed in, decisions are values.

pub mod audit;
pub mod build;
pub mod contacted_hosts;
pub mod contract;
pub mod cron;
pub mod deployable;
pub mod diff;
pub mod graph;
pub mod inputs;
pub mod install;
pub mod job;
pub mod nearest;
pub mod plan;
pub mod preflight;
pub mod prune_artifacts;
pub mod region;
pub mod runs_as;
pub mod sandbox;
pub mod workflow;

pub use audit::AuditRecord;
pub use install::Install;
pub use job::{Job, JobEvent, JobState, Rejected, Step};
pub use workflow::{Workflow, WorkflowState};
