//! Sends notifications to the topic. A notification that the topic does not accept is stored as a task, which a later
//! sweep performs.

use std::sync::Arc;

use freehold_domain::drift::{DriftChange, DriftRule, DriftState};
use freehold_domain::notification::{DriftSeen, of_workflow};
use freehold_domain::plan::Deployed;
use freehold_domain::workflow::WorkflowKind;
use freehold_domain::{Install, Workflow};
use freehold_protocol::notification::Notification;
use freehold_protocol::{InstallId, Timestamp};

use super::task::notify_at;
use crate::AppError;
use crate::ports::{NotificationTopic, Store};
use crate::table::{self, Stored, load};

/// The time in seconds after which a notification that the topic did not accept is sent again.
const AGAIN_SECS: u64 = 5 * 60;
/// The time in seconds after which a notification that the topic never accepted is given up: as long as queues keep
/// messages.
const GIVEN_UP_SECS: u64 = 14 * 24 * 60 * 60;

/// Sends notifications.
#[derive(Clone)]
pub struct Notifier {
    pub store: Arc<dyn Store>,
    pub topic: Arc<dyn NotificationTopic>,
}

impl Notifier {
    /// Sends the notification of the end of a workflow, if people wait for it.
    ///
    /// # Errors
    /// The store's errors. A repeated call then sends the notification.
    pub async fn tell_end(&self, workflow: &Workflow, now: Timestamp) -> Result<(), AppError> {
        let install: Option<Stored<Install>> = load(&*self.store, &table::install_key(&workflow.install)).await?;
        let install = install.map(|found| found.value);
        let drift = match &install {
            Some(install) if workflow.kind == WorkflowKind::DetectDrift => self.drift_seen(install, workflow).await?,
            Some(_) | None => DriftSeen::default(),
        };
        match of_workflow(workflow, install.as_ref().and_then(Install::app), drift) {
            Some(notification) => self.tell(&workflow.install, &notification, now).await.map(drop),
            None => Ok(()),
        }
    }

    /// Sends a notification, and returns whether the topic accepted it. If not, stores a task of `install` that sends
    /// it again later. A notification that is older than two weeks is given up.
    ///
    /// # Errors
    /// The store's errors.
    pub async fn tell(
        &self,
        install: &InstallId,
        notification: &Notification,
        now: Timestamp,
    ) -> Result<bool, AppError> {
        let Err(error) = self.topic.publish(notification).await else { return Ok(true) };
        let (id, kind) = (&notification.id, notification.kind);
        if now.since(notification.at) / 1000 > GIVEN_UP_SECS {
            tracing::error!(
                "Notification `{id}` ({kind}) is given up: the topic has not accepted it for two weeks: {error}"
            );
            return Ok(false);
        }
        tracing::warn!("The topic did not accept notification `{id}` ({kind}); it is sent again later: {error}");
        self.tell_later(install, notification, now).await?;
        Ok(false)
    }

    /// Stores a task that sends a notification later.
    ///
    /// # Errors
    /// The store's errors.
    pub async fn tell_later(
        &self,
        install: &InstallId,
        notification: &Notification,
        now: Timestamp,
    ) -> Result<(), AppError> {
        let task = notify_at(now.plus_secs(AGAIN_SECS), install, notification.clone())?;
        let _ = self.store.commit(vec![task]).await?;
        Ok(())
    }

    /// Returns the numbers of parts and resources whose difference the check found first. Differences that people
    /// acknowledged or that a rule ignores are left out.
    async fn drift_seen(&self, install: &Install, workflow: &Workflow) -> Result<DriftSeen, AppError> {
        let parts = table::parts(&*self.store, &install.id).await?;
        let new = parts.values().map(|part| new_drift(part, &install.drift_rules, workflow)).filter(|new| *new > 0);
        Ok(new.fold(DriftSeen::default(), |seen, new| DriftSeen {
            parts: seen.parts + 1,
            resources: seen.resources + new,
        }))
    }
}

/// Returns the number of resources of a part that the check of `workflow` found to differ and that had been in sync.
fn new_drift(part: &Deployed, rules: &[DriftRule], workflow: &Workflow) -> u64 {
    let Some(drift) = &part.drift else { return 0 };
    if drift.state(part.at, |resource| DriftRule::ignore(rules, &part.component, resource)) != DriftState::Drifted {
        return 0;
    }
    let found = drift.events.iter().filter(|event| match &event.what {
        DriftChange::Found { workflow: by } => *by == workflow.id,
        DriftChange::Cleared { .. } | DriftChange::Deployed { .. } | DriftChange::Acknowledged { .. } => false,
    });
    found.map(|event| event.resources).sum()
}
