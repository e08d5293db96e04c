//! Tests what the policies decide about a principal, and performs nothing.

use std::sync::Arc;

use freehold_access::{ActionInfo, Principal, Resource, Who, actions, groups_with};
use freehold_protocol::api::{AccessView, TestAccessRequest};

use super::caller::Access;
use super::iam::who_of_arn;
use super::policies::ParsedPolicies;
use super::principal;
use super::resource::About;
use super::row::{self, KnownPrincipal};
use crate::AppError;
use crate::ports::Store;
use crate::table::load;

/// The use case that tests what the policies decide, with its port.
#[derive(Clone)]
pub struct TestAccess {
    pub store: Arc<dyn Store>,
    pub policies: ParsedPolicies,
}

impl TestAccess {
    /// Returns what the policies decide, to a caller who may see the app or install of the request, or who may test the
    /// access of everybody.
    ///
    /// # Errors
    /// Those of [`Self::test`]; NotFound for an app or install that the caller may not see, as if it did not exist.
    pub async fn test_for(&self, caller: &Access, request: &TestAccessRequest) -> Result<AccessView, AppError> {
        let about = about(request);
        if !caller.may("test_access", &Resource::Tenant) && !caller.may_see(&self.resource(&about).await?) {
            return Err(about.absence());
        }
        self.test(request).await
    }

    /// Returns what the policies decide about the principal, the action and the resource of the request.
    ///
    /// # Errors
    /// Invalid for a request without a principal or with two, for an action that does not exist, and for an action
    /// without the app or install that it is about; NotFound for a member or an install that does not exist; or the
    /// store's errors.
    pub async fn test(&self, request: &TestAccessRequest) -> Result<AccessView, AppError> {
        let store = &*self.store;
        let action = action(&request.action)?;
        let (principal, is_stranger) = self.principal(request).await?;
        let resource = self.resource(&about(request)).await?;
        if !action.is_about(resource.about()) {
            let kind = action.about.as_str();
            return Err(AppError::invalid(format!(
                "`{}` is an action of a resource of kind {kind}, and the request names {resource}; name the {kind}",
                action.name
            )));
        }
        let policies = self.policies.load(store).await?;
        let run = request.run_action.as_ref().map(|run| run.as_str()).unwrap_or_default();
        let decision = policies.decide_run(&principal, action.name, run, &resource);
        let groups = groups_with(&policies, action.name, &resource).iter().map(ToString::to_string).collect();
        if is_stranger {
            return Ok(AccessView { is_allowed: false, policies: Vec::new(), groups });
        }
        Ok(AccessView { is_allowed: decision.is_allowed, policies: decision.policies, groups })
    }

    /// Returns the principal, and whether the API refuses it whatever the policies permit: a person who is not a member.
    async fn principal(&self, request: &TestAccessRequest) -> Result<(Principal, bool), AppError> {
        let store = &*self.store;
        match (&request.who, &request.member) {
            (None, Some(member)) => {
                let member = row::member(store, member).await?.value;
                let who = member.known_principal().map(|known| known.who);
                // Nobody has accepted the invitation yet, so the subject of the person is not known.
                let who = who.unwrap_or_else(|| Who::Person { subject: member.name.to_string() }.to_string());
                let (member, assignment) = (member.name, member.assignment);
                Ok((principal::of_member(KnownPrincipal { who, member, assignment })?, false))
            }
            (Some(who), None) => {
                let who: Who =
                    who.parse().map_err(|error: freehold_access::NotWho| AppError::invalid(error.to_string()))?;
                let who = if let Who::Iam { arn } = &who { who_of_arn(arn)? } else { who };
                match load::<KnownPrincipal>(store, &row::principal_key(&who.to_string())).await? {
                    Some(known) => Ok((principal::of_member(known.value)?, false)),
                    None => {
                        let is_person = matches!(who, Who::Person { .. });
                        Ok((Principal::without_groups(who), is_person))
                    }
                }
            }
            (None, None) | (Some(_), Some(_)) => {
                Err(AppError::invalid("name one principal: either `who` or `member`, and not both"))
            }
        }
    }

    async fn resource(&self, about: &About) -> Result<Resource, AppError> {
        about.resource(&*self.store).await?.ok_or_else(|| about.absence())
    }
}

/// Returns what the request is about.
fn about(request: &TestAccessRequest) -> About {
    match (&request.install, &request.app) {
        (Some(install), _) => About::Install(install.clone()),
        (None, Some(app)) => About::App(app.clone()),
        (None, None) => About::Tenant,
    }
}

/// Returns the action with this name.
fn action(name: &str) -> Result<&'static ActionInfo, AppError> {
    actions().iter().find(|action| action.name == name).ok_or_else(|| {
        let shown: String = name.chars().take(80).flat_map(char::escape_default).collect();
        AppError::invalid(format!(
            "`{shown}` is not an action; an action has the name of an operation of the API, such as `deploy_components`"
        ))
    })
}
