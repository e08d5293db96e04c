//! Access: the members of the tenant, the policies that decide who may do what, and the decision about each request.
//! The crate `access` evaluates the policies. Here are the rows, and what a decision is about.

pub mod accept_invitation;
mod act;
mod authorize;
mod caller;
mod denial;
mod iam;
pub mod invite_member;
mod last_change;
mod list_members;
mod policies;
mod principal;
pub mod remove_member;
mod resource;
mod row;
pub mod set_member;
pub mod set_policies;
mod show_caller;
mod show_policies;
pub mod test_access;

pub use self::act::{Act, Permits};
pub use self::authorize::Authorize;
pub use self::caller::Access;
pub use self::iam::who_of_caller;
pub use self::list_members::list_members;
pub use self::policies::ParsedPolicies;
pub use self::resource::About;
pub use self::show_caller::show_caller;
pub use self::show_policies::show_policies;
pub use freehold_access::{Principal, UNDECIDED, Who, actions};
