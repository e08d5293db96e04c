//! The use cases against a simulated control plane, one file each.

#![cfg(test)]

#[path = "../support/mod.rs"]
mod support;

mod accept_report;
mod build_components;
mod cancel;
mod create_install;
mod create_release;
mod dispatch_job;
mod faults;
mod finish_workflow;
mod grant_artifact;
mod plain_stack;
mod plan_workflow;
mod prune_artifacts;
mod register_install;
mod render_stack;
mod set_inputs;
mod show_lineage;
mod show_version;
mod start_workflow;
mod sweep;
mod switches;
mod sync_app;
mod terms;
mod versions;
mod whole_path;
