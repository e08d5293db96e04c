//! The caller of a permitted request.

use std::sync::Arc;

use freehold_access::{Policies, Principal, Resource, Who};
use freehold_domain::install::Install;
use freehold_protocol::order::AskedBy;
use freehold_protocol::{AppName, MemberName, TokenSubject};

use super::resource::resource_of;
use crate::AppError;

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

    pub(super) fn may(&self, action: &str, resource: &Resource) -> bool {
        self.is_unlimited || self.policies.decide(&self.principal, action, resource).is_allowed
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
