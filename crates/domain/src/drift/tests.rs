use freehold_protocol::approval::ChangeKind;
use proptest::prelude::*;

use super::*;

const AT: Timestamp = Timestamp::from_millis(1_000_000);

fn workflow(serial: u64) -> WorkflowId {
    WorkflowId::derive("prod", &format!("drift {serial}"))
}

fn resource(address: &str, attributes: &[&str]) -> DriftedResource {
    DriftedResource {
        address: address.to_owned(),
        kind: "aws_sqs_queue".to_owned(),
        change: ChangeKind::Update,
        attributes: attributes.iter().map(ToString::to_string).collect(),
        more_attributes: 0,
    }
}

fn found(addresses: &[&str]) -> DriftFound {
    DriftFound::of(addresses.iter().map(|address| resource(address, &["tags"])).collect())
}

fn checked(before: Option<&Drift>, serial: u64, result: Result<DriftFound, String>) -> Option<Drift> {
    let workflow = workflow(serial);
    Drift::checked(before, Check { workflow: &workflow, serial, at: AT.plus_secs(serial) }, result)
}

fn state(drift: &Drift) -> DriftState {
    drift.state(AT, |_| false)
}

fn acknowledged() -> Acknowledged {
    Acknowledged { by: AskedBy::Schedule, reason: "until Friday".to_owned(), at: AT.plus_secs(50) }
}

fn changes(drift: &Drift) -> Vec<(&'static str, u64)> {
    let name = |change: &DriftChange| match change {
        DriftChange::Found { .. } => "found",
        DriftChange::Cleared { .. } => "cleared",
        DriftChange::Deployed { .. } => "deployed",
        DriftChange::Acknowledged { .. } => "acknowledged",
    };
    drift.events.iter().map(|event| (name(&event.what), event.resources)).collect()
}

#[test]
fn what_differs_keeps_the_time_of_the_first_check_that_found_it() {
    let first = checked(None, 1, Ok(found(&["a"]))).unwrap();

    let second = checked(Some(&first), 2, Ok(found(&["a", "b"]))).unwrap();

    let since: Vec<_> = second.found.iter().map(|one| (one.resource.address.as_str(), one.since)).collect();
    assert_eq!(since, [("a", AT.plus_secs(1)), ("b", AT.plus_secs(2))]);
    assert_eq!((state(&second), changes(&second)), (DriftState::Drifted, vec![("found", 1), ("found", 1)]));
}

#[test]
fn a_difference_that_came_back_is_new() {
    let first = checked(None, 1, Ok(found(&["a"]))).unwrap();
    let clean = checked(Some(&first), 2, Ok(DriftFound::default())).unwrap();

    let again = checked(Some(&clean), 3, Ok(found(&["a"]))).unwrap();

    assert_eq!(state(&clean), DriftState::InSync);
    assert_eq!(again.found[0].since, AT.plus_secs(3));
    assert_eq!(changes(&again), [("found", 1), ("cleared", 1), ("found", 1)]);
}

#[test]
fn a_check_that_could_not_find_out_keeps_what_was_found() {
    let first = checked(None, 1, Ok(found(&["a"]))).unwrap();

    let unknown = checked(Some(&first), 2, Err("the mode is switched off".to_owned())).unwrap();

    assert_eq!((state(&unknown), unknown.found.len()), (DriftState::Unknown, 1));
    let known = checked(Some(&unknown), 3, Ok(found(&["a"]))).unwrap();
    assert_eq!((state(&known), known.found[0].since), (DriftState::Drifted, AT.plus_secs(1)));
}

#[test]
fn an_older_check_that_ends_later_changes_nothing() {
    let newer = checked(None, 5, Ok(DriftFound::default())).unwrap();

    assert_eq!(checked(Some(&newer), 4, Ok(found(&["a"]))), None);
    assert!(checked(Some(&newer), 5, Ok(found(&["a"]))).is_some(), "a repeated report is taken again");
}

#[test]
fn a_deploy_leaves_nothing_that_differs_and_older_checks_do_not_bring_it_back() {
    let drifted = checked(None, 3, Ok(found(&["a", "b"]))).unwrap();

    let deployed = Drift::deployed(Some(&drifted), &workflow(7), 7, AT.plus_secs(100)).unwrap();

    assert_eq!((deployed.found.len(), changes(&deployed)[0]), (0, ("deployed", 2)));
    assert_eq!(deployed.state(AT.plus_secs(100), |_| false), DriftState::Unchecked);
    assert_eq!(checked(Some(&deployed), 6, Ok(found(&["a"]))), None);
    assert_eq!(Drift::deployed(None, &workflow(7), 7, AT), None);
}

#[test]
fn an_acknowledgement_holds_while_the_resource_differs_in_the_same_attributes() {
    let drifted = checked(None, 1, Ok(found(&["a"]))).unwrap();

    let known = drifted.acknowledge("a", &acknowledged()).unwrap();

    assert_eq!(drifted.acknowledge("b", &acknowledged()), None);
    assert_eq!((state(&known), changes(&known)[0]), (DriftState::Acknowledged, ("acknowledged", 1)));
    assert_eq!(known.acknowledge("a", &acknowledged()).unwrap(), known, "twice is once");
    assert_eq!(state(&checked(Some(&known), 2, Ok(found(&["a"]))).unwrap()), DriftState::Acknowledged);
    let other = DriftFound::of(vec![resource("a", &["policy", "tags"])]);
    assert_eq!(state(&checked(Some(&known), 2, Ok(other)).unwrap()), DriftState::Drifted);
    assert_eq!(state(&checked(Some(&known), 2, Ok(found(&["a", "b"]))).unwrap()), DriftState::Drifted);
    // Attributes that are only counted may be others.
    let counted = || DriftFound::of(vec![DriftedResource { more_attributes: 1, ..resource("a", &["tags"]) }]);
    let known = checked(None, 1, Ok(counted())).unwrap().acknowledge("a", &acknowledged()).unwrap();
    assert_eq!(state(&checked(Some(&known), 2, Ok(counted())).unwrap()), DriftState::Drifted);
}

#[test]
fn what_a_rule_ignores_does_not_make_a_part_drifted_and_what_is_only_counted_does() {
    let drifted = checked(None, 1, Ok(found(&["a"]))).unwrap();
    let many = checked(None, 1, Ok(DriftFound { more: 1, ..found(&["a"]) })).unwrap();

    assert_eq!(drifted.state(AT, |one| one.address == "a"), DriftState::InSync);
    assert_eq!(drifted.state(AT, |one| one.address == "b"), DriftState::Drifted);
    assert_eq!(many.state(AT, |_| true), DriftState::Drifted);
}

proptest! {
    #[test]
    fn checks_in_any_order_end_as_the_newest_of_them_says(
        results in proptest::collection::vec(proptest::collection::btree_set("[a-d]", 0..4), 1..8),
        order in proptest::collection::vec(0_usize..8, 1..20),
    ) {
        let mut now: Option<Drift> = None;
        let mut newest = None;
        for at in order.into_iter().map(|at| at % results.len()) {
            let addresses: Vec<&str> = results[at].iter().map(String::as_str).collect();
            if let Some(next) = checked(now.as_ref(), at as u64, Ok(found(&addresses))) {
                now = Some(next);
            }
            newest = newest.max(Some(at));
        }

        let now = now.unwrap();
        let held: std::collections::BTreeSet<String> = now.found.iter().map(|one| one.resource.address.clone()).collect();
        prop_assert_eq!(&held, &results[newest.unwrap()]);
        prop_assert!(now.found.iter().all(|one| one.since <= now.checked_at));
        prop_assert!(now.events.len() <= MAX_EVENTS);
    }

    #[test]
    fn found_less_gone_is_what_differs(results in proptest::collection::vec(proptest::collection::btree_set("[a-d]", 0..4), 1..9)) {
        let mut now: Option<Drift> = None;
        for (at, addresses) in results.iter().enumerate() {
            let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
            now = checked(now.as_ref(), at as u64, Ok(found(&addresses)));
        }

        let now = now.unwrap();
        let sum = |wanted: &str| changes(&now).iter().filter(|(name, _)| *name == wanted).map(|(_, count)| count).sum::<u64>();
        prop_assert_eq!(sum("found") - sum("cleared"), now.found.len() as u64);
    }
}
