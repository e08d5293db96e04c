//! The notification about roles of an app that trust a principal outside of the customer's account.

use std::collections::BTreeSet;

use freehold_protocol::notification::{Notification, NotificationKind};
use freehold_protocol::{AppName, IamRoleName, Timestamp};

use super::draft::draft;
use crate::job::Job;

/// The maximum number of roles that a text names.
const MOST_ROLES: usize = 10;

/// Returns the notification about the roles that the runner found to trust a stranger after `job`; `None` if there is
/// no role. The reports queue took the runner's report at `at`.
pub fn of_strangers(
    job: &Job,
    app: Option<&AppName>,
    roles: &BTreeSet<IamRoleName>,
    at: Timestamp,
) -> Option<Notification> {
    let (first, install) = (roles.first()?, &job.install);
    let (may_assume, trust) = match roles.len() {
        1 => (format!("a stranger may assume role {first}"), format!("Role {first} of install {install} trusts")),
        count => {
            let named = roles.iter().take(MOST_ROLES).map(IamRoleName::as_str).collect::<Vec<_>>().join(", ");
            let more = count.saturating_sub(MOST_ROLES);
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            (
                format!("strangers may assume {count} roles"),
                format!("The roles {named}{more} of install {install} trust"),
            )
        }
    };
    let text = format!(
        "{trust} a principal outside of the customer's account, as the runner found after job {} ({}). The audit log \
         in the customer's bucket names the principal. Each job that may make roles fails until somebody deletes the \
         role or removes the trust.",
        job.id, job.node
    );
    let cause = [job.id.as_str(), &at.as_millis().to_string()];
    let subject = format!("Freehold: {install}: {may_assume}");
    let notification = draft(NotificationKind::StrangerTrusted, &cause, (Some(install), app), (at, subject, text));
    let command = format!("freehold job show {}", job.id);
    let (workflow, job) = (Some(job.workflow.clone()), Some(job.id.clone()));
    Some(Notification { workflow, job, command, ..notification }.limited())
}
