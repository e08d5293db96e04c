//! The short form of the fuzzers, and inputs that once crashed.

use freehold_appconfig::Fetched;
use freehold_appconfig::load_files;

use crate::seeds::FILES;
use crate::{Configs, Draw, Outcome, Target, Templates, run};

const INPUTS: u64 = 20_000;

fn crashes(outcome: &Outcome) -> String {
    let lines =
        outcome.crashes.iter().take(3).map(|crash| format!("{}: {}\n{}", crash.number, crash.message, crash.input));
    format!("{} of {} crashed\n{}", outcome.crashed, outcome.attempted, lines.collect::<Vec<_>>().join("\n"))
}

#[test]
fn no_broken_template_crashes() {
    let outcome = run(&Templates::default(), 1, 0..INPUTS, 2);

    assert_eq!(outcome.attempted, INPUTS);
    assert_eq!(outcome.crashed, 0, "{}", crashes(&outcome));
    assert!(outcome.accepted > INPUTS / 20, "only {} were accepted; the inputs are too broken", outcome.accepted);
}

#[test]
fn the_config_that_inputs_are_made_from_is_good() {
    let files = FILES.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect();

    let loaded = load_files("shop", &files, &Fetched::new());

    assert!(loaded.is_ok(), "{}", loaded.unwrap_err());
}

#[test]
fn no_broken_config_crashes() {
    let outcome = run(&Configs::default(), 1, 0..INPUTS, 2);

    assert_eq!(outcome.attempted, INPUTS);
    assert_eq!(outcome.crashed, 0, "{}", crashes(&outcome));
    assert!(outcome.accepted > INPUTS / 20, "only {} were accepted; the inputs are too broken", outcome.accepted);
}

#[test]
fn an_input_is_made_again_by_its_seed_and_number() {
    let (configs, templates) = (Configs::default(), Templates::default());

    let made = || (0..50).map(|n| (configs.input(&mut Draw::new(7, n)), templates.input(&mut Draw::new(7, n))));

    assert_eq!(format!("{:?}", made().collect::<Vec<_>>()), format!("{:?}", made().collect::<Vec<_>>()));
}

/// A target that panics at some inputs.
struct Fragile;

impl Target for Fragile {
    type Input = usize;

    fn input(&self, draw: &mut Draw) -> usize {
        draw.below(10)
    }

    fn feed(&self, input: &usize) -> bool {
        assert!(*input != 3, "three is too many");
        *input < 5
    }
}

#[test]
fn a_crash_is_counted_with_its_input_and_message() {
    let outcome = run(&Fragile, 1, 0..1_000, 2);

    assert!(outcome.crashed > 50 && outcome.crashed < 200, "{}", outcome.crashed);
    assert!(outcome.accepted > 300, "{}", outcome.accepted);
    let first = outcome.crashes.first().unwrap();
    assert_eq!(first.input, "3");
    assert!(first.message.contains("three is too many"), "{}", first.message);
    assert_eq!(run(&Fragile, 1, first.number..first.number + 1, 1).crashed, 1);
}
