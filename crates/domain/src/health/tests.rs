use std::collections::BTreeMap;

use freehold_protocol::WorkflowId;
use freehold_protocol::report::Fence;
use proptest::prelude::*;

use super::*;
use crate::job::NewJob;
use crate::workflow::Target;

fn at(secs: u64) -> Timestamp {
    Timestamp::default().plus_secs(secs)
}

fn web() -> ComponentName {
    "web".parse().unwrap()
}

fn job(serial: u64, state: JobState) -> Job {
    let target = Target::Health { component: web(), gate: false, version: None };
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
            let next = LastHealth::after(before.as_ref(), &web(), &job(serial, succeeded(state, "")), at(now));
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
                let found = LastHealth::after(None, &web(), &job(1, succeeded(*state, "")), at(*since))?;
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
