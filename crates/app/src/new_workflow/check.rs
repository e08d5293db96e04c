//! Checks of the drift and the health of deployed parts: the start of a check, when a check is refused, and when a
//! schedule starts one. A check changes nothing in the install.

use std::collections::BTreeSet;

use freehold_domain::cron::Schedule;
use freehold_domain::install::connection::ConnectionState;
use freehold_domain::install::{Install, InstallError};
use freehold_domain::spread;
use freehold_domain::workflow::{Request, RollBack, WorkflowKind};
use freehold_protocol::app_version::{AppVersion, Component};
use freehold_protocol::order::{AskedBy, Mode};
use freehold_protocol::{ComponentName, Digest, InstallId, Timestamp, WorkflowId};
use serde::Serialize;

use super::{Asked, NewWorkflow, came_before, digest_of, require_runner, start};
use crate::AppError;
use crate::ports::{Machines, Store, Write};
use crate::table::{self, Contact, Due, DueWhat, Stored};

/// A request for a check.
#[derive(Debug)]
pub(crate) struct NewCheck<'a> {
    install: &'a InstallId,
    kind: WorkflowKind,
    request: Request,
    /// The digest of the request's body.
    digest: Digest,
    asked: Asked<'a>,
}

impl<'a> NewCheck<'a> {
    /// Returns the check that a request with this `body` asks for.
    ///
    /// # Errors
    /// Internal when the body cannot be written as JSON.
    pub(crate) fn of(
        install: &'a InstallId,
        kind: WorkflowKind,
        request: Request,
        body: &impl Serialize,
        asked: Asked<'a>,
    ) -> Result<Self, AppError> {
        Ok(Self { install, kind, request, digest: digest_of(body)?, asked })
    }

    /// Returns the id of the check's workflow.
    pub(crate) fn id(&self) -> WorkflowId {
        WorkflowId::derive(self.install.as_str(), self.asked.cause)
    }

    /// Returns the install, with the check's id in it, if the install can be checked now; `None` if an earlier call of
    /// the same cause started the check.
    ///
    /// # Errors
    /// NotFound for an unknown install. Conflict if the install has no runner, if a workflow changes it (the check would see
    /// a half-finished change), or if another check of this kind is running. The ports' errors.
    pub(crate) async fn hold(
        &self,
        store: &dyn Store,
        machines: &dyn Machines,
    ) -> Result<Option<Stored<Install>>, AppError> {
        if came_before(store, machines, &self.id(), self.install, self.kind, &self.digest).await?.is_some() {
            return Ok(None);
        }
        let mut held = table::install(store, self.install).await?;
        let install = &mut held.value;
        install.require_app()?;
        require_runner(install)?;
        if let Some(live) = &install.live {
            return Err(InstallError::Live { install: install.id.clone(), live: live.clone() }.into());
        }
        let is_of_health = self.kind == WorkflowKind::CheckHealth;
        let (check, what) =
            if is_of_health { (&mut install.health_check, "health") } else { (&mut install.checking, "drift") };
        let Some(before) = check.replace(self.id()) else { return Ok(Some(held)) };
        match table::find_workflow(store, &before).await? {
            Some(found) if !found.value.state.is_terminal() => Err(AppError::conflict(format!(
                "the {what} of install `{}` is being checked by `{before}`; wait for it or cancel it",
                self.install
            ))),
            Some(_) | None => Ok(Some(held)),
        }
    }

    /// Commits the check's workflow and the writes `more` with the install that [`Self::hold`] returned, and starts the
    /// workflow. Returns its id.
    ///
    /// # Errors
    /// Conflict if the install changed meanwhile, or the ports' errors.
    pub(crate) async fn start(
        self,
        store: &dyn Store,
        machines: &dyn Machines,
        now: Timestamp,
        held: &Stored<Install>,
        more: Vec<Write>,
    ) -> Result<WorkflowId, AppError> {
        let id = self.id();
        start(store, machines, now, held, self.workflow(), more).await?;
        Ok(id)
    }

    /// Returns the workflow that is to be started.
    fn workflow(self) -> NewWorkflow {
        NewWorkflow {
            id: self.id(),
            kind: self.kind,
            mode: Mode::Maintenance,
            request: self.request,
            digest: Some(self.digest),
            asked_by: self.asked.by.clone(),
            run: None,
            now: false,
            roll_back: RollBack::None,
        }
    }
}

/// A use case that starts checks, on request or by the schedules of an app version.
pub(crate) trait ScheduledCheck: Sync {
    /// The name of the check in logs and in the cause of a scheduled check.
    const WHAT: &'static str;
    /// The task that starts the check.
    const DUE: DueWhat;

    /// Returns the schedule of a part; `None` for a part that has no schedule or is not checked. A schedule that cannot
    /// be parsed is left out; `freehold app sync` refuses such a schedule.
    fn schedule(part: &Component) -> Option<Schedule>;

    /// Starts a check of the parts `only`. A repeated call with the same cause starts nothing.
    fn start(
        &self,
        install: &InstallId,
        only: BTreeSet<ComponentName>,
        asked: Asked<'_>,
    ) -> impl Future<Output = Result<WorkflowId, AppError>> + Send;
}

/// Returns the task for the next minute at which parts of the install are to be checked.
pub(crate) fn next_check<C: ScheduledCheck>(version: &AppVersion, install: &InstallId, now: Timestamp) -> Option<Due> {
    let next = version.parts().filter_map(|part| spread::next_check(&C::schedule(&part)?, install, now)).min()?;
    Some(Due::at(next, install.clone(), C::DUE))
}

/// Returns whether a version has a part that is checked by schedule.
pub(crate) fn has_schedules<C: ScheduledCheck>(version: &AppVersion) -> bool {
    version.parts().any(|part| C::schedule(&part).is_some())
}

/// Starts the check of the parts that are due in the minute of `due`, once for this minute. The check is skipped when
/// the previous check has not ended, while a workflow changes the install, and while the runner takes no orders at
/// `now`.
///
/// # Errors
/// The ports' errors.
pub(crate) async fn start_scheduled<C: ScheduledCheck>(
    check: &C,
    store: &dyn Store,
    (install, version): (&Install, &AppVersion),
    due: Timestamp,
    now: Timestamp,
) -> Result<Scheduled, AppError> {
    let deployed = table::deployed(store, &install.id).await?;
    let is_due = |part: &Component| {
        let schedule = C::schedule(part).filter(|_| deployed.contains_key(&part.name));
        schedule.is_some_and(|schedule| spread::is_due(&schedule, &install.id, due))
    };
    let only: BTreeSet<_> = version.parts().filter(|part| is_due(part)).map(|part| part.name.clone()).collect();
    if only.is_empty() {
        return Ok(Scheduled::NotDue);
    }
    if let Some(reason) = is_away(store, install, now).await? {
        return Ok(Scheduled::Skipped(reason));
    }
    // The same minute has one cause, so that a repeated call starts nothing.
    let cause = format!("{} {}", C::WHAT, due.as_millis());
    let asked = Asked { by: &AskedBy::Schedule, cause: &cause, step: None };
    Scheduled::of(check.start(&install.id, only, asked).await)
}

/// The start of a check that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Scheduled {
    /// The check of this minute was started, now or by an earlier call.
    Started,
    /// No schedule is due, because the version has changed since.
    NotDue,
    /// The check is skipped until the next minute of the schedule.
    Skipped(String),
}

impl Scheduled {
    /// Returns the result of a start. A check that the install refuses is tried again at the next minute of the
    /// schedule.
    ///
    /// # Errors
    /// Every other error.
    fn of(started: Result<WorkflowId, AppError>) -> Result<Self, AppError> {
        match started {
            Ok(_) => Ok(Self::Started),
            Err(error) => error.refusal().map(Self::Skipped),
        }
    }
}

/// Returns why the install's runner takes no orders at `now`; `None` if it takes orders, as far as is known. A check
/// does not wait for a runner, because the next check finds the same.
///
/// # Errors
/// The store's errors.
async fn is_away(store: &dyn Store, install: &Install, now: Timestamp) -> Result<Option<String>, AppError> {
    let contact = table::load::<Contact>(store, &table::contact_key(&install.id)).await?;
    let Some(contact) = contact else { return Ok(None) };
    let contact = contact.value.contact;
    let connection = contact.connection(Some(contact.at), now);
    let is_away = connection.state != ConnectionState::Connected;
    Ok(is_away.then(|| format!("the runner takes no orders: it is {}", connection.state.as_str())))
}
