//! Lists the drift of an install.

use freehold_domain::drift::{Acknowledged, DriftRule, Found};
use freehold_domain::plan::Deployed;
use freehold_protocol::api::{AcknowledgedView, DriftRuleView, DriftView, DriftedView, InstallDrift, PartDrift};
use freehold_protocol::{ComponentName, InstallId};

use crate::AppError;
use crate::ports::Store;
use crate::table;

/// Returns the differences that checks found in each part of an install, and the rules that ignore some of them.
///
/// # Errors
/// NotFound, or the store's errors.
pub async fn list_drift(store: &dyn Store, id: &InstallId) -> Result<InstallDrift, AppError> {
    let install = table::install(store, id).await?.value;
    install.require_app()?;
    let parts = table::parts(store, id).await?;
    let checked = parts.into_iter().filter_map(|(component, deployed)| {
        let drift = drift_view(&deployed, &install.drift_rules)?;
        Some(PartDrift { component, drift })
    });
    let parts = checked.collect();
    let rules = install.drift_rules.into_iter().map(rule_view).collect();
    Ok(InstallDrift { install: install.id, checking: install.checking, parts, rules })
}

/// Returns the API's view of the drift of a part; `None` before its first check.
pub(super) fn drift_view(deployed: &Deployed, rules: &[DriftRule]) -> Option<DriftView> {
    let (part, drift) = (&deployed.component, deployed.drift.as_ref()?);
    let state = drift.state(deployed.at, |resource| DriftRule::ignore(rules, part, resource));
    Some(DriftView {
        state: state.as_str().to_owned(),
        reason: drift.unknown.clone().unwrap_or_default(),
        checked_at: drift.checked_at,
        workflow: drift.workflow.clone(),
        resources: drift.found.iter().map(|found| drifted_view(found, rules, part)).collect(),
        more: drift.more,
    })
}

fn drifted_view(found: &Found, rules: &[DriftRule], part: &ComponentName) -> DriftedView {
    let acknowledged = found.acknowledged.clone();
    DriftedView {
        resource: found.resource.clone(),
        since: found.since,
        ignored: DriftRule::ignore(rules, part, &found.resource),
        acknowledged: acknowledged.map(|Acknowledged { by, reason, at }| AcknowledgedView { by, reason, at }),
    }
}

fn rule_view(rule: DriftRule) -> DriftRuleView {
    let DriftRule { address, component, attributes, reason, by, at } = rule;
    DriftRuleView { address, component, attributes, reason, by, at }
}
