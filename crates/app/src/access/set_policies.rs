//! Replaces the policies that decide who may do what.

use std::sync::Arc;

use freehold_access::Policies;
use freehold_protocol::Digest;
use freehold_protocol::api::{PoliciesView, SetPoliciesRequest};
use freehold_protocol::order::AskedBy;

use super::row::{self, PoliciesRecord};
use super::show_policies::view;
use super::{last_change, policies};
use crate::AppError;
use crate::ports::{Clock, Expect, Store};
use crate::table::{self, Decided, Stored, put};

/// The use case that replaces the policies, with its ports.
#[derive(Clone)]
pub struct SetPolicies {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
}

impl SetPolicies {
    /// Replaces the policies on request of `by`. The next request is decided by them. A repeated request changes
    /// nothing.
    ///
    /// # Errors
    /// Invalid for policies with a mistake; Conflict if somebody has changed them since the caller read them, or if
    /// nobody could change them any more; or the store's errors.
    pub async fn set(&self, request: &SetPoliciesRequest, by: &AskedBy) -> Result<PoliciesView, AppError> {
        let parsed = Policies::parse(&request.policies).map_err(|error| AppError::invalid(error.to_string()))?;
        let stored =
            table::change(&*self.store, ("policies of", &"the tenant"), || self.decide(request, &parsed, by)).await?;
        let view = view(stored.as_ref());
        tracing::warn!("Set the policies `{}` on request of {by}", view.digest);
        Ok(view)
    }

    async fn decide(
        &self,
        request: &SetPoliciesRequest,
        parsed: &Policies,
        by: &AskedBy,
    ) -> Result<Decided<Option<Stored<PoliciesRecord>>>, AppError> {
        let (store, now) = (&*self.store, self.clock.now());
        let place = last_change::next(store).await?;
        let stored = policies::find(store).await?;
        let present = policies::text(stored.as_ref());
        if present == request.policies {
            return Ok(Decided::Keep(stored));
        }
        let digest = Digest::of(present.as_bytes());
        if let Some(expected) = request.expected.as_ref().filter(|expected| **expected != digest) {
            return Err(AppError::conflict(format!(
                "the policies have the digest `{digest}` and not `{expected}`: somebody has changed them; read them \
                 again, and repeat your change"
            )));
        }
        last_change::check_administers(parsed, row::members(store).await?.iter())?;
        let (number, rev) = stored.as_ref().map_or((0, 0), |stored| (stored.value.number, stored.rev));
        let expect = if stored.is_some() { Expect::Rev(rev) } else { Expect::Absent };
        let value = PoliciesRecord {
            policies: request.policies.clone(),
            number: number + 1,
            changed_at: now,
            changed_by: by.clone(),
        };
        let writes = vec![place.write("set policies".to_owned(), by, now)?, put(&value, expect)?];
        Ok(Decided::Commit(writes, Some(Stored { value, rev: rev + 1 })))
    }
}
