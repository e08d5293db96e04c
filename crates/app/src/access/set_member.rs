//! Replaces the groups, apps and installs of a member.

use std::sync::Arc;

use freehold_protocol::MemberName;
use freehold_protocol::api::{MemberView, SetMemberRequest};
use freehold_protocol::order::AskedBy;

use super::last_change;
use super::policies::ParsedPolicies;
use super::principal::groups_of;
use super::row::{self, Assignment, Member};
use crate::AppError;
use crate::ports::{Clock, Expect, Store};
use crate::table::{self, Decided, put};

/// The use case that replaces the groups, apps and installs of a member, with its ports.
#[derive(Clone)]
pub struct SetMember {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub policies: ParsedPolicies,
}

impl SetMember {
    /// Sets the groups, apps and installs of a member on request of `by`. The next request of the member is decided by
    /// them. A repeated request changes nothing.
    ///
    /// # Errors
    /// Invalid for a name that is not the name of a group; NotFound; Conflict if nobody could change the policies any
    /// more; or the store's errors.
    pub async fn set(
        &self,
        name: &MemberName,
        request: &SetMemberRequest,
        by: &AskedBy,
    ) -> Result<MemberView, AppError> {
        let SetMemberRequest { groups, apps, installs } = request;
        groups_of(groups)?;
        let assignment = Assignment { groups: groups.clone(), apps: apps.clone(), installs: installs.clone() };
        let member =
            table::change(&*self.store, ("member", name), || self.decide(name, assignment.clone(), by)).await?;
        let groups = groups.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        tracing::warn!("Set the groups of member `{name}` to `{groups}` on request of {by}");
        Ok(row::view(member))
    }

    async fn decide(
        &self,
        name: &MemberName,
        assignment: Assignment,
        by: &AskedBy,
    ) -> Result<Decided<Member>, AppError> {
        let (store, now) = (&*self.store, self.clock.now());
        let place = last_change::next(store).await?;
        let found = row::member(store, name).await?;
        if found.value.assignment == assignment {
            return Ok(Decided::Keep(found.value));
        }
        let member = Member { assignment, ..found.value };
        let mut all = row::members(store).await?;
        all.retain(|other| other.name != *name);
        all.push(member.clone());
        last_change::check_administers(&*self.policies.load(store).await?, all.iter())?;
        let mut writes =
            vec![place.write(format!("set member {name}"), by, now)?, put(&member, Expect::Rev(found.rev))?];
        if let Some(principal) = member.known_principal() {
            // The revision of the member's row guards this row too: no writer writes it alone.
            writes.push(put(&principal, Expect::Any)?);
        }
        Ok(Decided::Commit(writes, member))
    }
}
