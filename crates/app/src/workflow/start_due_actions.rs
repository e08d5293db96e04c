//! Handles the tasks that are due: starts the actions and the checks for drift and health whose cron schedule is due, advances
//! runs of runbooks, rolls deploys back, brings installs to the releases of their channels, and tells people what they wait for.
//! A run of an action or a check is started once for its minute, even if a call is repeated.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use freehold_domain::cron::Schedule;
use freehold_domain::install::Install;
use freehold_domain::workflow::RunTrigger;
use freehold_protocol::api::RunActionRequest;
use freehold_protocol::app_version::{Action, AppVersion, Trigger};
use freehold_protocol::order::AskedBy;
use freehold_protocol::{ActionName, InstallId, Timestamp, WorkflowId};
use futures_util::StreamExt as _;

use crate::app_version::follow_channel::FollowChannel;
use crate::app_version::versions::Versions;
use crate::drift::detect_drift::DetectDrift;
use crate::health::check_health::CheckHealth;
use crate::notification::notifier::Notifier;
use crate::notification::runner_watch;
use crate::ports::{Clock, Committed, Expect, Machines, Store, Write};
use crate::runbook::advance_run::AdvanceRun;
use crate::table::{self, Due, DueWhat, Record as _, SkippedRun, Stored, load, put};
use crate::workflow::check::{self, Scheduled, ScheduledCheck, next_check, start_scheduled};
use crate::workflow::roll_back::RollBackDeploy;
use crate::workflow::run_action::RunAction;
use crate::workflow::start_workflow::Asked;
use crate::{AppError, Kind};

/// The maximum number of rows that one call handles; the other rows are handled a minute later.
const MOST: usize = 500;
/// The number of installs whose tasks are handled at the same time.
const AT_ONCE: usize = 8;
/// The time after which one call handles no further row, in seconds: the sweep has its turn in the same run of the function.
const MOST_SECS: u64 = 15;
/// The longest time after which the task of a workflow that is open is looked at again, in seconds.
const LONGEST_PAUSE_SECS: u64 = 15 * 60;
/// The time after which a task is tried again that failed for another reason than trouble that passes, in seconds.
const HELD_SECS: u64 = 10 * 60;
/// The maximum delay of a run, in seconds; a run that is later is skipped.
const LATE_SECS: u64 = 60 * 60;

/// The use case that starts due actions, with its ports.
#[derive(Clone)]
pub struct StartDueActions {
    pub store: Arc<dyn Store>,
    pub versions: Versions,
    pub machines: Arc<dyn Machines>,
    pub notifier: Notifier,
    pub clock: Arc<dyn Clock>,
}

/// The numbers of runs and rows that one call handled, by result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Started {
    pub started: u32,
    /// The number of skipped runs, for the reasons in [`StartDueActions::start`].
    pub skipped: u32,
    /// The number of rows that could not be handled; the next call tries them again.
    pub failed: u32,
    /// The number of rows for which there was no time; the next call handles them.
    pub left: u32,
}

/// What the tasks of one call share.
struct Call {
    now: Timestamp,
    /// Whether the topic did not take a notification. The others then wait, because each try may take seconds.
    is_topic_silent: AtomicBool,
}

impl Started {
    fn add(&mut self, other: Self) {
        let Self { started, skipped, failed, left } = other;
        self.started += started;
        self.skipped += skipped;
        self.failed += failed;
        self.left += left;
    }

    /// Counts what became of a check that was due.
    fn note(&mut self, what: &str, install: &Install, scheduled: Scheduled) {
        match scheduled {
            Scheduled::Started => self.started += 1,
            Scheduled::NotDue => {}
            Scheduled::Skipped(reason) => {
                self.skipped += 1;
                tracing::info!(install.id = %install.id, "Skipped a check of the {what} of `{}`: {reason}", install.id);
            }
        }
    }
}

impl StartDueActions {
    /// Starts every run that is due. The id of a run is derived from the minute at which it was due, so that repeated
    /// calls start it only once.
    ///
    /// If several runs of an action were missed, the earliest is started if it was due within the last hour; the others
    /// are skipped. A run is also skipped while the preceding run has not ended, and while the install refuses runs: it
    /// is disabled, has no runner, or its customer has not accepted the terms. A started run waits for a free slot of
    /// the runner.
    ///
    /// # Errors
    /// The store's errors when the list of due tasks cannot be read.
    pub async fn start(&self) -> Result<Started, AppError> {
        let now = self.clock.now();
        let call = Call { now, is_topic_silent: AtomicBool::new(false) };
        let due = table::due(&*self.store, now, MOST).await?;
        // What a person waits for comes before what a schedule asks for.
        let (waited_for, others) = due.into_iter().partition(|row| row.value.what.is_waited_for());
        let mut counts = Started::default();
        for rows in [waited_for, others] {
            let groups = in_turns(rows);
            let groups = futures_util::stream::iter(groups.iter().map(|rows| self.handle_in_turn(rows, &call)));
            let mut handled = groups.buffer_unordered(AT_ONCE);
            while let Some(one) = handled.next().await {
                counts.add(one);
            }
        }
        if counts.left > 0 {
            tracing::warn!("Had no time for {} tasks that are due; the next call continues", counts.left);
        }
        Ok(counts)
    }

    /// Handles rows one after the other, as long as there is time.
    async fn handle_in_turn(&self, rows: &[Stored<Due>], call: &Call) -> Started {
        let mut counts = Started::default();
        for row in rows {
            if self.clock.now().since(call.now) > MOST_SECS * 1000 {
                counts.left += 1;
                continue;
            }
            let Err(error) = self.handle(row, call, &mut counts).await else { continue };
            let install = &row.value.install;
            tracing::warn!(install.id = %install, "Could not handle a task that is due in install `{install}`; a later call \
                                                   tries again: {error}");
            counts.failed += 1;
            if !error.is_transient()
                && let Err(error) = self.hold(row, call.now).await
            {
                tracing::warn!(install.id = %install, "Could not hold a task of install `{install}`: {error}");
            }
        }
        counts
    }

    async fn handle(&self, row: &Stored<Due>, call: &Call, counts: &mut Started) -> Result<(), AppError> {
        let Due { install, what, .. } = &row.value;
        let now = call.now;
        match what {
            DueWhat::Schedules { workflow } => self.add_schedules(row, workflow, now).await,
            DueWhat::Drift => self.check(&self.detect_drift(), row, now, counts).await,
            DueWhat::Health => self.check(&self.check_health(), row, now, counts).await,
            DueWhat::Runbook { run } => {
                self.advance_run().advance(run).await?;
                self.replace(row, Vec::new()).await
            }
            DueWhat::RollBack { workflow } => {
                self.roll_back().roll_back(workflow).await?;
                self.replace(row, Vec::new()).await
            }
            DueWhat::Channel { app, channel, moves, after } => {
                let next = self.follow_channel().spread(app, channel, (*moves, after.as_ref())).await?;
                self.replace(row, next.into_iter().collect()).await
            }
            DueWhat::Follow { by, moves, tries } => {
                let next = self.follow_channel().follow(install, by, (*moves, *tries)).await?;
                self.replace(row, next.into_iter().collect()).await
            }
            DueWhat::RunnerAway => self.commit(runner_watch::look(&*self.store, row, now).await?).await,
            DueWhat::Notify { notification } => {
                if call.is_topic_silent.load(Ordering::Relaxed) {
                    self.notifier.tell_later(install, notification, now).await?;
                } else if !self.notifier.tell(install, notification, now).await? {
                    call.is_topic_silent.store(true, Ordering::Relaxed);
                }
                self.replace(row, Vec::new()).await
            }
            DueWhat::Run { action, .. } => {
                let next = match self.kept(install).await? {
                    Some(found) => self.run(row, &found, action, now, counts).await?,
                    None => None,
                };
                self.replace(row, next.into_iter().collect()).await
            }
        }
    }

    /// Adds the cron runs of the install's deployed version, once the workflow has ended.
    async fn add_schedules(&self, row: &Stored<Due>, workflow: &WorkflowId, now: Timestamp) -> Result<(), AppError> {
        let found = table::find_workflow(&*self.store, workflow).await?.map(|found| found.value);
        if let Some(open) = found.filter(|found| !found.state.is_terminal()) {
            // It may wait for days, and is not to keep the other tasks from being read.
            let pause = (now.since(open.began_at()) / 4000).clamp(60, LONGEST_PAUSE_SECS);
            let later = Due::at(now.plus_secs(pause), row.value.install.clone(), row.value.what.clone());
            let removed = Write::DeleteAt { key: row.value.key(), rev: row.rev };
            return self.commit(vec![removed, put(&later, Expect::Absent)?]).await;
        }
        let id = &row.value.install;
        let install = self.kept(id).await?;
        if let Some(version) = self.deployed(install.as_ref()).await? {
            for action in &version.actions {
                let Some(next) = next_run(action, now) else { continue };
                let what = DueWhat::Run { action: action.name.clone(), last: None };
                // A run that is stored already is not overwritten, because its row names the preceding run.
                let _ = self.store.commit(vec![put(&Due::at(next, id.clone(), what), Expect::Absent)?]).await?;
            }
            let checks = [next_check::<DetectDrift>(&version, id, now), next_check::<CheckHealth>(&version, id, now)];
            for next in checks.into_iter().flatten() {
                let _ = self.store.commit(vec![put(&next, Expect::Any)?]).await?;
            }
        }
        self.replace(row, Vec::new()).await
    }

    /// Starts or skips a run, and returns the next run of the action, if there is one.
    async fn run(
        &self,
        row: &Stored<Due>,
        install: &Install,
        name: &ActionName,
        now: Timestamp,
        counts: &mut Started,
    ) -> Result<Option<Due>, AppError> {
        let last = match &row.value.what {
            DueWhat::Run { last, .. } => last.as_ref(),
            DueWhat::Schedules { .. }
            | DueWhat::Drift
            | DueWhat::Health
            | DueWhat::Runbook { .. }
            | DueWhat::RollBack { .. }
            | DueWhat::Channel { .. }
            | DueWhat::Follow { .. }
            | DueWhat::RunnerAway
            | DueWhat::Notify { .. } => None,
        };
        let version = self.deployed(Some(install)).await?;
        let action = version.as_ref().and_then(|version| version.action(name));
        let Some((action, next)) = action.and_then(|action| Some((action, next_run(action, now)?))) else {
            self.note(&install.id, name, None).await?;
            return Ok(None);
        };
        let due = row.value.time();
        let skipped = if !schedules(action).any(|schedule| schedule.is_due(due)) {
            // The schedule has changed since the row was written.
            Some(String::new())
        } else if now.since(due) / 1000 > LATE_SECS {
            Some("it was due more than an hour ago".to_owned())
        } else if self.is_open(last).await? {
            Some("the previous run has not ended".to_owned())
        } else {
            None
        };
        let is_asked = skipped.is_none();
        let started = match skipped {
            Some(reason) => Err(reason),
            None => self.start_run(&install.id, name, row.value.minute).await?,
        };
        let last = match started {
            Ok(workflow) => {
                counts.started += 1;
                self.note(&install.id, name, None).await?;
                Some(workflow)
            }
            Err(reason) if reason.is_empty() => last.cloned(),
            Err(reason) => {
                counts.skipped += 1;
                tracing::warn!(install.id = %install.id, "Skipped a run of action `{name}` in `{}`: {reason}", install.id);
                if is_asked {
                    self.note(&install.id, name, Some((due, reason))).await?;
                }
                last.cloned()
            }
        };
        Ok(Some(Due::at(next, install.id.clone(), DueWhat::Run { action: name.clone(), last })))
    }

    /// Starts or skips the check of this minute, and writes the task for the next one, if there is one.
    async fn check<C: ScheduledCheck>(
        &self,
        check: &C,
        row: &Stored<Due>,
        now: Timestamp,
        counts: &mut Started,
    ) -> Result<(), AppError> {
        let install = self.kept(&row.value.install).await?;
        let version = self.deployed(install.as_ref()).await?;
        let Some((install, version)) = install.as_ref().zip(version) else {
            return self.replace(row, Vec::new()).await;
        };
        let due = row.value.time();
        let scheduled = match is_missed(due, now) {
            Some(missed) => missed,
            None => start_scheduled(check, &*self.store, (install, &*version), due, self.clock.now()).await?,
        };
        counts.note(C::WHAT, install, scheduled);
        let next = next_check::<C>(&version, &install.id, now);
        self.replace(row, next.into_iter().collect()).await
    }

    fn check_health(&self) -> CheckHealth {
        CheckHealth {
            store: Arc::clone(&self.store),
            versions: self.versions.clone(),
            machines: Arc::clone(&self.machines),
            clock: Arc::clone(&self.clock),
        }
    }

    fn follow_channel(&self) -> FollowChannel {
        FollowChannel {
            store: Arc::clone(&self.store),
            versions: self.versions.clone(),
            machines: Arc::clone(&self.machines),
            clock: Arc::clone(&self.clock),
        }
    }

    fn detect_drift(&self) -> DetectDrift {
        DetectDrift {
            store: Arc::clone(&self.store),
            versions: self.versions.clone(),
            machines: Arc::clone(&self.machines),
            clock: Arc::clone(&self.clock),
        }
    }

    /// Stores the reason why the install refused a run, for `freehold install show`; after a run that was not refused,
    /// removes the stored reason. Whether a reason is stored is read from the row of the reason, and is not noted in
    /// the row of the due task: an action can have several due tasks, and this call can end before the next one is
    /// written.
    async fn note(
        &self,
        install: &InstallId,
        action: &ActionName,
        skipped: Option<(Timestamp, String)>,
    ) -> Result<(), AppError> {
        let key = table::skipped_key(install, action);
        let write = match skipped {
            Some((due, reason)) => {
                put(&SkippedRun { install: install.clone(), action: action.clone(), due, reason }, Expect::Any)?
            }
            None if self.store.get(&key).await?.is_none() => return Ok(()),
            None => Write::Delete { key },
        };
        let _ = self.store.commit(vec![write]).await?;
        Ok(())
    }

    /// Starts the run that is due at `minute`. Returns the reason if the install refuses the run.
    async fn start_run(
        &self,
        install: &InstallId,
        action: &ActionName,
        minute: u64,
    ) -> Result<Result<WorkflowId, String>, AppError> {
        let run = RunAction {
            store: Arc::clone(&self.store),
            versions: self.versions.clone(),
            machines: Arc::clone(&self.machines),
            clock: Arc::clone(&self.clock),
        };
        let cause = format!("cron {action} {minute}");
        let asked = Asked { by: &AskedBy::Schedule, cause: &cause, step: None };
        match run.run(install, action, &RunActionRequest::default(), (RunTrigger::Schedule, asked)).await {
            Ok(started) => Ok(Ok(started.workflow)),
            Err(error) => match error.kind {
                Kind::Invalid | Kind::NotFound | Kind::Conflict => Ok(Err(error.message)),
                _ => Err(error),
            },
        }
    }

    fn roll_back(&self) -> RollBackDeploy {
        let (versions, machines, clock) = (self.versions.clone(), Arc::clone(&self.machines), Arc::clone(&self.clock));
        RollBackDeploy { versions, machines, clock }
    }

    fn advance_run(&self) -> AdvanceRun {
        let (store, machines, clock) = (Arc::clone(&self.store), Arc::clone(&self.machines), Arc::clone(&self.clock));
        AdvanceRun::new(store, self.versions.clone(), machines, clock)
    }

    /// Returns the install, unless it is gone or is being forgotten.
    async fn kept(&self, id: &InstallId) -> Result<Option<Install>, AppError> {
        let found: Option<Stored<Install>> = load(&*self.store, &table::install_key(id)).await?;
        Ok(found.map(|found| found.value).filter(|install| install.forgetting.is_none()))
    }

    async fn is_open(&self, workflow: Option<&WorkflowId>) -> Result<bool, AppError> {
        let Some(workflow) = workflow else { return Ok(false) };
        let found = table::find_workflow(&*self.store, workflow).await?;
        Ok(found.is_some_and(|found| !found.value.state.is_terminal()))
    }

    /// Returns the version that was last deployed completely to the install.
    async fn deployed(&self, install: Option<&Install>) -> Result<Option<Arc<AppVersion>>, AppError> {
        let Some((app, version)) = install.and_then(|install| install.app().zip(install.version())) else {
            return Ok(None);
        };
        Ok(Some(self.versions.load(app, Some(version)).await?.document))
    }

    /// Removes a row that was handled, and writes `next`.
    async fn replace(&self, row: &Stored<Due>, next: Vec<Due>) -> Result<(), AppError> {
        let mut writes = vec![Write::DeleteAt { key: row.value.key(), rev: row.rev }];
        for due in &next {
            writes.push(put(due, Expect::Any)?);
        }
        self.commit(writes).await
    }

    /// Keeps a task that failed from being read for a while: a row that nobody can handle must not stop the others.
    async fn hold(&self, row: &Stored<Due>, now: Timestamp) -> Result<(), AppError> {
        let held = row.value.clone().held_until(now.plus_secs(HELD_SECS));
        self.commit(vec![put(&held, Expect::Rev(row.rev))?]).await
    }

    /// Commits what handles a row. After a conflict nothing is left to do: another call handled the row, or the next call finds
    /// it as it is.
    async fn commit(&self, writes: Vec<Write>) -> Result<(), AppError> {
        match self.store.commit(writes).await? {
            Committed::Done | Committed::Conflict(_) => Ok(()),
        }
    }
}

/// Returns why a check that was due at `due` is not started any more; `None` if it was due within the last hour.
fn is_missed(due: Timestamp, now: Timestamp) -> Option<Scheduled> {
    let is_late = now.since(due) / 1000 > LATE_SECS;
    is_late.then(|| Scheduled::Skipped("it was due more than an hour ago".to_owned()))
}

/// Returns the schedules of an action's triggers. A schedule that cannot be parsed is left out; `freehold app sync`
/// refuses such a schedule.
fn schedules(action: &Action) -> impl Iterator<Item = Schedule> {
    action.triggers.iter().filter_map(|trigger| match trigger {
        Trigger::Cron { schedule } => Schedule::parse(schedule).ok(),
        Trigger::Manual
        | Trigger::PostProvision
        | Trigger::PostDeployComponent { .. }
        | Trigger::PostDeployAllComponents
        | Trigger::Event { .. } => None,
    })
}

/// Returns the next minute at which an action is due.
fn next_run(action: &Action, now: Timestamp) -> Option<Timestamp> {
    schedules(action).filter_map(|schedule| schedule.next_after(now)).min()
}

/// Returns the rows in groups: those of a group are handled one after the other, because they change the same install, or because
/// the topic takes them.
fn in_turns(due: Vec<Stored<Due>>) -> Vec<Vec<Stored<Due>>> {
    let mut groups: Vec<Vec<Stored<Due>>> = Vec::new();
    let mut places: BTreeMap<Option<InstallId>, usize> = BTreeMap::new();
    for row in due {
        let is_told = matches!(row.value.what, DueWhat::Notify { .. });
        let install = (!is_told).then(|| row.value.install.clone());
        match places.get(&install).and_then(|place| groups.get_mut(*place)) {
            Some(group) => group.push(row),
            None => {
                places.insert(install, groups.len());
                groups.push(vec![row]);
            }
        }
    }
    groups
}

/// Returns whether a version has an action or a check with a schedule.
pub(crate) fn has_schedules(version: &AppVersion) -> bool {
    check::has_schedules::<DetectDrift>(version)
        || check::has_schedules::<CheckHealth>(version)
        || version.actions.iter().any(|action| schedules(action).next().is_some())
}
