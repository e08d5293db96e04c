//! Artifacts: granted, proved, shown with their lineage, and pruned.

pub mod builds;
pub mod grant_artifact;
pub mod prune_artifacts;
pub mod revoke_artifact;
pub mod show_lineage;
