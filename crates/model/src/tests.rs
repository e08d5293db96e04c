//! The spaces hold, they have no cycles, every seeded mistake breaks a rule, and the model is what the code does.

mod control_parity;
mod mutants;
mod runner_parity;
mod spaces;
