//! Shows the required checks of components.

use std::collections::BTreeSet;

use freehold_domain::plan::Deployed;
use freehold_domain::required_checks::ReportedCheck;
use freehold_protocol::CheckName;
use freehold_protocol::api::CheckView;

/// Returns the API's view of a reported check.
pub(crate) fn check_view(reported: &ReportedCheck) -> CheckView {
    let ReportedCheck { check, result, reason, url, by, at, deploy, .. } = reported.clone();
    CheckView { check, result: Some(result), reason, url, by: Some(by), at: Some(at), deploy: Some(deploy) }
}

/// Returns the checks of a deployed component by name: those with a result for this deploy, and the missing ones of `required`.
pub(super) fn checks_of(
    deployed: &Deployed,
    required: &BTreeSet<CheckName>,
    reported: &[ReportedCheck],
) -> Vec<CheckView> {
    let is_its = |one: &&ReportedCheck| one.component == deployed.component && one.serial == deployed.serial;
    let mut views: Vec<CheckView> = reported.iter().filter(is_its).map(check_view).collect();
    let missing = required.iter().filter(|name| views.iter().all(|view| view.check != **name));
    let missing: Vec<CheckView> = missing.cloned().map(CheckView::missing).collect();
    views.extend(missing);
    views.sort_by(|one, other| one.check.cmp(&other.check));
    views
}
