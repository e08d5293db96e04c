//! What a release may do at a customer, held against what the customer agreed to: permissions of roles and whole terms. Both
//! the control plane and the runner compare with it. No I/O, no clock; what cannot be decided counts as widened.

mod pattern;
mod permission;
mod statements;
mod terms;

pub use permission::{Gap, Permission, Powers, compare, permissions, why_wide};
pub use statements::Effect;
pub use terms::{Clause, TermsDiff, action_words, compare_terms, reference_words};
