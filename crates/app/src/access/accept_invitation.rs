//! Accepts an invitation: who has signed in and has the code becomes the member.

use std::sync::Arc;

use freehold_access::{Principal, Resource, Who};
use freehold_protocol::Digest;
use freehold_protocol::api::{AcceptInvitationRequest, CallerView, INVITATION_CODE};
use freehold_protocol::order::AskedBy;

use super::invite_member::refuse_other;
use super::policies::ParsedPolicies;
use super::principal;
use super::row::{self, Invitation, KnownPrincipal, Member, MemberState};
use super::show_caller::view;
use crate::AppError;
use crate::ports::{Clock, Expect, Store};
use crate::table::{self, Decided, load, put};

/// The use case that accepts an invitation, with its ports.
#[derive(Clone)]
pub struct AcceptInvitation {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub policies: ParsedPolicies,
}

impl AcceptInvitation {
    /// Makes `who` the member whom the invitation names. The same code of the same person gets the same answer again.
    ///
    /// # Errors
    /// Forbidden for a caller who is not a person; NotFound, always with the same text, for a code that is not known,
    /// has expired, was accepted by somebody else, or is of a member who may not invite any more; Conflict for a person
    /// who is another member; or the store's errors.
    pub async fn accept(&self, request: &AcceptInvitationRequest, who: &Who) -> Result<CallerView, AppError> {
        if !matches!(who, Who::Person { .. }) {
            return Err(AppError::forbidden(
                "only a person who has signed in accepts an invitation; invite an IAM principal with its ARN, which needs \
                 no code, and permit pipelines in the policies",
            ));
        }
        if !INVITATION_CODE.accepts(&request.code) {
            return Err(refused());
        }
        let code = Digest::of(request.code.as_bytes());
        let member = table::change(&*self.store, ("invitation of", &"a member"), || self.decide(&code, who)).await?;
        tracing::warn!("Member `{}` accepted the invitation as `{who}`", member.name);
        let name = member.name.clone();
        let principal: Principal = principal::assigned(who.clone(), name.to_string(), member.assignment)?;
        Ok(view(&*self.policies.load(&*self.store).await.map_err(AppError::after_change)?, &principal, true))
    }

    async fn decide(&self, code: &Digest, who: &Who) -> Result<Decided<Member>, AppError> {
        let (store, now) = (&*self.store, self.clock.now());
        let invitation = load::<Invitation>(store, &row::invitation_key(code)).await?;
        let invitation = invitation.filter(|found| now < found.value.expires_at).ok_or_else(refused)?;
        let found = row::find_member(store, &invitation.value.member).await?;
        let found = found.filter(|found| found.value.code() == Some(code)).ok_or_else(refused)?;
        let who = who.to_string();
        if let Some(is_same) = found.value.who().map(|known| known == who) {
            return if is_same { Ok(Decided::Keep(found.value)) } else { Err(refused()) };
        }
        self.check_inviter(&found.value.invited_by).await?;
        refuse_other(store, &who, &found.value.name).await?;
        let state = MemberState::Accepted { who, at: now, code: Some(code.clone()) };
        let member = Member { state, ..found.value };
        let mut writes = vec![put(&member, Expect::Rev(found.rev))?];
        if let Some(principal) = member.known_principal() {
            writes.push(put(&principal, Expect::Absent)?);
        }
        Ok(Decided::Commit(writes, member))
    }

    /// Refuses the invitation of a member who may not invite any more. Otherwise a member could return after the removal
    /// by an invitation of their own.
    async fn check_inviter(&self, by: &AskedBy) -> Result<(), AppError> {
        let AskedBy::Member { subject, .. } = by else { return Ok(()) };
        let (store, who) = (&*self.store, Who::Person { subject: subject.to_string() });
        let known = load::<KnownPrincipal>(store, &row::principal_key(&who.to_string())).await?;
        let inviter = principal::of_member(known.ok_or_else(refused)?.value)?;
        let decision = self.policies.load(store).await?.decide(&inviter, "invite_member", &Resource::Tenant);
        if decision.is_allowed { Ok(()) } else { Err(refused()) }
    }
}

/// Returns the error for a code that nobody may accept. It does not tell whether the code exists.
fn refused() -> AppError {
    AppError::not_found(
        "no open invitation has this code; a code is accepted once, within seven days, so ask for another invitation",
    )
}
