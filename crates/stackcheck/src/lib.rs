//! Checks an install stack's template as a customer's security team would: offline, with line and reason. Pure.

mod node;
mod own_arns;
mod policy;
mod rules;

pub use node::Unreadable;
pub use rules::{Finding, RULES, Rule, check};
