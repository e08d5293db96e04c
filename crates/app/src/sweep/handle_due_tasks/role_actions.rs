//! Starts the actions whose trigger is the switch of a role.

use std::collections::{BTreeMap, BTreeSet};

use freehold_domain::role_switches::{MAX_ROLE_RUNS, RoleChange, RoleRuns};
use freehold_domain::workflow::RunTrigger;
use freehold_protocol::app_version::{Action, AppVersion};
use freehold_protocol::order::AskedBy;
use freehold_protocol::{ActionName, InstallId, Timestamp, WorkflowId};

use super::{Call, HandleDueTasks, Handled, LATE_SECS};
use crate::AppError;
use crate::new_workflow::Asked;
use crate::ports::Expect;
use crate::table::{self, Decided, Due, DueWhat, RoleRunsRecord, Stored, load, put};

/// A run of an action that the switch of a role starts.
struct RoleRun<'a> {
    /// The place of the change among the changes of the task.
    place: usize,
    change: &'a RoleChange,
    action: &'a Action,
    cause: String,
    id: WorkflowId,
}

impl HandleDueTasks {
    /// Starts a run of each action of the deployed version that one of the changes starts, once for each change. A
    /// hello of the time `at` announced the changes. A run is skipped when the install refuses it, when the hello is
    /// more than an hour old, and when the install has [`MAX_ROLE_RUNS`]; `freehold install show` then names the
    /// reason. When the time of the call is over, the changes that are left stay in the task.
    pub(super) async fn run_for_roles(
        &self,
        row: &Stored<Due>,
        (at, changes): (Timestamp, &[RoleChange]),
        call: &Call,
        counts: &mut Handled,
    ) -> Result<(), AppError> {
        let id = &row.value.install;
        let install = self.find_install(id).await?;
        let Some(version) = self.load_deployed_version(install.as_ref()).await? else {
            return self.replace(row, Vec::new()).await;
        };
        let runs = runs_of(id, at, changes, &version);
        let is_late = call.now.since(at) / 1000 > LATE_SECS;
        let admitted = if is_late { BTreeSet::new() } else { self.admit_runs(id, &runs, call.now).await? };
        let mut refusals: BTreeMap<&ActionName, Option<String>> = BTreeMap::new();
        let mut rest = None;
        for run in &runs {
            if self.is_over(call) {
                rest = changes.get(run.place..);
                break;
            }
            let skipped = if is_late { self.reason_of_late(run).await? } else { reason_of_many(run, &admitted) };
            let refusal = match skipped {
                Some(reason) => Some(reason),
                None => self.start_for_role(id, run).await?,
            };
            count(counts, id, run, refusal.as_deref());
            // One run of the action that was skipped is enough for the note, also if another run was started.
            let noted = refusals.entry(&run.action.name).or_default();
            *noted = refusal.or_else(|| noted.take());
        }
        for (action, refusal) in refusals {
            self.note(id, action, at, refusal).await?;
        }
        let Some(rest) = rest else { return self.replace(row, Vec::new()).await };
        counts.left += 1;
        let left = Due { what: DueWhat::Roles { at, changes: rest.to_vec() }, ..row.value.clone() };
        self.commit(vec![put(&left, Expect::Rev(row.rev))?]).await
    }

    /// Counts the runs, and returns those that may start. They count before they start, so that a call which stops in
    /// the middle starts no run that does not count.
    async fn admit_runs(
        &self,
        id: &InstallId,
        runs: &[RoleRun<'_>],
        now: Timestamp,
    ) -> Result<BTreeSet<WorkflowId>, AppError> {
        if runs.is_empty() {
            return Ok(BTreeSet::new());
        }
        table::change(&*self.store, ("the count of runs for role switches of install", id), || async {
            let known: Option<Stored<RoleRunsRecord>> = load(&*self.store, &table::role_runs_key(id)).await?;
            let (mut counted, expect) = match known {
                Some(Stored { value, rev }) => (value.counted, Expect::Rev(rev)),
                None => (RoleRuns::default(), Expect::Absent),
            };
            for run in counted.older(now) {
                if !self.is_open(Some(&run)).await? {
                    counted.remove(&run);
                }
            }
            let mut admitted = BTreeSet::new();
            for run in runs {
                if counted.admit(&run.id, now) {
                    admitted.insert(run.id.clone());
                }
            }
            let record = RoleRunsRecord { install: id.clone(), counted };
            Ok(Decided::Commit(vec![put(&record, expect)?], admitted))
        })
        .await
    }

    /// Returns why a run is skipped whose switch was announced too long ago; `None` if an earlier call started it.
    async fn reason_of_late(&self, run: &RoleRun<'_>) -> Result<Option<String>, AppError> {
        let started = table::find_workflow(&*self.store, &run.id).await?.is_some();
        Ok((!started).then(|| "the switch was announced more than an hour ago".to_owned()))
    }

    /// Starts a run. Returns the reason if the install refuses the run, which then does not count.
    async fn start_for_role(&self, id: &InstallId, run: &RoleRun<'_>) -> Result<Option<String>, AppError> {
        let asked = Asked { by: &AskedBy::Sweep, cause: &run.cause, step: None };
        let trigger = RunTrigger::Role(run.change.clone());
        let refusal = self.start_run(id, &run.action.name, (trigger, asked)).await?.err();
        if refusal.is_some() {
            self.discount_run(id, &run.id).await?;
        }
        Ok(refusal)
    }

    /// Removes a run from those that count, unless an earlier call started it.
    async fn discount_run(&self, id: &InstallId, run: &WorkflowId) -> Result<(), AppError> {
        if table::find_workflow(&*self.store, run).await?.is_some() {
            return Ok(());
        }
        table::change(&*self.store, ("the count of runs for role switches of install", id), || async {
            let known: Option<Stored<RoleRunsRecord>> = load(&*self.store, &table::role_runs_key(id)).await?;
            let Some(Stored { value: mut record, rev }) = known else { return Ok(Decided::Keep(())) };
            record.counted.remove(run);
            Ok(Decided::Commit(vec![put(&record, Expect::Rev(rev))?], ()))
        })
        .await
    }
}

/// Returns the runs that the changes start, in the order in which they start.
fn runs_of<'a>(id: &InstallId, at: Timestamp, changes: &'a [RoleChange], version: &'a AppVersion) -> Vec<RoleRun<'a>> {
    let mut runs = Vec::new();
    for (place, change) in changes.iter().enumerate() {
        for action in change.actions(version) {
            let cause = change.cause(action, at);
            let id = WorkflowId::derive(id.as_str(), &cause);
            runs.push(RoleRun { place, change, action, cause, id });
        }
    }
    runs
}

/// Returns why a run is skipped that is not admitted; `None` for the others.
fn reason_of_many(run: &RoleRun<'_>, admitted: &BTreeSet<WorkflowId>) -> Option<String> {
    (!admitted.contains(&run.id)).then(|| {
        format!("switches of roles have started {MAX_ROLE_RUNS} runs that are younger than an hour or have not ended")
    })
}

fn count(counts: &mut Handled, id: &InstallId, run: &RoleRun<'_>, refusal: Option<&str>) {
    let Some(reason) = refusal else {
        counts.started += 1;
        return;
    };
    counts.skipped += 1;
    let (name, event, role) = (&run.action.name, run.change.event(), &run.change.role);
    tracing::warn!(
        install.id = %id,
        "Skipped a run of action `{name}` in `{id}` after `{event}` of role `{role}`: {reason}"
    );
}
