//! The names of files and directories in the workspace.

/// The directory of the program.
pub(super) const PROGRAM: &str = "program";
/// The saved plan, in the program's directory.
pub(super) const PLAN_FILE: &str = "freehold-plan.json";
