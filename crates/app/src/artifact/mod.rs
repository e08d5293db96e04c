//! Artifacts: grant them, revoke them, show their lineage and prune them.

mod denial;
pub mod grant_artifact;
pub mod list_artifacts;
pub mod prune_artifacts;
pub mod revoke_artifact;
pub(crate) mod runner_program;
pub mod show_lineage;
mod uses;
