//! The short form of the figure `artifacts.tampered_refused`.

#![cfg(test)]

use std::collections::BTreeSet;

use freehold_fuzz::{Draw, Target as _, run};
use freehold_tests::tamper::Tampers;

const TAMPERINGS: u64 = 600;

#[test]
fn what_is_good_is_accepted() {
    let tampers = Tampers::new(1).unwrap();

    let accepted = tampers.accepted_originals();

    assert!(accepted.as_ref().is_ok_and(|count| *count > 80), "{accepted:?}");
}

#[test]
fn whatever_is_tampered_with_is_refused() {
    let tampers = Tampers::new(2).unwrap();

    let outcome = run(&tampers, 2, 0..TAMPERINGS, 4);

    let lines: Vec<String> =
        outcome.crashes.iter().map(|crash| format!("{}: {}: {}", crash.number, crash.input, crash.message)).collect();
    assert_eq!((outcome.attempted, outcome.crashed), (TAMPERINGS, 0), "{}", lines.join("\n"));
    let refused = tampers.refused();
    let families: BTreeSet<&str> = refused.keys().map(|(family, _)| *family).collect();
    assert_eq!(families.len(), 7, "{families:?}");
    assert_eq!(refused.values().sum::<u64>(), TAMPERINGS);
}

#[test]
fn a_tampering_is_made_again_by_its_seed_and_number() {
    let (once, again) = (Tampers::new(3).unwrap(), Tampers::new(3).unwrap());

    let made = |tampers: &Tampers| -> Vec<String> {
        (0..300).map(|number| format!("{:?}", tampers.input(&mut Draw::new(3, number)))).collect()
    };

    assert_eq!(made(&once), made(&again));
}
