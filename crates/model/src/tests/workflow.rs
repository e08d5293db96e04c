//! Workflows: the rules hold in every space, each seeded mistake breaks one, and nothing happens in circles.

use crate::bug::Bug;
use crate::explore::{check_workflow, find_cycle, hunt_workflows};
use crate::tests::mutants::each_breaks_a_rule;
use crate::workflow::world::Space;

fn holds(space: Space, at_least: usize) {
    let checked = check_workflow(space);

    println!("{}: {} worlds, {} steps, {:.1?}", checked.name, checked.unique, checked.steps, checked.took);
    assert!(checked.broken.is_empty(), "{:#?}", checked.broken);
    assert!(checked.exhausted);
    assert_eq!(checked.missing, Vec::<&str>::new(), "never possible, so that rules hold for want of it");
    assert!(checked.unique >= at_least, "only {} worlds: something has stopped happening", checked.unique);
}

#[test]
fn a_component_with_a_gate_holds_whatever_is_lost_or_fails() {
    holds(Space::GATE, 100_000);
}

#[test]
fn components_side_by_side_hold_when_a_person_cancels() {
    holds(Space::CANCEL, 100_000);
}

#[test]
fn components_side_by_side_hold_when_an_execution_fails() {
    holds(Space::ERROR, 100_000);
}

#[test]
fn every_seeded_mistake_breaks_a_rule() {
    each_breaks_a_rule(Bug::OF_WORKFLOWS, |bug| hunt_workflows(bug.into()));
}

#[test]
fn nothing_happens_in_circles() {
    let gate = Space { failures: 1, ..Space::GATE };
    let cancel = Space { failures: 1, ..Space::CANCEL };
    let error = Space { lost: 0, ..Space::ERROR };

    for space in [gate, cancel, error] {
        assert_eq!(find_cycle(&space), None, "{}", space.name);
    }
}
