//! Installs: names, switches, runners and the keys of runners.

use ed25519_dalek::SigningKey;

use super::name::check_name;
use super::*;

fn install() -> Install {
    let serves = Serves::App { app: "demo".parse().unwrap(), version: None };
    let (id, account) = ("globex".parse().unwrap(), "222222222222".parse().unwrap());
    Install::new(id, serves, account, "eu-west-1".into(), Timestamp::default())
}

fn key(seed: u8) -> PublicKey {
    SigningKey::from_bytes(&[seed; 32]).verifying_key().into()
}

fn hello(seed: u8) -> Hello {
    let inputs = BTreeMap::from([("InputDomain".to_owned(), "globex.example".to_owned())]);
    Hello {
        public_key: key(seed),
        version: "0.1.0".into(),
        slots: 4,
        host: "i-1".into(),
        inputs,
        secrets: None,
        accepted_contract: None,
        proof: None,
        sealing_key: Some(SealingKey::from_bytes([seed; 32])),
        changes: None,
        decisions: Vec::new(),
        roles: None,
    }
}

/// Returns what `install` makes of `hello` when the queue took it at `sent_at`.
fn hears(install: &Install, hello: &Hello, sent_at: u64) -> Result<HelloStep, InstallError> {
    install.on_hello(hello, Timestamp::from_millis(sent_at), Timestamp::from_millis(1000 + sent_at))
}

fn changed(step: Result<HelloStep, InstallError>) -> Install {
    match step {
        Ok(HelloStep::Changed(install)) => *install,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_replaced_runner_never_comes_back() {
    let first = changed(hears(&install(), &hello(1), 1));
    let second = changed(hears(&first, &hello(2), 2));

    let back = hears(&second, &hello(1), 3);

    assert!(matches!(back, Err(InstallError::Retired { .. })));
    assert_eq!(hears(&second, &hello(2), 2), Ok(HelloStep::Already));
}

#[test]
fn reports_that_were_taken_before_the_replacement_are_older_than_it_in_either_order_of_the_hellos() {
    let in_order = changed(hears(&changed(hears(&install(), &hello(1), 10)), &hello(2), 20));
    let Ok(HelloStep::Late(late)) = hears(&changed(hears(&install(), &hello(2), 20)), &hello(1), 10) else {
        panic!("the hello was not late")
    };

    for install in [in_order, *late] {
        let before = [19, 20].map(|at| install.was_replaced_after(&key(1).key_id(), Timestamp::from_millis(at)));
        assert_eq!(before, [true, false]);
        assert!(!install.was_replaced_after(&key(2).key_id(), Timestamp::from_millis(1)));
    }
}

#[test]
fn a_late_hello_of_a_dead_machine_retires_its_own_key_and_not_the_living_runner() {
    let living = changed(hears(&install(), &hello(2), 20));

    let Ok(HelloStep::Late(after)) = hears(&living, &hello(1), 10) else { panic!("the hello was not late") };

    assert_eq!(after.runner, living.runner);
    assert!(matches!(hears(&after, &hello(1), 30), Err(InstallError::Retired { .. })));
}

#[test]
fn an_install_accepts_keys_without_end_and_forgets_the_oldest_so_that_they_do_not_fill_its_row() {
    const NOW: u64 = 1_700_000_000_000;
    let mut install = changed(hears(&install(), &hello(1), NOW));
    let keys: Vec<KeyId> =
        (0..MAX_RETIRED).map(|at| serde_json::from_str(&format!("\"{at:032x}\"")).unwrap()).collect();
    assert_eq!(keys[0].as_str().len(), key(1).key_id().as_str().len());
    // The first key is the last in order of time.
    let times = (0..MAX_RETIRED as u64).map(|at| Timestamp::from_millis(NOW - 1 - at));
    install.replaced_at = keys.iter().cloned().zip(times).collect();
    install.retired = keys.iter().cloned().collect();

    let living = changed(hears(&install, &Hello { version: "9.9.9".into(), ..hello(1) }, NOW + 10));
    let next = changed(hears(&living, &hello(2), NOW + 20));
    let late = match hears(&living, &hello(3), NOW + 5) {
        Ok(HelloStep::Late(late)) => *late,
        other => panic!("{other:?}"),
    };

    assert_eq!(living.retired, install.retired, "the same runner announced itself");
    assert_eq!(next.runner.as_ref().map(|runner| runner.public_key.key_id()), Some(key(2).key_id()));
    assert!(!next.retired.contains(&keys[MAX_RETIRED - 1]) && next.retired.contains(&keys[0]));
    assert!(next.retired.contains(&key(1).key_id()) && late.retired.contains(&key(3).key_id()));
    for install in [&living, &next, &late] {
        assert_eq!((install.retired.len(), install.replaced_at.len()), (MAX_RETIRED, MAX_RETIRED));
    }
    // A row has at most 400 KB (Amazon DynamoDB developer guide, "Quotas"). The rest is for inputs and answers; long rows
    // are deflated beside.
    let bytes = serde_json::to_string(&living).unwrap().len();
    assert!(bytes < 350 * 1024, "{bytes}");
}

#[test]
fn the_build_runner_has_a_new_key_on_each_machine_without_end_and_the_oldest_key_is_forgotten() {
    let mut install = Install { serves: Serves::Builds, ..changed(hears(&install(), &hello(1), 5_000)) };
    let old: Vec<KeyId> = (0..MAX_RETIRED).map(|at| serde_json::from_str(&format!("\"{at:032x}\"")).unwrap()).collect();
    // The first key is the last in order of time.
    let times = (0..MAX_RETIRED as u64).rev().map(Timestamp::from_millis);
    install.replaced_at = old.iter().cloned().zip(times).collect();
    install.retired = old.iter().cloned().collect();

    let next = changed(hears(&install, &hello(2), 6_000));

    assert_eq!((next.retired.len(), next.replaced_at.len()), (MAX_RETIRED_BUILDERS, MAX_RETIRED_BUILDERS));
    assert!(!next.retired.contains(&old[MAX_RETIRED - 1]) && next.retired.contains(&old[0]));
    assert!(next.retired.contains(&key(1).key_id()));
    assert!(matches!(hears(&next, &hello(1), 7_000), Err(InstallError::Retired { .. })));
}

#[test]
fn an_older_hello_of_the_same_runner_brings_back_neither_answers_nor_consent() {
    let newer = Hello { inputs: BTreeMap::new(), accepted_contract: Some(Digest::of(b"two")), ..hello(1) };
    let living = changed(hears(&install(), &newer, 20));

    assert_eq!(hears(&living, &hello(1), 10), Ok(HelloStep::Already));
}

#[test]
fn a_runner_that_announces_itself_again_is_newer_than_what_was_sent_between() {
    let first = changed(hears(&install(), &hello(1), 10));
    let again = changed(hears(&first, &hello(1), 30));

    let between = hears(&again, &hello(2), 20);

    assert!(matches!(between, Ok(HelloStep::Late(_))));
    assert_eq!(again.runner.unwrap().since, first.runner.unwrap().since);
}

proptest::proptest! {
    /// The order in which the hellos of a history were sent decides, and not the order in which they arrive.
    #[test]
    fn the_newest_hello_wins_in_whatever_order_hellos_arrive(
        arrivals in proptest::sample::subsequence((0..6_u8).collect::<Vec<_>>(), 1..=6),
        seed in proptest::prelude::any::<u64>(),
    ) {
        let mut order = arrivals.clone();
        order.sort_by_key(|at| seed.rotate_left(u32::from(*at) * 11) % 97);
        let mut now = install();

        for at in order {
            // Machine 0 sends hellos 0 and 1, machine 1 sends 2 and 3, machine 2 sends 4 and 5.
            match hears(&now, &hello(at / 2), u64::from(at) + 1) {
                Ok(HelloStep::Changed(next) | HelloStep::Late(next)) => now = *next,
                Ok(HelloStep::Already) | Err(InstallError::Retired { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }

        let newest = arrivals.iter().max().unwrap();
        let runner = now.runner.unwrap();
        assert_eq!((runner.public_key, runner.announced_at.as_millis()), (key(newest / 2), u64::from(*newest) + 1));
    }
}

#[test]
fn a_hello_brings_the_customers_answers_and_another_one_replaces_them() {
    let first = changed(hears(&install(), &hello(1), 1));
    let other = BTreeMap::from([("InputZones".to_owned(), "3".to_owned())]);

    let second = changed(hears(&first, &Hello { inputs: other.clone(), ..hello(1) }, 2));

    assert_eq!(first.answers["InputDomain"], "globex.example");
    assert_eq!(second.answers, other);
    assert_eq!(second.runner.unwrap().since, first.runner.unwrap().since);
}

#[test]
fn a_hello_brings_the_customers_consent_and_a_new_one_replaces_it() {
    let accepts = |text: &[u8]| Hello { accepted_contract: Some(Digest::of(text)), ..hello(1) };
    let first = changed(hears(&install(), &accepts(b"one"), 1));

    let second = changed(hears(&first, &accepts(b"two"), 2));

    assert_eq!((first.accepted_contract, install().accepted_contract), (Some(Digest::of(b"one")), None));
    assert_eq!(second.accepted_contract, Some(Digest::of(b"two")));
    assert_eq!(hears(&second, &accepts(b"two"), 2), Ok(HelloStep::Already));
}

#[test]
fn a_second_live_deploy_is_refused() {
    let one = WorkflowId::derive("globex", "1");
    let two = WorkflowId::derive("globex", "2");
    let (held, first) = install().begin(&one, true).unwrap();

    let error = held.begin(&two, true).unwrap_err();

    assert_eq!((first, held.next_serial), (1, 2));
    assert_eq!(error.to_string(), format!("install `globex` is being worked on by `{one}`; wait for it or cancel it"));
    assert!(held.release(&one, None).begin(&two, true).is_ok());
}

#[test]
fn each_life_of_an_install_has_a_provisioning_workflow_of_its_own() {
    let at = |created_at: Timestamp| Install { created_at, ..install() };
    let (first, second) = (at(Timestamp::from_millis(1)), at(Timestamp::from_millis(2)));
    let row = serde_json::to_value(&first).unwrap();
    let read: Install = serde_json::from_value(row.clone()).unwrap();
    let mut earlier = row;
    earlier.as_object_mut().unwrap().remove("dated_provisioning");
    let earlier: Install = serde_json::from_value(earlier).unwrap();

    assert_ne!(first.provisioning(), second.provisioning());
    assert_eq!(read.provisioning(), first.provisioning());
    assert_eq!(earlier.provisioning(), WorkflowId::derive("globex", "provision"));
}

#[test]
fn a_name_that_is_a_prefix_of_another_is_refused_both_ways() {
    let existing: Vec<InstallId> = vec!["prod".parse().unwrap(), "stage-eu".parse().unwrap()];

    for bad in ["pro", "prod-2", "stage", "build", "fh", "fh-globex"] {
        assert!(check_name(&bad.parse().unwrap(), &existing).is_err(), "{bad}");
    }
    assert!(check_name(&"globex".parse().unwrap(), &existing).is_ok());
}

#[test]
fn the_sealing_key_is_that_of_the_current_runner() {
    let first = changed(hears(&install(), &hello(1), 10));
    let second = changed(hears(&first, &hello(2), 20));
    let other = Hello { sealing_key: Some(SealingKey::from_bytes([7; 32])), ..hello(2) };
    let third = changed(hears(&second, &other, 30));
    let without = changed(hears(&third, &Hello { sealing_key: None, ..hello(2) }, 40));

    let keys =
        [&install(), &first, &second, &third, &without].map(|one| one.sealing().key.map(|key| key.as_bytes()[0]));

    assert_eq!(keys, [None, Some(1), Some(2), Some(7), None]);
}

#[test]
fn a_workflow_holds_its_install_again_only_while_no_later_one_has_held_it() {
    let [one, two, run] = ["1", "2", "run"].map(|cause| WorkflowId::derive("globex", cause));
    let (held, serial) = install().begin(&one, true).unwrap();
    let released = held.release(&one, None);
    let (after_run, _) = released.begin(&run, false).unwrap();
    let (later, _) = released.begin(&two, true).unwrap();
    let of_earlier_version = Install { last_exclusive: 0, ..after_run.clone() };

    let again = after_run.hold_again(&one, serial).unwrap();

    assert_eq!((again.live.as_ref(), again.next_serial, again.last_exclusive), (Some(&one), 3, 1));
    assert!(matches!(later.hold_again(&one, serial), Err(InstallError::Live { .. })));
    assert!(matches!(later.release(&two, None).hold_again(&one, serial), Err(InstallError::Later { .. })));
    assert!(matches!(of_earlier_version.hold_again(&one, serial), Err(InstallError::Later { .. })));
}
