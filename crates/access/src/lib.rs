//! Who may do what: policies in Cedar, their schema, the policies of a new tenant, and the decision about one request.
//!
//! The crate has no I/O. Its callers load the policies and the member, and name the resource. Principals and resources
//! become entities as values, never as text, so that no name can change a policy.

mod actions;
mod decision;
mod limits;
mod mistake;
mod policies;
mod principal;
mod vocabulary;
mod who;

pub use actions::{About, ActionInfo, Class, UNDECIDED, actions};
pub use decision::{Decision, groups_with};
pub use mistake::{MAX_POLICIES_BYTES, Mistake, PoliciesError};
pub use policies::Policies;
pub use principal::{Group, NotGroup, Principal, Resource};
pub use who::{NotWho, Who};
