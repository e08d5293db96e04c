//! Checks the template of an install stack as a customer's security team would: offline, and with a line and a reason
//! for each finding. The crate does no I/O.

mod assertions;
mod check;
mod comparison;
mod facts;
mod finding;
mod node;
mod own_arns;
mod policy;
mod read;
mod rules;
mod scalar;
mod template;

pub use check::{Added, Checked, MAX_FINDINGS, Own, check, verify};
pub use comparison::{Agreed, Names, Overview, RoleOverview};
pub use facts::{Bound, Facts};
pub use finding::{Finding, RULES, Rule};
pub use read::Unreadable;
pub use rules::check_rules;
