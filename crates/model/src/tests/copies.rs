//! Copies of an order: the rules hold in every space, each seeded mistake breaks one, and nothing happens in circles.

use crate::bug::Bug;
use crate::copies::world::Space;
use crate::explore::{check_copies, find_cycle, hunt_copies};
use crate::tests::mutants::each_breaks_a_rule;

fn holds(space: Space, at_least: usize) {
    let checked = check_copies(space);

    println!("{}: {} worlds, {} steps, {:.1?}", checked.name, checked.unique, checked.steps, checked.took);
    assert!(checked.broken.is_empty(), "{:#?}", checked.broken);
    assert!(checked.exhausted);
    assert_eq!(checked.missing, Vec::<&str>::new(), "never possible, so that rules hold for want of it");
    assert!(checked.unique >= at_least, "only {} worlds: something has stopped happening", checked.unique);
}

#[test]
fn an_order_holds_with_a_copy_behind_it() {
    holds(Space::BEHIND, 200_000);
}

#[test]
fn an_order_that_is_put_back_holds_with_a_copy_behind_it() {
    holds(Space::BEHIND_PUT_BACK, 200_000);
}

#[test]
fn an_order_holds_with_a_copy_in_another_message_group() {
    holds(Space::OTHER_GROUP, 20_000);
}

#[test]
fn an_order_holds_with_a_copy_beside_it() {
    holds(Space::BESIDE, 500_000);
}

#[test]
fn an_order_that_is_put_back_holds_with_a_copy_beside_it() {
    holds(Space::BESIDE_PUT_BACK, 100_000);
}

#[test]
fn an_order_that_is_given_back_holds_with_a_copy_beside_it() {
    holds(Space::GIVEN_BACK, 50_000);
}

#[test]
fn an_order_that_is_given_back_holds_with_a_copy_beside_it_when_a_process_is_killed() {
    holds(Space::GIVEN_BACK_KILLED, 300_000);
}

#[test]
fn an_order_holds_with_a_copy_beside_it_on_three_machines() {
    holds(Space::THREE_MACHINES, 200_000);
}

#[test]
fn every_seeded_mistake_breaks_a_rule() {
    each_breaks_a_rule(Bug::OF_COPIES, |bug| hunt_copies(bug.into()));
}

#[test]
fn nothing_happens_in_circles() {
    let behind = Space { receives: 2, put_backs: 1, ..Space::BEHIND };
    let three = Space { crashes: 0, ..Space::THREE_MACHINES };

    for space in [behind, three, Space::GIVEN_BACK, Space::OTHER_GROUP, Space::BESIDE_PUT_BACK] {
        assert_eq!(find_cycle(&space), None, "{}", space.name);
    }
}
