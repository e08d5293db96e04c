//! Compares what CloudTrail saw of the install's roles with the records of its runners.

mod call;
mod runner_calls;
mod sessions;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use freehold_protocol::audit::{AuditEvent, AuditRecord};
use freehold_protocol::{InstallId, TenantName, Timestamp, names};
use serde::Serialize;

pub(super) use self::call::Call;
use self::runner_calls::RunnersOwn;
use self::sessions::{SLACK_MILLIS, Sessions};
use super::history::Run;
use super::not_started::NotStarted;

/// The modes whose roles a preflight tries.
const TRIED_MODES: [&str; 3] = ["provision", "maintenance", "deprovision"];

/// The session in which `freehold-runner doctor` tries the roles. Whoever has the runner's role can use that session
/// name too.
const DOCTOR: &str = "freehold-doctor";

/// A call that no record explains.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Unexplained {
    #[serde(flatten)]
    pub(super) call: Call,
    pub(super) why: String,
}

/// The result of the comparison.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Reconciled {
    /// The number of calls of the install's roles that records explain.
    pub(super) explained: u64,
    /// The number of calls of roles that the app made: they are the app's own work, and no runner records them.
    pub(super) of_the_app: u64,
    /// The numbers of the records of jobs that did not start, but for which the runner requested a session from AWS.
    pub(super) not_started: Vec<u64>,
    /// The number of sessions that come from the customer's own run of `freehold-runner doctor` (`--own-doctor`).
    pub(super) of_own_doctor: usize,
    /// The numbers of the records of starts for which CloudTrail shows no session.
    pub(super) unseen: Vec<u64>,
    pub(super) unexplained: Vec<Unexplained>,
}

/// The names of the install's roles.
struct Roles {
    runner: String,
    of_stack: String,
    of_app: String,
}

/// The contents of the records, by job.
struct Known<'a> {
    runs: BTreeMap<&'a str, Vec<&'a Run>>,
    not_started: BTreeMap<&'a str, &'a NotStarted>,
    sessions: Sessions<'a>,
    /// The changes of IAM that records name, by job and action.
    iam: BTreeMap<(&'a str, &'a str), u64>,
}

/// The contents of an install's records.
#[derive(Debug, Clone, Copy)]
pub(super) struct Log<'a> {
    pub(super) runs: &'a [Run],
    pub(super) not_started: &'a [NotStarted],
    pub(super) records: &'a [AuditRecord],
    /// Whether the customer states that the sessions of `freehold-runner doctor` come from a run of their own.
    pub(super) own_doctor: bool,
    /// The account of the install's queues, if it is known.
    pub(super) queues: Option<&'a str>,
}

/// Compares the calls since `from` with the records.
pub(super) fn reconcile(
    (tenant, install): (&TenantName, &InstallId),
    calls: &[Call],
    log: Log<'_>,
    from: Timestamp,
) -> Reconciled {
    let Log { runs, not_started, records, own_doctor, queues } = log;
    let roles = Roles {
        runner: names::install_part(tenant, install, "runner"),
        of_stack: names::install_part(tenant, install, ""),
        of_app: names::app_prefix(tenant, install),
    };
    let own = RunnersOwn::of(tenant, install, queues);
    let sessions = Sessions::of(runs, records);
    let not_started = not_started.iter().map(|one| (one.job.as_str(), one)).collect();
    let mut known = Known { runs: BTreeMap::new(), not_started, sessions, iam: BTreeMap::new() };
    for run in runs {
        known.runs.entry(run.job.as_str()).or_default().push(run);
    }
    for record in records {
        if let AuditEvent::IamChange { job, action, stage, .. } = &record.event
            && stage == "announced"
        {
            *known.iam.entry((job.as_str(), action.as_str())).or_default() += 1;
        }
    }
    let mut found = Reconciled::default();
    // CloudTrail lists the newest events first. The oldest is judged first, so that of too many sessions of a job the
    // latest are those that no record explains.
    let mut ordered: Vec<&Call> = calls.iter().collect();
    ordered.sort_by_key(|call| call.at);
    for call in ordered {
        match judge(call, &roles, &own, &mut known) {
            Verdict::NotOfInstall => {}
            Verdict::NotStarted(record) => found.not_started.push(record),
            Verdict::Doctor(_) if own_doctor => found.of_own_doctor += 1,
            Verdict::Doctor(why) => found.unexplained.push(Unexplained { call: call.clone(), why }),
            Verdict::OfTheApp => found.of_the_app += 1,
            Verdict::Explained => found.explained += 1,
            Verdict::Unexplained(why) => found.unexplained.push(Unexplained { call: call.clone(), why }),
        }
    }
    found.not_started.sort_unstable();
    found.not_started.dedup();
    let is_seen = |run: &Run| {
        calls.iter().any(|call| call.takes.as_ref().is_some_and(|(_, session)| session == run.job.as_str()))
    };
    found.unseen = runs.iter().filter(|run| run.at >= from && !is_seen(run)).map(|run| run.record).collect();
    found
}

enum Verdict {
    NotOfInstall,
    OfTheApp,
    Explained,
    /// The runner requested the session of a job that did not start. The value is the number of the record of the job's
    /// end.
    NotStarted(u64),
    /// The runner assumed a role in a session that `freehold-runner doctor` makes too.
    Doctor(String),
    Unexplained(String),
}

fn judge<'a>(call: &'a Call, roles: &Roles, own: &RunnersOwn, known: &mut Known<'a>) -> Verdict {
    let takes = call.takes.as_ref().filter(|(role, _)| call.name == "AssumeRole" && role.starts_with(&roles.of_stack));
    if let Some((role, session)) = takes.filter(|(role, _)| *role != roles.runner) {
        let is_runner = call.session.as_ref().is_some_and(|(caller, _)| *caller == roles.runner);
        return match (is_runner, call.error.is_some()) {
            // AWS refused the call, so the caller got no session.
            (_, true) => Verdict::Explained,
            (false, false) => {
                Verdict::Unexplained(format!("`{}`, which is not the runner, assumed role `{role}`", call.caller))
            }
            (true, false) => known.explains_session(call, role, session, roles),
        };
    }
    let Some((role, session)) = &call.session else { return Verdict::NotOfInstall };
    if role.starts_with(&roles.of_app) {
        return Verdict::OfTheApp;
    }
    if !role.starts_with(&roles.of_stack) {
        return Verdict::NotOfInstall;
    }
    if *role != roles.runner {
        return known.explains(call, role, session, roles);
    }
    match own.foreign(call) {
        Some(what) => Verdict::Unexplained(format!("the role of the runner {what}")),
        None => Verdict::Explained,
    }
}

impl<'a> Known<'a> {
    /// Explains why the runner assumed `role` in this session.
    fn explains_session(&mut self, call: &'a Call, role: &str, session: &'a str, roles: &Roles) -> Verdict {
        if session == DOCTOR {
            return Verdict::Doctor(format!(
                "session `{session}` of role `{role}`, which no job has; `freehold-runner doctor` makes such a \
                 session: pass `--own-doctor` if you ran it yourself"
            ));
        }
        let verdict = match self.not_started.get(session) {
            Some(one) if call.at.as_millis() <= one.at.as_millis() + SLACK_MILLIS => Verdict::NotStarted(one.record),
            Some(_) | None => self.explains(call, role, session, roles),
        };
        if matches!(verdict, Verdict::Unexplained(_)) {
            return verdict;
        }
        match self.sessions.beyond(call.at, session, role) {
            Some(why) => Verdict::Unexplained(why),
            None => verdict,
        }
    }

    /// Explains a call under the role of a job. The job must have a record of its start under this role, and must have
    /// run at that time. A change of IAM must have a record of its own.
    fn explains(&mut self, call: &'a Call, role: &str, session: &'a str, roles: &Roles) -> Verdict {
        let Some(runs) = self.runs.get(session) else {
            return Verdict::Unexplained(match self.not_started.get(session) {
                Some(one) => format!(
                    "record {} states that job `{session}` ended as `{}` and did not start, but a session of this job \
                     under role `{role}` made this call",
                    one.record, one.result
                ),
                None => format!("no record of a start names the session `{session}` of role `{role}`"),
            });
        };
        let own = role.strip_prefix(&roles.of_stack).unwrap_or(role);
        if !runs.iter().any(|run| has_role(run, own)) {
            return Verdict::Unexplained(format!("job `{session}` has no record of a start under role `{role}`"));
        }
        let during = |run: &&Run| {
            let begun = call.at.as_millis() + SLACK_MILLIS >= run.at.as_millis();
            let over = run.end.as_ref().is_some_and(|end| call.at.as_millis() > end.at.as_millis() + SLACK_MILLIS);
            begun && !over
        };
        if !runs.iter().any(during) {
            return Verdict::Unexplained(format!("according to its records, job `{session}` did not run at that time"));
        }
        // CloudFormation changes the roles of a stack that a job changes; such calls have only the record of the job.
        if call.service == "iam" && call.changes && call.error.is_none() && call.through.is_none() {
            let left = self.iam.get_mut(&(session, call.name.as_str())).filter(|left| **left > 0);
            return match left {
                Some(left) => {
                    *left -= 1;
                    Verdict::Explained
                }
                None => Verdict::Unexplained(format!("job `{session}` has no record of this change of IAM")),
            };
        }
        Verdict::Explained
    }
}

/// Returns whether an attempt has sessions of the role whose name in the account ends with `role`. A preflight tries
/// each mode in the clusters of the app.
fn has_role(run: &Run, role: &str) -> bool {
    let tries_modes = run.work == "preflight" && TRIED_MODES.contains(&role);
    tries_modes || run.role_name().replace('_', "-") == role.replace('_', "-")
}
