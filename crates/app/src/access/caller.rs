//! The caller of a permitted request.

use std::sync::Arc;

use freehold_access::{Policies, Principal, Resource, Who};
use freehold_domain::install::Install;
use freehold_protocol::api::SetMemberRequest;
use freehold_protocol::order::AskedBy;
use freehold_protocol::{AppName, MemberName, TokenSubject};

use super::principal;
use super::resource::resource_of;
use super::row::Assignment;
use crate::AppError;

/// An IAM principal that stands for any of the account.
const ANY_ARN: &str = "arn:aws:iam::000000000000:role/any";

/// What the caller of a permitted request may see, and in whose name it acts.
#[derive(Debug, Clone)]
pub struct Access {
    pub(super) principal: Principal,
    /// The name of the member that the caller is; `None` for a caller who is not a member.
    pub(super) member: Option<MemberName>,
    pub(super) policies: Arc<Policies>,
    /// Whether the ready-made policies permit the caller everything.
    pub(super) is_unlimited: bool,
}

impl Access {
    /// Returns whether the caller may see the app.
    pub fn may_show_app(&self, app: &AppName) -> bool {
        self.may("show_app", &Resource::App { app: app.clone() })
    }

    /// Returns whether the caller may see the install.
    pub fn may_show_install(&self, install: &Install) -> bool {
        self.is_unlimited || self.may("show_install", &resource_of(install))
    }

    /// Returns whether the caller may see what a request is about. Everybody may know that the tenant exists.
    pub(super) fn may_see(&self, resource: &Resource) -> bool {
        match resource {
            Resource::Tenant => true,
            Resource::App { .. } => self.may("show_app", resource),
            Resource::Install { .. } => self.may("show_install", resource),
        }
    }

    pub(super) fn may(&self, action: &str, resource: &Resource) -> bool {
        self.is_unlimited || self.policies.decide(&self.principal, action, resource).is_allowed
    }

    /// Refuses to let the caller give the member `name` a permission on the tenant that the caller does not have, unless
    /// the caller may change the policies. Otherwise, whoever may invite or change members could become an owner.
    /// Permissions on apps and installs are not compared.
    ///
    /// # Errors
    /// Forbidden, with the permission; Invalid for a text that is not the name of a group.
    pub fn check_gives(&self, name: &MemberName, given: &SetMemberRequest) -> Result<(), AppError> {
        if self.may("set_policies", &Resource::Tenant) {
            return Ok(());
        }
        let permitted = |principal: &Principal| self.policies.permitted_actions(principal, &Resource::Tenant);
        let own = permitted(&self.principal);
        // Somebody who has only signed in has no permission, and an IAM principal may have some without being a member.
        let role = Who::Iam { arn: ANY_ARN.to_owned() };
        let of_role = permitted(&Principal::without_groups(role.clone()));
        for (who, before) in [(Who::Person { subject: name.to_string() }, Vec::new()), (role, of_role)] {
            let SetMemberRequest { groups, apps, installs } = given.clone();
            let member = principal::assigned(who, name.to_string(), Assignment { groups, apps, installs })?;
            let more = permitted(&member).into_iter().find(|action| !own.contains(action) && !before.contains(action));
            if let Some(action) = more {
                return Err(AppError::forbidden(format!(
                    "`{}` may not give `{name}` these groups, because they permit `{action}` of the tenant, which `{}` \
                     may not do; choose other groups, or ask somebody who may change the policies",
                    self.principal.name, self.principal.name
                )));
            }
        }
        Ok(())
    }

    /// Returns who asks for work, if the caller has a token; an IAM principal is named by its session.
    ///
    /// # Errors
    /// Internal when the subject of the token cannot be in a message.
    pub fn asked_by(&self) -> Result<Option<AskedBy>, AppError> {
        let subject = |text: &str| {
            text.parse::<TokenSubject>().map_err(|_| AppError::internal("the caller has no valid subject"))
        };
        Ok(match (&self.principal.who, &self.member) {
            (Who::Person { subject: text }, Some(member)) => {
                Some(AskedBy::Member { member: member.clone(), subject: subject(text)? })
            }
            (Who::Pipeline { subject: text }, _) => Some(AskedBy::Pipeline { subject: subject(text)? }),
            (Who::Person { .. } | Who::Iam { .. }, _) => None,
        })
    }
}
