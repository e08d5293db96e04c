//! Requests and responses of the API about access: the caller, the members of the tenant, and the policies that decide
//! who may do what.

mod members;
mod policies;

pub use members::{
    AcceptInvitationRequest, CallerView, INVITATION_CODE, InviteMemberRequest, MemberInvited, MemberRemoved,
    MemberView, SetMemberRequest,
};
pub use policies::{AccessView, PoliciesView, SetPoliciesRequest, TestAccessRequest};
