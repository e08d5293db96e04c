//! Invites a member. Somebody who has signed in becomes the member with the code of the invitation; an IAM principal
//! needs no code.

use std::sync::Arc;

use freehold_protocol::api::{InviteMemberRequest, MemberInvited};
use freehold_protocol::order::AskedBy;
use freehold_protocol::{Digest, MemberName};

use super::iam::who_of_arn;
use super::last_change;
use super::policies::ParsedPolicies;
use super::principal::groups_of;
use super::row::{self, Assignment, Invitation, KnownPrincipal, Member, MemberState};
use crate::AppError;
use crate::ports::{Clock, Expect, Store, Write};
use crate::table::{self, Decided, Stored, load, put};

/// The maximum number of members, with those who are invited.
pub const MAX_MEMBERS: usize = 1000;
/// The time for which the code of an invitation is accepted, in seconds.
pub const INVITATION_SECS: u64 = 7 * 24 * 3600;

/// The use case that invites a member, with its ports.
#[derive(Clone)]
pub struct InviteMember {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub policies: ParsedPolicies,
}

impl InviteMember {
    /// Invites a member on request of `by`. `code` is the new code of the invitation, which nobody can guess. Another
    /// invitation of somebody who has not accepted the first one replaces it, so a repeated request has another code.
    ///
    /// # Errors
    /// Invalid for a name that is not the name of a group, or an ARN that is not of an IAM role or user; Conflict for
    /// the name of a member who has accepted, for a name that looks like that of another member, for an IAM principal
    /// that is another member, with too many members, and if nobody could change the policies any more; or the store's
    /// errors.
    pub async fn invite(
        &self,
        request: &InviteMemberRequest,
        code: String,
        by: &AskedBy,
    ) -> Result<MemberInvited, AppError> {
        let InviteMemberRequest { member: name, groups, apps, installs, iam } = request;
        groups_of(groups)?;
        let assignment = Assignment { groups: groups.clone(), apps: apps.clone(), installs: installs.clone() };
        let (now, digest) = (self.clock.now(), Digest::of(code.as_bytes()));
        let state = match iam {
            Some(arn) => MemberState::Accepted { who: who_of_arn(arn)?.to_string(), at: now, code: None },
            None => MemberState::Invited { code: digest, expires_at: now.plus_secs(INVITATION_SECS) },
        };
        let invited = Member { name: name.clone(), assignment, invited_at: now, invited_by: by.clone(), state };
        let member = table::change(&*self.store, ("member", name), || self.decide(&invited)).await?;
        let groups = groups.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        tracing::warn!("Invited member `{name}` with the groups `{groups}` on request of {by}");
        Ok(MemberInvited { member: row::view(member), code: iam.is_none().then_some(code) })
    }

    async fn decide(&self, invited: &Member) -> Result<Decided<Member>, AppError> {
        let (store, name) = (&*self.store, &invited.name);
        let place = last_change::next(store).await?;
        let known = row::find_member(store, name).await?;
        let known = match known {
            Some(Stored { value, .. }) if value.who().is_some() => return invited_before(invited, value),
            known => known,
        };
        let mut all = row::members(store).await?;
        all.retain(|member| member.name != *name);
        refuse_lookalike(name, &all)?;
        if all.len() >= MAX_MEMBERS {
            return Err(AppError::conflict(format!(
                "the tenant has {MAX_MEMBERS} members, which is the maximum; remove one with `freehold member remove NAME`"
            )));
        }
        all.push(invited.clone());
        last_change::check_administers(&*self.policies.load(store).await?, all.iter())?;
        let of = format!("invited member {name}");
        let mut writes = vec![place.write(of, &invited.invited_by, invited.invited_at)?];
        writes.push(put(invited, known.as_ref().map_or(Expect::Absent, |known| Expect::Rev(known.rev)))?);
        if let Some(former) = known.as_ref().and_then(|known| known.value.code()) {
            writes.push(Write::Delete { key: row::invitation_key(former) });
        }
        if let MemberState::Invited { code, expires_at } = &invited.state {
            let (code, expires_at) = (code.clone(), *expires_at);
            writes.push(put(&Invitation { code, member: name.clone(), expires_at }, Expect::Absent)?);
        }
        if let Some(principal) = invited.known_principal() {
            refuse_other(store, &principal.who, name).await?;
            writes.push(put(&principal, Expect::Absent)?);
        }
        Ok(Decided::Commit(writes, invited.clone()))
    }
}

/// Returns the member that the same request for an IAM principal has made.
///
/// # Errors
/// Conflict for any other request.
fn invited_before(invited: &Member, known: Member) -> Result<Decided<Member>, AppError> {
    let is_same = known.assignment == invited.assignment && known.who() == invited.who();
    if is_same {
        return Ok(Decided::Keep(known));
    }
    Err(AppError::conflict(format!(
        "`{name}` is a member already; change the groups with `freehold member set {name}`, or choose another name",
        name = known.name
    )))
}

/// Refuses a name that differs from another one by the case of letters alone. People take both for the same address.
///
/// # Errors
/// Conflict.
fn refuse_lookalike(name: &MemberName, others: &[Member]) -> Result<(), AppError> {
    match others.iter().find(|other| other.name.as_str().eq_ignore_ascii_case(name.as_str())) {
        Some(other) => Err(AppError::conflict(format!(
            "`{name}` differs from the member `{}` by the case of letters alone; choose another name, or change that \
             member",
            other.name
        ))),
        None => Ok(()),
    }
}

/// Refuses a principal that is another member already.
///
/// # Errors
/// Conflict, or the store's errors.
pub(super) async fn refuse_other(store: &dyn Store, who: &str, name: &MemberName) -> Result<(), AppError> {
    match load::<KnownPrincipal>(store, &row::principal_key(who)).await? {
        Some(known) if known.value.member != *name => Err(AppError::conflict(format!(
            "`{who}` is the member `{}` already; a principal is one member, so change or remove that one",
            known.value.member
        ))),
        Some(_) | None => Ok(()),
    }
}
