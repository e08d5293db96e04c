//! Removes a member or an invitation: the next request of the member is refused.

use std::sync::Arc;

use freehold_protocol::MemberName;
use freehold_protocol::api::MemberRemoved;
use freehold_protocol::order::AskedBy;

use super::last_change;
use super::policies::ParsedPolicies;
use super::row;
use crate::AppError;
use crate::ports::{Clock, Store, Write};
use crate::table::{self, Decided, Record as _};

/// The use case that removes a member, with its ports.
#[derive(Clone)]
pub struct RemoveMember {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub policies: ParsedPolicies,
}

impl RemoveMember {
    /// Removes a member on request of `by`, with the code of the invitation.
    ///
    /// # Errors
    /// NotFound; Conflict if nobody could change the policies any more; or the store's errors.
    pub async fn remove(&self, name: &MemberName, by: &AskedBy) -> Result<MemberRemoved, AppError> {
        table::change(&*self.store, ("member", name), || self.decide(name, by)).await?;
        tracing::warn!("Removed member `{name}` on request of {by}");
        Ok(MemberRemoved { member: name.clone() })
    }

    async fn decide(&self, name: &MemberName, by: &AskedBy) -> Result<Decided<()>, AppError> {
        let store = &*self.store;
        let place = last_change::next(store).await?;
        let found = row::member(store, name).await?;
        let all = row::members(store).await?;
        let others = all.iter().filter(|member| member.name != *name);
        last_change::check_administers(&*self.policies.load(store).await?, others)?;
        let mut writes = vec![
            place.write(format!("removed member {name}"), by, self.clock.now())?,
            Write::DeleteAt { key: found.value.key(), rev: found.rev },
        ];
        writes.extend(found.value.who().map(|who| Write::Delete { key: row::principal_key(who) }));
        writes.extend(found.value.code().map(|code| Write::Delete { key: row::invitation_key(code) }));
        Ok(Decided::Commit(writes, ()))
    }
}
