//! Stores an app version.

use std::collections::BTreeMap;
use std::sync::Arc;

use freehold_domain::cron::{NotCron, Schedule};
use freehold_domain::graph::component_nodes;
use freehold_domain::graph::order::{self, Disorder};
use freehold_domain::install::labels;
use freehold_domain::runbook::{RunInputsError, check_run_size, check_steps, inputs_of_run};
use freehold_protocol::api::VersionView;
use freehold_protocol::app_version::{AppVersion, FORMAT, Trigger, check_size};
use freehold_protocol::limits::MAX_POST_DEPLOY_RUNBOOKS;
use freehold_protocol::{AppName, Digest, canonical};

use crate::AppError;
use crate::app_version::versions::{Versions, components};
use crate::contract::terms;
use crate::ports::{Clock, Expect};
use crate::read::version_view;
use crate::table::{self, AppRecord, Decided, Stored, VersionRecord, app_key, load, put, version_key};

/// The use case that syncs an app, with its ports.
#[derive(Clone)]
pub struct SyncApp {
    pub versions: Versions,
    pub clock: Arc<dyn Clock>,
}

impl SyncApp {
    /// Stores `document` as the app's latest version. A document that was stored before keeps its version number.
    ///
    /// # Errors
    /// Invalid for a document that is too large or that belongs to another app, or the ports' errors.
    pub async fn sync(&self, app: &AppName, document: &AppVersion) -> Result<VersionView, AppError> {
        let bytes = check(app, document)?;
        let version = Digest::of(&bytes);
        // The object is written before the row that names it, so that a reader of the row always finds the document.
        let place = self.versions.put(&version, document, &bytes).await?;
        let store = &*self.versions.store;
        terms::keep(store, document).await?;
        let (record, changed) = table::change(store, ("app", app), || async {
            let known: Option<Stored<AppRecord>> = load(store, &app_key(app)).await?;
            let existing: Option<Stored<VersionRecord>> = load(store, &version_key(app, &version)).await?;
            let now = self.clock.now();
            let record = match &existing {
                Some(existing) => existing.value.clone(),
                None => VersionRecord {
                    app: app.clone(),
                    version: version.clone(),
                    number: known.as_ref().map_or(0, |known| known.value.number) + 1,
                    created_at: now,
                    components: components(document),
                    document: place.clone(),
                },
            };
            let is_latest = known.as_ref().is_some_and(|known| known.value.latest == version);
            if is_latest && existing.is_some() {
                return Ok(Decided::Keep((record, false)));
            }
            let number = known.as_ref().map_or(0, |known| known.value.number).max(record.number);
            let latest = AppRecord {
                app: app.clone(),
                latest: version.clone(),
                number,
                updated_at: now,
                default_labels: document.default_labels.clone(),
            };
            let expect = known.map_or(Expect::Absent, |known| Expect::Rev(known.rev));
            let mut writes = vec![put(&latest, expect)?, put(&record.entry(), Expect::Any)?];
            if existing.is_none() {
                writes.push(put(&record, Expect::Absent)?);
            }
            Ok(Decided::Commit(writes, (record, true)))
        })
        .await?;
        if changed {
            tracing::info!("Synced version {} of app `{app}`", record.number);
        }
        Ok(version_view(record.entry()))
    }
}

/// Checks that a document may be stored, and returns its canonical bytes.
fn check(app: &AppName, document: &AppVersion) -> Result<Vec<u8>, AppError> {
    if document.app != *app {
        return Err(AppError::invalid(format!("document is for app `{}`, not for app `{app}`", document.app)));
    }
    if document.format != FORMAT {
        return Err(AppError::invalid(format!(
            "document has format {}, expected {FORMAT}; use the `freehold` command of the tenant's release",
            document.format
        )));
    }
    let bytes = canonical::to_vec(document).map_err(|e| AppError::invalid(format!("app `{app}`: {e}")))?;
    check_size(&bytes).map_err(|e| AppError::invalid(format!("app `{app}` is too large: {e}")))?;
    labels::check(&document.default_labels).map_err(|e| AppError::invalid(format!("`default_labels`: {e}")))?;
    check_components(document)?;
    check_schedules(document)?;
    check_post_deploy_runbooks(document)?;
    terms::digest(document)?;
    crate::stack::render_stack::check(document)?;
    Ok(bytes)
}

/// Checks the dependencies again, because the control plane does not trust the check that a client made.
fn check_components(document: &AppVersion) -> Result<(), AppError> {
    order::check(&component_nodes(document)).map_err(|found| {
        AppError::invalid(match found {
            Disorder::Duplicate(name) => format!("two components are called `{name}`"),
            Disorder::Unknown { node, missing } => {
                format!("component `{node}` depends on `{missing}`, which does not exist")
            }
            Disorder::Cycle(name) => format!("component `{name}` depends on itself through other components"),
        })
    })
}

/// Checks the runbooks that run after a deploy again: a runbook that needs a person, or whose run
/// is too large, would never run.
fn check_post_deploy_runbooks(document: &AppVersion) -> Result<(), AppError> {
    let names = &document.post_deploy_runbooks;
    if names.len() > MAX_POST_DEPLOY_RUNBOOKS {
        return Err(AppError::invalid(format!(
            "`post_deploy_runbooks` names {} runbooks, more than the maximum of {MAX_POST_DEPLOY_RUNBOOKS}; join some of \
             them",
            names.len()
        )));
    }
    for (at, name) in names.iter().enumerate() {
        if names.iter().take(at).any(|earlier| earlier == name) {
            let message = format!("`post_deploy_runbooks` names runbook `{name}` twice; remove one of the two");
            return Err(AppError::invalid(message));
        }
        let Some(runbook) = document.runbooks.iter().find(|runbook| runbook.name == *name) else {
            return Err(AppError::invalid(format!("`post_deploy_runbooks`: the app has no runbook `{name}`")));
        };
        check_steps(runbook)?;
        match inputs_of_run(runbook, &document.actions, &BTreeMap::new()) {
            Err(RunInputsError::Missing { of, input }) => {
                return Err(AppError::invalid(format!(
                    "`post_deploy_runbooks`: {of} requires input `{input}`, and nobody gives inputs to a run after a \
                     deploy; give the input a default"
                )));
            }
            inputs => check_run_size(runbook, &inputs?)?,
        }
    }
    Ok(())
}

/// Checks the cron schedules again: an action with an unreadable schedule would never run, and nobody would see why. A
/// drift check every minute would cause one order and one plan per minute in each install.
fn check_schedules(document: &AppVersion) -> Result<(), AppError> {
    for action in &document.actions {
        for trigger in &action.triggers {
            if let Trigger::Cron { schedule } = trigger
                && let Err(NotCron { message, .. }) = Schedule::parse(schedule)
            {
                let name = &action.name;
                return Err(AppError::invalid(format!("action `{name}`: cron schedule `{schedule}`: {message}")));
            }
        }
    }
    for part in document.parts() {
        let text = &part.settings.drift_schedule;
        if Schedule::parse(text).is_ok_and(|schedule| !schedule.is_at_most_hourly()) {
            let name = &part.name;
            return Err(AppError::invalid(format!(
                "component `{name}`: `drift_schedule` `{text}` is due more than once an hour; write one minute of the hour, \
                 such as `0 * * * *`"
            )));
        }
    }
    Ok(())
}
