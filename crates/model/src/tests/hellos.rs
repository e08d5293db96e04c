//! Hellos: the rules hold in the whole space, each seeded mistake breaks one, and the model's keys equal those of an install.

use std::collections::{BTreeMap, BTreeSet};

use ed25519_dalek::SigningKey;
use freehold_domain::install::{HelloStep, Install, Serves};
use freehold_protocol::envelope::PublicKey;
use freehold_protocol::report::Hello;
use freehold_protocol::{KeyId, Timestamp};
use proptest::prelude::*;

use crate::bug::{Bug, Seed};
use crate::explore::{check_hellos, find_cycle, hunt_hellos};
use crate::hellos::{Hellos, Keys};
use crate::tests::mutants::each_breaks_a_rule;

#[test]
fn a_machine_that_lives_is_believed_in_the_end_and_no_late_hello_replaces_it() {
    let checked = check_hellos();

    println!("{} worlds, {} steps, {:.1?}", checked.unique, checked.steps, checked.took);
    assert!(checked.broken.is_empty(), "{:#?}", checked.broken);
    assert_eq!(checked.missing, Vec::<&str>::new());
    assert!(checked.exhausted);
    assert!(checked.unique >= 10_000, "only {} worlds: something has stopped happening", checked.unique);
}

#[test]
fn nothing_happens_in_circles() {
    assert_eq!(find_cycle(&Hellos::new(Seed::default())), None);
}

#[test]
fn every_seeded_mistake_breaks_a_rule() {
    each_breaks_a_rule(Bug::OF_HELLOS, |bug| hunt_hellos(bug.into()));
}

fn key(number: u8) -> PublicKey {
    SigningKey::from_bytes(&[number + 1; 32]).verifying_key().into()
}

fn hello(number: u8) -> Hello {
    Hello {
        public_key: key(number),
        version: "0.1.0".into(),
        slots: 4,
        host: "i-1".into(),
        inputs: BTreeMap::new(),
        secrets: None,
        accepted_contract: None,
        proof: None,
        sealing_key: None,
        changes: None,
        decisions: Vec::new(),
        roles: None,
    }
}

/// Returns the keys that the install believes and has retired.
fn keys_of(install: &Install) -> (Option<(KeyId, u64)>, BTreeSet<KeyId>) {
    let current = install.runner.as_ref();
    let current = current.map(|runner| (runner.public_key.key_id(), runner.announced_at.as_millis()));
    (current, install.retired.iter().cloned().collect())
}

proptest! {
    #[test]
    fn the_model_believes_whom_the_install_believes(hellos in prop::collection::vec((0..4_u8, 0..12_u8), 1..24)) {
        let serves = Serves::App { app: "demo".parse().unwrap(), version: None };
        let (id, account) = ("globex".parse().unwrap(), "222222222222".parse().unwrap());
        let mut install = Install::new(id, serves, account, "eu-west-1".into(), Timestamp::default());
        let mut keys = Keys::default();
        for (number, sent_at) in hellos {
            let at = Timestamp::from_millis(u64::from(sent_at));
            let is_heard = match install.on_hello(&hello(number), at, at) {
                Ok(HelloStep::Changed(next) | HelloStep::Late(next)) => {
                    install = *next;
                    true
                }
                Ok(HelloStep::Already) => true,
                Err(_) => false,
            };
            let next = keys.on_hello(Seed::default(), number, sent_at);
            prop_assert_eq!(next.is_some(), is_heard);
            keys = next.unwrap_or(keys);

            let current = keys.current.map(|(number, at)| (key(number).key_id(), u64::from(at)));
            let retired = (0..4).filter(|number| keys.is_retired(*number)).map(|number| key(number).key_id()).collect();
            prop_assert_eq!(keys_of(&install), (current, retired));
        }
    }
}
