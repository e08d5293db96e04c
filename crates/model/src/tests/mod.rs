//! The rules hold in every space, no space has a cycle, every seeded mistake breaks a rule, and the model equals the
//! code.

mod approvals;
mod control_parity;
mod copies;
mod hellos;
mod mutants;
mod runner_parity;
mod spaces;
mod workflow;
mod workflow_parity;
