//! The notification about a gate that waits for required checks.

use std::collections::BTreeSet;

use freehold_protocol::notification::{Notification, NotificationKind};
use freehold_protocol::{AppName, CheckName, Digest};

use super::draft::{draft, utc};
use crate::job::{Job, JobState};
use crate::required_checks::named;

/// Returns the notification about the job of a gate that waits for required checks, of which `missing` have no result;
/// `None` for every other job. `version` is the app version of the job's workflow. Each dispatch of a job has one
/// notification.
pub fn of_checks(
    job: &Job,
    app: Option<&AppName>,
    version: Option<&Digest>,
    missing: &BTreeSet<CheckName>,
) -> Option<Notification> {
    let (JobState::WaitingForChecks { fence, since, until, .. }, Some(checks)) = (&job.state, &job.checks) else {
        return None;
    };
    let (install, component) = (&job.install, &checks.component);
    let version = version.map(|version| format!(" in version {}", version.short())).unwrap_or_default();
    let subject = format!("Freehold: {install}: {component} waits for required checks");
    let text = format!(
        "Component {component} of install {install} is deployed{version} and healthy. Its gate waits for {} until {}. Report each \
         result with `freehold check report {install} {component} NAME passed`, or with `failed`.",
        named(missing),
        utc(*until)
    );
    let cause = [job.id.as_str(), &fence.dispatch.to_string()];
    let notification = draft(NotificationKind::ChecksAwaited, &cause, (Some(install), app), (*since, subject, text));
    let command = format!("freehold job show {}", job.id);
    let (workflow, job) = (Some(job.workflow.clone()), Some(job.id.clone()));
    Some(Notification { workflow, job, command, ..notification }.limited())
}
