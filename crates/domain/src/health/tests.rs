use std::collections::{BTreeMap, BTreeSet};

use freehold_protocol::WorkflowId;
use freehold_protocol::api::CheckResult;
use freehold_protocol::order::AskedBy;
use freehold_protocol::report::Fence;
use proptest::prelude::*;

use super::*;
use crate::job::NewJob;
use crate::required_checks::RequiredChecks;
use crate::workflow::Target;

fn at(secs: u64) -> Timestamp {
    Timestamp::default().plus_secs(secs)
}

fn web() -> ComponentName {
    "web".parse().unwrap()
}

fn job(serial: u64, state: JobState) -> Job {
    let target = Target::Health { component: web(), gate: false, version: None, checks: RequiredChecks::default() };
    let new = NewJob {
        install: "globex".parse().unwrap(),
        workflow: WorkflowId::derive("globex", &serial.to_string()),
        node: "health:web".to_owned(),
        group: target.group().unwrap(),
        serial,
        mode: freehold_protocol::order::Mode::Maintenance,
        role: None,
        timeout_secs: 60,
    };
    Job { state, ..Job::new(new, target.wait_limits(), at(0)) }
}

fn fence() -> Fence {
    Fence { dispatch: 1, receive: 1 }
}

fn succeeded(state: HealthState, reason: &str) -> JobState {
    let value = serde_json::to_value(Health { state, reason: reason.to_owned() }).unwrap();
    let outputs = BTreeMap::from([(OUTPUT.to_owned(), value)]);
    JobState::Succeeded { fence: fence(), ended_at: at(1), outputs, sensitive: BTreeMap::new(), artifact: None }
}

#[test]
fn a_gate_that_closes_finds_the_component_unhealthy_and_any_other_failure_finds_nothing_out() {
    let reason = "component `web` is not healthy after 6 s: 0 of 1 are ready";
    let blocked =
        JobState::Blocked { fence: fence(), ended_at: at(1), block: Block::Unhealthy, reason: reason.to_owned() };
    let switched_off =
        JobState::Blocked { fence: fence(), ended_at: at(1), block: Block::ModeDisabled, reason: "off".to_owned() };

    assert_eq!(found_by(&job(1, blocked)), Some(Health::new(HealthState::Unhealthy, reason)));
    assert_eq!(found_by(&job(1, switched_off)), Some(Health::new(HealthState::Unknown, "off")));
}

#[test]
fn a_reason_of_any_length_is_cut() {
    let found = found_by(&job(1, succeeded(HealthState::Unhealthy, &"x".repeat(9_000)))).unwrap();

    assert_eq!(found.reason.len(), freehold_protocol::order::health::MAX_REASON_CHARS);
}

/// Returns the health of `web`, found healthy at the time 5, which requires `ci` and `load`.
fn healthy() -> LastHealth {
    let required: BTreeSet<CheckName> = ["ci", "load"].map(|name| name.parse().unwrap()).into();
    LastHealth::after(None, (&web(), &required), &job(2, succeeded(HealthState::Healthy, "")), at(5)).unwrap()
}

fn reported(component: &str, check: &str, result: CheckResult, (serial, time): (u64, u64)) -> ReportedCheck {
    let deploy = JobId::derive(&WorkflowId::derive("globex", &serial.to_string()), component);
    let (component, check) = (component.parse().unwrap(), check.parse().unwrap());
    let (by, reason, url) = (AskedBy::Schedule, String::new(), String::new());
    ReportedCheck { component, check, result, reason, url, by, at: at(time), serial, deploy }
}

#[test]
fn required_checks_count_in_the_health_of_their_component_and_deploy() {
    use CheckResult::{Failed, Passed};
    let deployed = (2, at(3));

    let passed = [reported("web", "ci", Passed, (2, 9)), reported("web", "load", Passed, (2, 4))];
    let half = [reported("web", "ci", Passed, (2, 9)), reported("api", "load", Passed, (2, 9))];
    let earlier = [reported("web", "ci", Passed, (2, 9)), reported("web", "load", Failed, (1, 2))];
    let failed = [reported("web", "ci", Failed, (2, 9)), reported("web", "load", Failed, (2, 8))];

    assert_eq!(healthy().with_checks(&passed, deployed), LastHealth { since: at(9), ..healthy() });
    for results in [half, earlier] {
        let unknown = healthy().with_checks(&results, deployed);
        assert_eq!((unknown.state, unknown.since), (HealthState::Unknown, at(3)));
        assert_eq!(unknown.reason, "no result of check `load` was reported");
    }
    let unhealthy = healthy().with_checks(&failed, deployed);
    assert_eq!((unhealthy.state, unhealthy.since), (HealthState::Unhealthy, at(8)));
    assert_eq!(unhealthy.reason, "check `ci` failed; check `load` failed");
}

#[test]
fn a_check_that_failed_makes_a_component_worse_and_one_without_a_result_does_not_make_it_better() {
    let found = |state| LastHealth { state, reason: "the answer is 503".to_owned(), ..healthy() };
    let failed = [reported("web", "ci", CheckResult::Failed, (2, 9))];

    let unhealthy = found(HealthState::Unhealthy).with_checks(&[], (2, at(3)));
    let worse = found(HealthState::Unknown).with_checks(&failed, (2, at(3)));

    assert_eq!(unhealthy, found(HealthState::Unhealthy));
    assert_eq!((worse.state, worse.since), (HealthState::Unhealthy, at(9)));
    assert_eq!(worse.reason, "the answer is 503; check `ci` failed");
}

#[test]
fn a_component_that_only_its_checks_made_unhealthy_is_healthy_when_all_have_passed() {
    let closed = LastHealth { state: HealthState::Unhealthy, reason: "late".to_owned(), by_checks: true, ..healthy() };
    let sick = LastHealth { by_checks: false, ..closed.clone() };
    let half = [reported("web", "ci", CheckResult::Passed, (2, 8))];
    let passed = [&half[..], &[reported("web", "load", CheckResult::Passed, (2, 9))]].concat();

    let open = closed.clone().after_report(&passed, 2, at(9));

    assert_eq!(open, LastHealth { since: at(9), ..healthy() });
    assert_eq!(closed.clone().after_report(&half, 2, at(9)), closed);
    assert_eq!(closed.clone().after_report(&passed, 3, at(9)), closed, "the component was deployed again");
    assert_eq!(sick.clone().after_report(&passed, 2, at(9)), sick);
}

fn any_state() -> impl Strategy<Value = HealthState> {
    prop_oneof![Just(HealthState::Healthy), Just(HealthState::Unknown), Just(HealthState::Unhealthy)]
}

proptest! {
    /// The time since which a state holds moves only with the state, no check of an older workflow counts, and the last check
    /// that counts is the one that is kept.
    #[test]
    fn checks_in_any_order_leave_the_newest(checks in proptest::collection::vec((1_u64..6, any_state()), 1..30)) {
        let mut kept: Option<LastHealth> = None;
        for (now, (serial, state)) in (1_u64..).zip(checks) {
            let before = kept.clone();
            let found = job(serial, succeeded(state, ""));
            let next = LastHealth::after(before.as_ref(), (&web(), &BTreeSet::new()), &found, at(now));
            match (&before, &next) {
                (Some(before), None) => prop_assert!(before.serial > serial),
                (_, Some(next)) => {
                    prop_assert!(before.as_ref().is_none_or(|before| before.serial <= serial));
                    prop_assert_eq!((next.state, next.at), (state, at(now)));
                    let same = before.as_ref().filter(|before| before.state == state);
                    prop_assert_eq!(next.since, same.map_or(at(now), |before| before.since));
                }
                (None, None) => prop_assert!(false, "the first check counts"),
            }
            kept = next.or(before);
        }
    }

    /// An install is as its worst component is: since the first component is so, or, when all are healthy, since the last.
    #[test]
    fn an_install_is_as_its_worst_component(states in proptest::collection::vec((any_state(), 0_u64..90), 0..8)) {
        let all: Vec<LastHealth> = states
            .iter()
            .filter_map(|(state, since)| {
                let job = job(1, succeeded(*state, ""));
                let found = LastHealth::after(None, (&web(), &BTreeSet::new()), &job, at(*since))?;
                Some(found)
            })
            .collect();

        let found = of_install(&all);

        let worst = states.iter().map(|(state, _)| *state).max();
        prop_assert_eq!(found.map(|found| found.state), worst);
        let times = states.iter().filter(|(state, _)| Some(*state) == worst).map(|(_, since)| at(*since));
        let since = if worst == Some(HealthState::Healthy) { times.max() } else { times.min() };
        prop_assert_eq!(found.map(|found| found.since), since);
    }
}
