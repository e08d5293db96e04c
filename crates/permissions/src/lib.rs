//! Compares the permissions of roles, and whole terms: does a version ask for more than the customer agreed to? The control
//! plane and the runner both use it. No I/O, no clock; what cannot be decided counts as widened.

mod allowance;
mod narrow;
mod pattern;
mod permission;
mod statements;
mod terms;

pub use allowance::{Allowance, Answer};
pub use narrow::{Narrowed, Narrowing, narrow};
pub use permission::{Gap, Permission, Powers, compare, permissions, why_wide};
pub use statements::Effect;
pub use terms::{Clause, TermsDiff, compare_terms, describe_action, describe_reference};
