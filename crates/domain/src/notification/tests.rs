use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::approval::{PlanSummary, ProposedPlan, Side};
use freehold_protocol::notification::{MAX_SUBJECT_CHARS, MAX_TEXT_BYTES};
use freehold_protocol::order::health::HealthState;
use freehold_protocol::order::{AskedBy, Mode};
use freehold_protocol::report::Fence;
use freehold_protocol::{CheckName, Digest, IamRoleName, JobId, RunId, WorkflowId};
use proptest::prelude::*;

use super::*;
use crate::health::LastHealth;
use crate::install::connection::{Connection, ConnectionState};
use crate::job::{Job, JobState, NewJob, WaitLimits};
use crate::required_checks::{AwaitedChecks, RequiredChecks};
use crate::runbook::{Run, RunState};
use crate::workflow::tests::pending;
use crate::workflow::{Node, NodeState, Request, RollBack, RunTrigger, Target, Workflow, WorkflowKind, WorkflowState};

const AT: Timestamp = Timestamp::from_millis(1_795_250_000_000);
/// What no notification may contain: it stands for a value, a log or a secret.
const SECRET: &str = "hunter2";

fn globex() -> InstallId {
    "globex".parse().unwrap()
}

fn shop() -> AppName {
    "shop".parse().unwrap()
}

fn failed() -> WorkflowState {
    WorkflowState::Failed { ended_at: AT, reason: SECRET.to_owned() }
}

fn succeeded() -> WorkflowState {
    WorkflowState::Succeeded { ended_at: AT }
}

fn workflow(kind: WorkflowKind, request: Request, state: WorkflowState) -> Workflow {
    Workflow { kind, created_at: AT, request, state, ..pending() }
}

fn deploy(state: WorkflowState) -> Workflow {
    workflow(WorkflowKind::DeployComponents, Request::deploy_latest(), state)
}

fn failed_node(name: &str) -> Node {
    let target = Target::Action { action: "check".parse().unwrap(), directories: Vec::new() };
    let job = JobId::derive(&WorkflowId::derive("globex", "test"), name);
    let state = NodeState::Failed { job, outcome: "failed".to_owned(), reason: SECRET.to_owned() };
    Node { state, ..Node::waiting(name.to_owned(), target, 60) }
}

fn of(workflow: &Workflow) -> Option<Notification> {
    of_workflow(workflow, Some(&shop()), DriftSeen::default())
}

fn job(state: JobState) -> Job {
    let new = NewJob {
        install: globex(),
        workflow: WorkflowId::derive("globex", "test"),
        node: "storage".to_owned(),
        group: "component:storage".parse().unwrap(),
        serial: 1,
        mode: Mode::Maintenance,
        role: None,
        timeout_secs: 60,
    };
    Job { state, ..Job::new(new, WaitLimits { order_secs: 60, job_secs: 60 }, AT) }
}

fn waits_for_approval(plan: &str) -> JobState {
    let plan = ProposedPlan {
        plan: Digest::of(plan.as_bytes()),
        until: AT.plus_secs(3600),
        asks: BTreeSet::from([Side::Vendor, Side::Customer]),
        summary: PlanSummary { create: 1, delete: 2, ..PlanSummary::default() },
        policies: Digest::of(b"policies"),
        instead: Some(SECRET.to_owned()),
    };
    let (fence, runner) = (Fence { dispatch: 1, receive: 1 }, serde_json::from_value("a".into()).unwrap());
    JobState::WaitingForApproval { fence, runner, since: AT, plan: Box::new(plan), vendor: None, customer: None }
}

/// Returns the job of the gate of `web` that waits for `ci` and `load` after this dispatch.
fn waits_for_checks(dispatch: u32) -> Job {
    let names: BTreeSet<CheckName> = ["ci", "load"].map(|name| name.parse().unwrap()).into();
    let (fence, runner) = (Fence { dispatch, receive: 1 }, serde_json::from_value("a".into()).unwrap());
    let outputs = BTreeMap::from([("health".to_owned(), SECRET.into())]);
    let (until, missing) = (AT.plus_secs(30), names.clone());
    let required = RequiredChecks { names, window_secs: 30 };
    let checks = AwaitedChecks { component: "web".parse().unwrap(), required };
    Job {
        checks: Some(checks),
        ..job(JobState::WaitingForChecks { fence, runner, since: AT, until, missing, outputs })
    }
}

fn of_missing(job: &Job, missing: &[&str]) -> Option<Notification> {
    let missing: BTreeSet<CheckName> = missing.iter().map(|name| name.parse().unwrap()).collect();
    of_checks(job, Some(&shop()), Some(&Digest::of(b"version")), &missing)
}

fn run(state: RunState) -> Run {
    Run {
        id: RunId::derive(&globex(), "test"),
        install: globex(),
        app: shop(),
        runbook: "fix".parse().unwrap(),
        version: Digest::of(b"version"),
        number: 3,
        inputs: BTreeMap::from([("secret".to_owned(), SECRET.to_owned())]),
        request_digest: Digest::of(b"request"),
        asked_by: AskedBy::Schedule,
        after: None,
        now: false,
        created_at: AT,
        steps: Vec::new(),
        resumed: Vec::new(),
        cancelled_by: None,
        state,
        later_fields: BTreeMap::new(),
    }
}

fn connection(state: ConnectionState) -> Connection {
    Connection { state, since: AT, reason: SECRET.to_owned() }
}

fn unhealthy() -> LastHealth {
    let (state, reason) = (HealthState::Unhealthy, SECRET.to_owned());
    let job = JobId::derive(&WorkflowId::derive("globex", "test"), "health:web");
    LastHealth {
        component: "web".parse().unwrap(),
        state,
        reason,
        since: AT,
        at: AT,
        job,
        serial: 1,
        required: BTreeSet::new(),
        by_checks: false,
    }
}

/// The state of a job that failed with a reason.
fn job_failed() -> JobState {
    let fence = Fence { dispatch: 1, receive: 1 };
    JobState::Failed { fence, ended_at: AT, reason: SECRET.to_owned(), partial: true }
}

/// Returns this many names of roles.
fn roles(count: usize) -> BTreeSet<IamRoleName> {
    (0..count).map(|number| format!("role-{number:02}").parse().unwrap()).collect()
}

/// Returns one notification of each kind.
fn all() -> Vec<Notification> {
    let drift = DriftSeen { parts: 1, resources: 2 };
    let check = workflow(WorkflowKind::DetectDrift, Request::DetectDrift { only: BTreeSet::new() }, succeeded());
    let rolls_back = RollBack::Of { workflow: WorkflowId::derive("globex", "failed"), reason: SECRET.to_owned() };
    let held = JobState::WaitingForWindow { dispatch: 1, since: AT, until: Some(AT), reason: SECRET.to_owned() };
    vec![
        of_job(&job(waits_for_approval("a")), Some(&shop())).unwrap(),
        of_job(&job(held), Some(&shop())).unwrap(),
        of_missing(&waits_for_checks(1), &["ci"]).unwrap(),
        of(&Workflow { nodes: vec![failed_node("storage")], ..deploy(failed()) }).unwrap(),
        of(&deploy(succeeded())).unwrap(),
        of(&Workflow { roll_back: rolls_back, ..deploy(succeeded()) }).unwrap(),
        of_run(&run(RunState::Failed { ended_at: AT })).unwrap(),
        of_run(&run(RunState::Succeeded { ended_at: AT })).unwrap(),
        of_workflow(&check, Some(&shop()), drift).unwrap(),
        of_health(&globex(), Some(&shop()), KnownHealth::default(), &unhealthy(), ChangedBy::Check).unwrap(),
        of_strangers(&job(job_failed()), Some(&shop()), &roles(1), AT).unwrap(),
        runner_away(&globex(), Some(&shop()), &connection(ConnectionState::Silent)).unwrap(),
        runner_back(&globex(), Some(&shop()), AT, AT.plus_secs(60)),
        test(Some(globex()), Some(shop()), "key", AT),
    ]
}

#[test]
fn every_kind_is_told_of_something_and_each_has_its_own_id() {
    let notifications = all();

    let kinds: Vec<_> = notifications.iter().map(|one| one.kind).collect();
    assert_eq!(kinds, NotificationKind::ALL);
    assert_eq!(notifications.iter().map(|one| &one.id).collect::<BTreeSet<_>>().len(), notifications.len());
}

#[test]
fn no_notification_has_a_reason_or_a_value_in_it() {
    for notification in all() {
        let text = serde_json::to_string(&notification).unwrap() + &notification.mail();

        assert!(!text.contains(SECRET), "{text}");
        assert_eq!(notification.install, Some(globex()));
        assert_eq!(notification.app, Some(shop()));
    }
}

#[test]
fn a_plan_that_waits_names_whom_it_waits_for_and_what_it_does() {
    let notification = of_job(&job(waits_for_approval("a")), None).unwrap();

    assert_eq!(notification.subject, "Freehold: globex: a plan of storage waits for approval");
    assert!(notification.text.contains("by the vendor and the customer until 2026-"), "{}", notification.text);
    assert!(notification.text.ends_with("The plan has 1 to create, 2 to delete."), "{}", notification.text);
    assert_eq!(notification.command, format!("freehold job show {}", notification.job.unwrap()));
}

#[test]
fn another_plan_of_the_same_job_is_told_anew() {
    let id = |plan| of_job(&job(waits_for_approval(plan)), None).unwrap().id;

    assert_eq!(id("a"), id("a"));
    assert_ne!(id("a"), id("b"));
}

#[test]
fn a_gate_that_waits_names_the_version_the_missing_checks_and_the_way_to_report_them() {
    let notification = of_missing(&waits_for_checks(1), &["ci", "load"]).unwrap();

    assert_eq!(notification.subject, "Freehold: globex: web waits for required checks");
    assert_eq!(
        notification.text,
        format!(
            "Component web of install globex is deployed in version {} and healthy. Its gate waits for checks `ci`, `load` until \
             {}. Report each result with `freehold check report globex web NAME passed`, or with `failed`.",
            Digest::of(b"version").short(),
            freehold_protocol::time::rfc3339::text(AT.plus_secs(30)).unwrap()
        )
    );
    assert_eq!(notification.command, format!("freehold job show {}", notification.job.unwrap()));
}

#[test]
fn each_dispatch_of_a_gate_is_told_with_one_id_and_no_other_job_is() {
    let id = |dispatch, missing: &[&str]| of_missing(&waits_for_checks(dispatch), missing).unwrap().id;

    assert_eq!(id(1, &["ci", "load"]), id(1, &["load"]));
    assert_ne!(id(1, &["ci"]), id(2, &["ci"]));
    assert_eq!(of_missing(&job(waits_for_approval("a")), &["ci"]), None);
}

#[test]
fn a_role_that_trusts_a_stranger_is_named_with_the_install_and_the_job() {
    let job = job(job_failed());

    let notification = of_strangers(&job, Some(&shop()), &roles(1), AT).unwrap();

    assert_eq!(notification.subject, "Freehold: globex: a stranger may assume role role-00");
    let begin = format!(
        "Role role-00 of install globex trusts a principal outside of the customer's account, as the runner found \
         after job {} (storage).",
        job.id
    );
    assert!(notification.text.starts_with(&begin), "{}", notification.text);
    assert_eq!((&notification.job, &notification.workflow), (&Some(job.id.clone()), &Some(job.workflow.clone())));
    assert_eq!(notification.command, format!("freehold job show {}", job.id));
}

#[test]
fn many_roles_that_trust_strangers_are_in_one_notification_which_names_ten() {
    let notification = of_strangers(&job(job_failed()), None, &roles(12), AT).unwrap();

    assert_eq!(notification.subject, "Freehold: globex: strangers may assume 12 roles");
    let named = "The roles role-00, role-01, role-02, role-03, role-04, role-05, role-06, role-07, role-08, role-09 \
                 and 2 more of install globex trust";
    assert!(notification.text.starts_with(named), "{}", notification.text);
    assert_eq!(of_strangers(&job(job_failed()), None, &roles(0), AT), None);
}

#[test]
fn a_failed_workflow_names_ten_nodes_that_failed() {
    let nodes = (0..12).map(|at| failed_node(&format!("c{at}"))).collect();
    let notification = of(&Workflow { nodes, ..deploy(failed()) }).unwrap();

    assert_eq!(notification.subject, "Freehold: globex: deploy-components failed");
    assert!(
        notification.text.ends_with("What failed: c0, c1, c2, c3, c4, c5, c6, c7, c8, c9 and 2 more."),
        "{}",
        notification.text
    );
}

#[test]
fn nobody_waits_for_a_cancel_for_a_success_by_schedule_or_for_a_step_of_a_runbook() {
    let action = Request::Action {
        action: "check".parse().unwrap(),
        version: None,
        role: None,
        trigger: Some(RunTrigger::Schedule),
        inputs: BTreeMap::new(),
        run_inputs: BTreeMap::new(),
    };
    let scheduled = workflow(WorkflowKind::RunAction, action, succeeded());
    let scheduled = Workflow { asked_by: Some(AskedBy::Schedule), ..scheduled };
    let step = Workflow { run: Some(RunId::derive(&globex(), "test")), ..deploy(failed()) };

    assert_eq!(of(&deploy(WorkflowState::Cancelled { ended_at: AT })), None);
    assert_eq!(of(&deploy(WorkflowState::Running { slots: 1 })), None);
    assert_eq!(of(&scheduled), None);
    assert_eq!(of(&step), None);
    assert!(of(&Workflow { state: failed(), ..scheduled }).is_some());
    assert_eq!(of_run(&run(RunState::Running)), None);
    assert_eq!(of_run(&run(RunState::Cancelled { ended_at: AT })), None);
    assert_eq!(runner_away(&globex(), None, &connection(ConnectionState::Connected)), None);
}

#[test]
fn a_build_is_about_its_app_and_about_no_install() {
    let request = Request::Build { app: shop(), builds: Vec::new(), version: None };

    let notification =
        of_workflow(&workflow(WorkflowKind::BuildComponents, request, failed()), None, DriftSeen::default());

    let notification = notification.unwrap();
    assert_eq!((notification.install, notification.app), (None, Some(shop())));
    assert_eq!(notification.subject, "Freehold: build of shop failed");
}

proptest! {
    #[test]
    fn a_notification_fits_into_a_mail_whatever_its_nodes_are_called(
        names in proptest::collection::vec("\\PC{0,300}", 0..30),
    ) {
        let nodes = names.iter().map(|name| failed_node(name)).collect();
        let mut waiting = job(waits_for_approval("a"));
        waiting.node = names.concat();

        for notification in [of(&Workflow { nodes, ..deploy(failed()) }).unwrap(), of_job(&waiting, None).unwrap()] {
            prop_assert!(notification.subject.chars().count() <= MAX_SUBJECT_CHARS);
            prop_assert!(notification.subject.bytes().all(|b| b == b' ' || b.is_ascii_graphic()));
            prop_assert!(notification.text.len() <= MAX_TEXT_BYTES);
        }
    }
}
