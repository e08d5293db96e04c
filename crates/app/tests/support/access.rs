//! Members and policies in the simulated control plane.

use std::sync::Arc;

use freehold_app::AppError;
use freehold_app::access::accept_invitation::AcceptInvitation;
use freehold_app::access::invite_member::InviteMember;
use freehold_app::access::remove_member::RemoveMember;
use freehold_app::access::set_member::SetMember;
use freehold_app::access::set_policies::SetPolicies;
use freehold_app::access::test_access::TestAccess;
use freehold_app::access::{About, Access, Act, Authorize, ParsedPolicies, Permits, Who};
use freehold_app::ports::Store;
use freehold_protocol::MemberName;
use freehold_protocol::api::{
    AcceptInvitationRequest, CallerView, InviteMemberRequest, MemberInvited, SetMemberRequest, SetPoliciesRequest,
};

use super::{World, member};

/// Policies by which only owners may change anything.
pub(crate) const OWNERS: &str =
    "@id(\"owners\")\npermit (principal in Freehold::Group::\"owner\", action, resource);\n";

pub(crate) fn name(text: &str) -> MemberName {
    text.parse().unwrap()
}

pub(crate) fn person(subject: &str) -> Who {
    Who::Person { subject: subject.to_owned() }
}

/// Returns the session-independent principal of a role.
pub(crate) fn role(role: &str) -> Who {
    Who::Iam { arn: format!("arn:aws:iam::111111111111:role/{role}") }
}

/// Returns the code that a test gives to the invitation with this number.
pub(crate) fn code(number: u8) -> String {
    format!("{number:064x}")
}

pub(crate) fn invitation(member: &str, groups: &[&str]) -> InviteMemberRequest {
    InviteMemberRequest {
        member: name(member),
        groups: groups.iter().map(|&group| group.to_owned()).collect(),
        apps: Default::default(),
        installs: Default::default(),
        iam: None,
    }
}

pub(crate) fn groups(groups: &[&str]) -> SetMemberRequest {
    let groups = groups.iter().map(|&group| group.to_owned()).collect();
    SetMemberRequest { groups, apps: Default::default(), installs: Default::default() }
}

pub(crate) fn policies(text: &str) -> SetPoliciesRequest {
    SetPoliciesRequest { policies: text.to_owned(), expected: None }
}

impl World {
    pub(crate) fn authorize(&self) -> Authorize {
        let (tenant, store) = (self.tenant.clone(), self.memory.clone());
        Authorize { tenant, store, policies: ParsedPolicies::default() }
    }

    pub(crate) fn invite_member(&self) -> InviteMember {
        let (store, clock) = (self.memory.clone(), self.memory.clone());
        InviteMember { store, clock, policies: ParsedPolicies::default() }
    }

    pub(crate) fn accept_invitation(&self, store: Arc<dyn Store>) -> AcceptInvitation {
        AcceptInvitation { store, clock: self.memory.clone(), policies: ParsedPolicies::default() }
    }

    pub(crate) fn set_member(&self, store: Arc<dyn Store>) -> SetMember {
        SetMember { store, clock: self.memory.clone(), policies: ParsedPolicies::default() }
    }

    pub(crate) fn remove_member(&self, store: Arc<dyn Store>) -> RemoveMember {
        RemoveMember { store, clock: self.memory.clone(), policies: ParsedPolicies::default() }
    }

    pub(crate) fn set_policies(&self, store: Arc<dyn Store>) -> SetPolicies {
        SetPolicies { store, clock: self.memory.clone() }
    }

    pub(crate) fn test_access(&self) -> TestAccess {
        TestAccess { store: self.memory.clone(), policies: ParsedPolicies::default() }
    }

    /// Invites a member with the code of this number.
    pub(crate) async fn invite(&self, member_name: &str, of: &[&str], number: u8) -> MemberInvited {
        self.invite_member().invite(&invitation(member_name, of), code(number), member()).await.unwrap()
    }

    /// Accepts the invitation with the code of this number.
    pub(crate) async fn accept(&self, number: u8, who: &Who) -> Result<CallerView, AppError> {
        let request = AcceptInvitationRequest { code: code(number) };
        self.accept_invitation(self.memory.clone()).accept(&request, who).await
    }

    /// Makes the person with the subject `member` a member with the same name.
    pub(crate) async fn with_member(&self, member: &str, of: &[&str], number: u8) -> Who {
        self.invite(member, of, number).await;
        self.accept(number, &person(member)).await.unwrap();
        person(member)
    }

    /// Asks whether somebody may do something.
    pub(crate) async fn ask(&self, who: &Who, action: &str, about: &About) -> Result<Access, AppError> {
        let act = Act { action, run: "", permits: Permits::ByPolicies };
        self.authorize().authorize(who.clone(), &act, about).await
    }
}
