//! The use cases: each loads, decides with `domain`, commits, then performs effects that may be repeated. AWS is behind
//! the ports; `memory` holds doubles that behave.

#![warn(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used)]

pub mod accept_report;
pub mod advance;
pub mod build_components;
pub mod cancel;
pub mod context;
pub mod contract;
pub mod create_install;
pub mod create_release;
pub mod dispatch_job;
pub mod error;
pub mod evidence;
pub mod finish_workflow;
pub mod grant_artifact;
pub mod lineage;
pub mod memory;
pub mod messages;
mod named_roles;
pub mod plan_workflow;
pub mod ports;
pub mod prune_artifacts;
pub mod read;
pub mod records;
pub mod register_install;
pub mod render_stack;
mod role_policy;
pub mod seal_contract;
pub mod set_inputs;
pub mod show_inputs;
pub mod show_version;
pub mod stack_inputs;
mod stack_text;
pub mod start_workflow;
pub mod sweep;
pub mod switches;
pub mod sync_app;
pub mod versions;

pub use error::{AppError, Kind};
