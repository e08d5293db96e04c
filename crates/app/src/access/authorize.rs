//! Decides about one request: finds the principal of the caller and the resource, and asks the policies.

use std::sync::Arc;

use freehold_access::{Principal, Resource, Who};
use freehold_protocol::TenantName;
use futures_util::future::{try_join, try_join3};

use super::act::{Act, Permits};
use super::caller::Access;
use super::denial;
use super::policies::{self, ParsedPolicies};
use super::principal;
use super::resource::About;
use super::row::{self, KnownPrincipal, PoliciesRecord};
use crate::AppError;
use crate::ports::Store;
use crate::table::{Stored, load};

/// The ready-made policy that permits everything to IAM principals.
const IAM_POLICY: &str = "iam-principals-of-the-account";

/// The decision about requests, with its port.
#[derive(Clone)]
pub struct Authorize {
    pub tenant: TenantName,
    pub store: Arc<dyn Store>,
    pub policies: ParsedPolicies,
}

impl Authorize {
    /// Decides whether `who` may do `act` with what the request is about. It reads the policies, the caller's row and
    /// the resource at once. An IAM principal whom the ready-made policies permit everything needs no resource.
    ///
    /// # Errors
    /// Forbidden for a person who is not a member, and for an action that the policies do not permit; NotFound if the
    /// caller may not even see the thing, as if it did not exist; Internal if the policies cannot be read; or the
    /// store's errors.
    pub async fn authorize(&self, who: Who, act: &Act<'_>, about: &About) -> Result<Access, AppError> {
        let (store, key) = (&*self.store, row::principal_key(&who.to_string()));
        let known = load::<KnownPrincipal>(store, &key);
        let (stored, known, target) = if matches!(who, Who::Iam { .. }) {
            let (stored, known) = try_join(policies::find(store), known).await?;
            (stored, known, None)
        } else {
            let (stored, known, target) = try_join3(policies::find(store), known, about.resource(store)).await?;
            (stored, known, Some(target))
        };
        let access = self.access(who, act, stored.as_ref(), known)?;
        if access.is_unlimited {
            note(&access, act, &about.to_string(), true, IAM_POLICY);
            return Ok(access);
        }
        if access.member.is_none() && matches!(access.principal.who, Who::Person { .. }) {
            let is_allowed = act.permits == Permits::Everybody;
            note(&access, act, &about.to_string(), is_allowed, "");
            return if is_allowed { Ok(access) } else { Err(denial::not_a_member(&self.tenant)) };
        }
        let is_permitted = match act.permits {
            Permits::Everybody | Permits::Oneself => true,
            Permits::ByItem => access.member.is_some(),
            Permits::ByPolicies => false,
        };
        if is_permitted {
            note(&access, act, &about.to_string(), true, "");
            return Ok(access);
        }
        let target = match target {
            Some(target) => target,
            None => about.resource(store).await?,
        };
        self.decide(access, act, about, target).await
    }

    async fn decide(
        &self,
        access: Access,
        act: &Act<'_>,
        about: &About,
        target: Option<Resource>,
    ) -> Result<Access, AppError> {
        let exists = target.is_some();
        let resource = match target {
            Some(resource) => resource,
            None => about.missing()?,
        };
        let decision = act.decide(&access.policies, &access.principal, &resource);
        for error in &decision.errors {
            tracing::warn!("A policy could not be evaluated, so `{}` is denied: {error}", act.action);
        }
        let thing = if exists { resource.to_string() } else { format!("{about}, which does not exist") };
        note(&access, act, &thing, decision.is_allowed, &decision.policies.join(","));
        if decision.is_allowed {
            return Ok(access);
        }
        if !exists || !access.may_see(&resource) {
            return Err(about.absence());
        }
        Err(denial::denied(&*self.store, &self.tenant, &access, act, &resource).await)
    }

    /// Returns the caller with the policies that count for it.
    fn access(
        &self,
        who: Who,
        act: &Act<'_>,
        stored: Option<&Stored<PoliciesRecord>>,
        known: Option<Stored<KnownPrincipal>>,
    ) -> Result<Access, AppError> {
        let is_iam = matches!(who, Who::Iam { .. });
        let policies = match self.policies.of(stored) {
            // Otherwise nobody could replace them.
            Err(_) if is_iam && act.repairs_policies() => self.policies.ready_made()?,
            policies => policies?,
        };
        let member = known.as_ref().map(|known| known.value.member.clone());
        let principal = match known {
            Some(known) => principal::of_member(known.value)?,
            None => Principal::without_groups(who),
        };
        let is_unlimited = is_iam && member.is_none() && stored.is_none();
        Ok(Access { principal, member, policies, is_unlimited })
    }
}

/// Writes the log line of a decision.
fn note(access: &Access, act: &Act<'_>, resource: &str, is_allowed: bool, policies: &str) {
    let (principal, action) = (access.principal.who.to_string(), act.action);
    let verb = if is_allowed { "Permitted" } else { "Denied" };
    let principal = principal.as_str();
    tracing::info!(principal, action, resource, is_allowed, policies, "{verb} `{action}` to `{principal}`: {resource}");
}
