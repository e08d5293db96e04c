//! Handles the tasks that are due: starts the actions and the checks for drift and health whose cron schedule is due,
//! advances runs of runbooks, starts the runbooks of deploys that succeeded, rolls deploys back, brings installs to the
//! releases of their channels, starts the actions of roles that a customer has switched, and sends notifications. A run of
//! an action or a check is started once for its minute, even if a call is repeated.

mod role_actions;
mod scheduled_actions;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use freehold_domain::install::Install;
use freehold_protocol::app_version::AppVersion;
use freehold_protocol::notification::{Notification, NotificationKind};
use freehold_protocol::{InstallId, Timestamp, WorkflowId};
use futures_util::StreamExt as _;
use tracing::{Instrument as _, Span};

use crate::AppError;
use crate::app_version::versions::Versions;
use crate::drift::detect_drift::DetectDrift;
use crate::health::check_health::CheckHealth;
use crate::metrics::{self, About, Metric};
use crate::new_workflow::check::{Scheduled, ScheduledCheck, next_check, start_scheduled};
use crate::notification::notifier::Notifier;
use crate::notification::runner_watch;
use crate::ports::{Clock, Committed, Expect, Machines, Store, Write};
use crate::release::follow_channel::FollowChannel;
use crate::runbook::advance_run::AdvanceRun;
use crate::runbook::run_after_deploy::{RunAfterDeploy, Start};
use crate::runbook::run_runbook::RunRunbook;
use crate::subject;
use crate::table::{self, Due, DueWhat, Record as _, Stored, load, put};
use crate::workflow::roll_back::RollBackDeploy;
use crate::workflow::schedules::next_run;

/// The maximum number of rows that one call handles; the other rows are handled a minute later.
const MOST: usize = 500;
/// The number of installs whose tasks are handled at the same time.
const AT_ONCE: usize = 8;
/// The time after which one call handles no further row and starts no further run for the switch of a role, in seconds.
/// The same run of the function needs time for the sweep.
const MOST_SECS: u64 = 15;
/// The longest time after which a task that waits for the end of other work is handled again, in seconds.
const LONGEST_PAUSE_SECS: u64 = 15 * 60;
/// The time, in seconds, after which a task is tried again if it failed for a reason that is not transient.
const HELD_SECS: u64 = 10 * 60;
/// The maximum delay of a run, in seconds; a run that is later is skipped.
const LATE_SECS: u64 = 60 * 60;

/// The use case that handles tasks that are due, with its ports.
#[derive(Clone)]
pub struct HandleDueTasks {
    pub store: Arc<dyn Store>,
    pub versions: Versions,
    pub machines: Arc<dyn Machines>,
    pub notifier: Notifier,
    pub clock: Arc<dyn Clock>,
}

/// The numbers of runs, checks and tasks that one call handled, by result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Handled {
    /// The number of runs of actions and of checks that were started.
    pub started: u32,
    /// The number of skipped runs and checks, for the reasons in [`HandleDueTasks::handle`].
    pub skipped: u32,
    /// The number of rows that could not be handled; the next call tries them again.
    pub failed: u32,
    /// The number of rows for which there was no time; the next call handles them.
    pub left: u32,
}

/// The state that the tasks of one call share.
struct Call {
    now: Timestamp,
    /// Whether the topic did not accept a notification. The other notifications then wait, because each try may take
    /// seconds.
    is_topic_silent: AtomicBool,
}

impl Handled {
    fn add(&mut self, other: Self) {
        let Self { started, skipped, failed, left } = other;
        self.started += started;
        self.skipped += skipped;
        self.failed += failed;
        self.left += left;
    }

    /// Counts the result of a check that was due.
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

impl HandleDueTasks {
    /// Handles every task that is due. The id of a run is derived from the minute at which the run was due, so that
    /// repeated calls start the run only once.
    ///
    /// If several runs of an action were missed, the earliest is started if it was due within the last hour; the others
    /// are skipped. A run is also skipped while the preceding run has not ended, and while the install refuses runs: it
    /// is disabled, has no runner, or its customer has not accepted the terms. A started run waits for a free slot of
    /// the runner.
    ///
    /// # Errors
    /// The store's errors when the list of due tasks cannot be read.
    pub async fn handle(&self) -> Result<Handled, AppError> {
        let now = self.clock.now();
        let call = Call { now, is_topic_silent: AtomicBool::new(false) };
        let due = table::due(&*self.store, now, MOST).await?;
        // Tasks for which a person waits come before tasks that a schedule starts.
        let (waited_for, others) = due.into_iter().partition(|row| row.value.what.is_waited_for());
        let mut counts = Handled::default();
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
    async fn handle_in_turn(&self, rows: &[Stored<Due>], call: &Call) -> Handled {
        let mut counts = Handled::default();
        for row in rows {
            if self.is_over(call) {
                counts.left += 1;
                continue;
            }
            let install = &row.value.install;
            let handled = self.handle_one(row, call, &mut counts).instrument(work_on(&row.value)).await;
            let Err(error) = handled else { continue };
            tracing::warn!(install.id = %install, "Could not handle a task that is due in install `{install}`; a later call \
                                                   tries again: {error}");
            counts.failed += 1;
            if (!error.is_transient() || waits_for_jobs(row, call.now))
                && let Err(error) = self.hold(row, call.now).await
            {
                tracing::warn!(install.id = %install, "Could not postpone a task of install `{install}`: {error}");
            }
        }
        counts
    }

    /// Returns whether the time of the call is over. The next call handles what is left then.
    fn is_over(&self, call: &Call) -> bool {
        self.clock.now().since(call.now) > MOST_SECS * 1000
    }

    async fn handle_one(&self, row: &Stored<Due>, call: &Call, counts: &mut Handled) -> Result<(), AppError> {
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
            DueWhat::AfterDeploy(after) => match self.run_after_deploy().start(after).await? {
                Start::Done => self.replace(row, Vec::new()).await,
                Start::Busy { since } => self.move_later(row, since, now).await,
            },
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
            DueWhat::Roles { at, changes } => self.run_for_roles(row, (*at, changes), call, counts).await,
            DueWhat::RunnerAway => self.commit(runner_watch::look(&*self.store, row, now).await?).await,
            DueWhat::Notify { notification } => {
                if call.is_topic_silent.load(Ordering::Relaxed) {
                    self.notifier.tell_later(install, notification, now).await?;
                } else if self.notifier.tell(install, notification, now).await? {
                    return self.remove_sent(row, notification).await;
                } else {
                    call.is_topic_silent.store(true, Ordering::Relaxed);
                }
                self.replace(row, Vec::new()).await
            }
            DueWhat::Run { action, .. } => {
                let next = match self.find_install(install).await? {
                    Some(found) => self.run(row, &found, action, now, counts).await?,
                    None => None,
                };
                self.replace(row, next.into_iter().collect()).await
            }
        }
    }

    /// Adds the tasks for the cron runs and the checks of the install's deployed version, once the workflow has ended.
    async fn add_schedules(&self, row: &Stored<Due>, workflow: &WorkflowId, now: Timestamp) -> Result<(), AppError> {
        let found = table::find_workflow(&*self.store, workflow).await?.map(|found| found.value);
        if let Some(open) = found.filter(|found| !found.state.is_terminal()) {
            return self.move_later(row, open.began_at(), now).await;
        }
        let id = &row.value.install;
        let install = self.find_install(id).await?;
        if let Some(version) = self.load_deployed_version(install.as_ref()).await? {
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

    /// Starts or skips the check of this minute, and writes the task for the next check, if there is one.
    async fn check<C: ScheduledCheck>(
        &self,
        check: &C,
        row: &Stored<Due>,
        now: Timestamp,
        counts: &mut Handled,
    ) -> Result<(), AppError> {
        let install = self.find_install(&row.value.install).await?;
        let version = self.load_deployed_version(install.as_ref()).await?;
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

    fn roll_back(&self) -> RollBackDeploy {
        let (versions, machines, clock) = (self.versions.clone(), Arc::clone(&self.machines), Arc::clone(&self.clock));
        RollBackDeploy { versions, machines, clock }
    }

    fn run_after_deploy(&self) -> RunAfterDeploy {
        RunAfterDeploy { run_runbook: RunRunbook { advance: self.advance_run() } }
    }

    fn advance_run(&self) -> AdvanceRun {
        let (store, machines, clock) = (Arc::clone(&self.store), Arc::clone(&self.machines), Arc::clone(&self.clock));
        AdvanceRun::new(store, self.versions.clone(), machines, clock)
    }

    /// Returns the install, unless it is gone or is being forgotten.
    async fn find_install(&self, id: &InstallId) -> Result<Option<Install>, AppError> {
        let found: Option<Stored<Install>> = load(&*self.store, &table::install_key(id)).await?;
        let kept = found.map(|found| found.value).filter(|install| install.forgetting.is_none());
        Ok(kept.inspect(subject::note_install))
    }

    /// Returns the version that was last deployed completely to the install.
    async fn load_deployed_version(&self, install: Option<&Install>) -> Result<Option<Arc<AppVersion>>, AppError> {
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

    /// Removes the row of a notification that the topic accepted, and counts its event. Another call that sent the same
    /// notification does not remove the row too, so the event is counted once.
    async fn remove_sent(&self, row: &Stored<Due>, sent: &Notification) -> Result<(), AppError> {
        let removed = vec![Write::DeleteAt { key: row.value.key(), rev: row.rev }];
        if self.store.commit(removed).await? == Committed::Done {
            count_sent(sent);
        }
        Ok(())
    }

    /// Moves a task that has waited since `since` to a later time. The task may have to wait for days, and must not
    /// keep a call from reading the other tasks.
    async fn move_later(&self, row: &Stored<Due>, since: Timestamp, now: Timestamp) -> Result<(), AppError> {
        let pause = (now.since(since) / 4000).clamp(60, LONGEST_PAUSE_SECS);
        let later = Due::at(now.plus_secs(pause), row.value.install.clone(), row.value.what.clone());
        let removed = Write::DeleteAt { key: row.value.key(), rev: row.rev };
        self.commit(vec![removed, put(&later, Expect::Absent)?]).await
    }

    /// Postpones a task that failed, because a row that cannot be handled must not block the other rows.
    async fn hold(&self, row: &Stored<Due>, now: Timestamp) -> Result<(), AppError> {
        let held = row.value.clone().held_until(now.plus_secs(HELD_SECS));
        self.commit(vec![put(&held, Expect::Rev(row.rev))?]).await
    }

    /// Commits the writes that handle a row. After a conflict nothing is left to do: another call has handled the row,
    /// or the next call handles it.
    async fn commit(&self, writes: Vec<Write>) -> Result<(), AppError> {
        match self.store.commit(writes).await? {
            Committed::Done | Committed::Conflict(_) => Ok(()),
        }
    }
}

/// Returns the span of the work on a task. The task of a channel is about an app, and its row has the reserved install.
fn work_on(due: &Due) -> Span {
    if matches!(due.what, DueWhat::Channel { .. }) { subject::span() } else { subject::of_install(&due.install) }
}

/// Counts the event of a notification, if there is a metric of such events and no other place counts them.
fn count_sent(sent: &Notification) {
    let metric = match sent.kind {
        NotificationKind::HealthChanged => Metric::HealthChanged,
        NotificationKind::RunnerAway => Metric::RunnersAway,
        NotificationKind::ApprovalAsked
        | NotificationKind::ChangeHeld
        | NotificationKind::ChecksAwaited
        | NotificationKind::WorkflowFailed
        | NotificationKind::WorkflowSucceeded
        | NotificationKind::DeployRolledBack
        | NotificationKind::RunStopped
        | NotificationKind::RunSucceeded
        | NotificationKind::DriftFound
        | NotificationKind::StrangerTrusted
        | NotificationKind::RunnerBack
        | NotificationKind::Test => return,
    };
    let Notification { app, install, workflow, job, .. } = sent;
    let about = About { app: app.as_ref(), install: install.as_ref(), workflow: workflow.as_ref(), job: job.as_ref() };
    metrics::count(metric, about);
}

/// Returns whether a roll back has waited for the jobs of its deploy for some minutes. These jobs may take days when
/// their runner is away.
fn waits_for_jobs(row: &Stored<Due>, now: Timestamp) -> bool {
    matches!(row.value.what, DueWhat::RollBack { .. }) && now.since(row.value.time()) > HELD_SECS * 1000
}

/// Returns why a check that was due at `due` is not started any more; `None` if it was due within the last hour.
fn is_missed(due: Timestamp, now: Timestamp) -> Option<Scheduled> {
    let is_late = now.since(due) / 1000 > LATE_SECS;
    is_late.then(|| Scheduled::Skipped("it was due more than an hour ago".to_owned()))
}

/// Returns the rows in groups. The rows of a group are handled one after the other, because they change the same
/// install, or because they all send to the topic.
fn in_turns(due: Vec<Stored<Due>>) -> Vec<Vec<Stored<Due>>> {
    let mut groups: Vec<Vec<Stored<Due>>> = Vec::new();
    let mut places: BTreeMap<Option<InstallId>, usize> = BTreeMap::new();
    for row in due {
        let is_notification = matches!(row.value.what, DueWhat::Notify { .. });
        let install = (!is_notification).then(|| row.value.install.clone());
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
