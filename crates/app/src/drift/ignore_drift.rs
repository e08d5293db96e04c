//! Sets the rules of an install that ignore drift.

use std::sync::Arc;

use freehold_domain::drift::DriftRule;
use freehold_protocol::InstallId;
use freehold_protocol::api::IgnoreDriftRequest;
use freehold_protocol::order::AskedBy;

use crate::ports::{Clock, Expect, Store};
use crate::reason::line;
use crate::table::{self, Decided, put};
use crate::{AppError, Kind};

/// The use case that sets a rule, with its ports.
#[derive(Clone)]
pub struct IgnoreDrift {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
}

impl IgnoreDrift {
    /// Adds a rule, replaces the rule with the same address and component, or removes that rule. The change applies at
    /// once, also to differences that were found before.
    ///
    /// # Errors
    /// Invalid for a rule or a reason that is too long or empty, NotFound for an unknown install or for a removal of a
    /// rule that does not exist, Conflict when the rules are too many or too large, or the store's errors.
    pub async fn ignore(&self, id: &InstallId, request: &IgnoreDriftRequest, by: &AskedBy) -> Result<(), AppError> {
        let rule = DriftRule {
            address: request.address.clone(),
            component: request.component.clone(),
            attributes: request.attributes.clone(),
            reason: line(&request.reason)?,
            by: by.clone(),
            at: self.clock.now(),
        };
        rule.check().map_err(|error| AppError::invalid(error.to_string()))?;
        table::change(&*self.store, ("install", id), || async {
            let stored = table::install(&*self.store, id).await?;
            let mut install = stored.value;
            install.check_kept()?;
            install.require_app()?;
            let is_same = |known: &DriftRule| known.is_of(&rule.address, rule.component.as_ref());
            let before = install.drift_rules.len();
            install.drift_rules.retain(|known| !is_same(known));
            if request.remove && install.drift_rules.len() == before {
                return Err(AppError::new(
                    Kind::NotFound,
                    format!(
                        "install `{id}` has no rule for `{}`; `freehold drift list {id}` shows the rules",
                        rule.address
                    ),
                ));
            }
            if !request.remove {
                install.drift_rules.push(rule.clone());
                let fits = DriftRule::check_all(&install.drift_rules);
                fits.map_err(|error| AppError::conflict(error.to_string()))?;
            }
            Ok(Decided::Commit(vec![put(&install, Expect::Rev(stored.rev))?], ()))
        })
        .await
    }
}
