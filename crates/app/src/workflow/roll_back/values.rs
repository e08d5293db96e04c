//! Checks that all components run with the values of the last deploy of all components. A single component may have
//! been deployed with other values since.

use std::collections::BTreeMap;

use freehold_domain::inputs::{known_inputs, resolve_inputs};
use freehold_domain::install::Install;
use freehold_domain::install::licence::InstallLicence;
use freehold_domain::plan::{Deployed, PlanError, fingerprint};
use freehold_domain::toggles;
use freehold_protocol::ComponentName;
use freehold_protocol::app_version::{AppVersion, Component, Reference};
use serde_json::Value;

use crate::AppError;
use crate::table::RanRecord;

/// Checks that each part of `version` that was deployed after the last whole deploy has the values of that deploy, which is
/// `ran`.
///
/// # Errors
/// Conflict for a part with other values, or Invalid when the values of the last whole deploy do not fit any more.
pub(super) fn check_one_set_of_values(
    install: &Install,
    version: &AppVersion,
    ran: &RanRecord,
    parts: &BTreeMap<ComponentName, Deployed>,
) -> Result<(), AppError> {
    let later: Vec<_> = parts.values().filter(|part| part.serial > ran.serial).collect();
    if later.is_empty() {
        return Ok(());
    }
    let known = known_inputs(version, &ran.inputs);
    let inputs = resolve_inputs(version, &known, &install.answers, install.sealing())?;
    let off = toggles::off(version, &ran.toggles);
    for live in later {
        let Some(part) = version.part(&live.component) else { continue };
        if off.contains(&live.component) || !has_values(install, version, (&part, live), &inputs)? {
            let (id, name) = (&install.id, &live.component);
            return Err(AppError::conflict(format!(
                "component `{name}` of install `{id}` runs with other values than the last deploy of all components \
                 had, so there is no single set of values to roll back to; run `freehold deploy {id}` without \
                 `--verified` first"
            )));
        }
    }
    Ok(())
}

/// Returns whether a part was deployed with these inputs, and with any licence of the install: a roll back brings the newest
/// licence, and never a former one.
fn has_values(
    install: &Install,
    version: &AppVersion,
    (part, live): (&Component, &Deployed),
    inputs: &BTreeMap<String, Value>,
) -> Result<bool, PlanError> {
    let licence = install.licence.as_ref().filter(|_| part.references.contains(&Reference::Licence));
    let serials = licence.into_iter().flat_map(|licence| licence.serials(InstallLicence::floor(install.generation)));
    for serial in serials.map(Some).chain([None]) {
        if fingerprint(version, part, &live.artifact, inputs, &install.secrets, serial)? == live.fingerprint {
            return Ok(true);
        }
    }
    Ok(false)
}
