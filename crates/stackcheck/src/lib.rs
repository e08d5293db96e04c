//! Checks the template of an install stack as a customer's security team would: offline, with line and reason. Pure.

mod facts;
mod finding;
mod node;
mod own_arns;
mod policy;
mod rules;
mod template;

pub use facts::{Bound, Facts};
pub use finding::{Finding, RULES, Rule};
pub use node::Unreadable;
pub use rules::check;
