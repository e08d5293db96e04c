//! Approvals: no sequence of events orders a job with a plan that not both sides have approved; seeded mistakes do.

use crate::bug::Bug;
use crate::explore::{check_approvals, hunt_approvals};
use crate::tests::mutants::each_breaks_a_rule;

#[test]
fn a_job_is_ordered_only_with_a_plan_that_both_sides_approved_in_time() {
    let checked = check_approvals();

    println!("{} worlds, {} steps, {:.1?}", checked.unique, checked.steps, checked.took);
    assert!(checked.broken.is_empty(), "{:#?}", checked.broken);
    assert_eq!(checked.missing, Vec::<&str>::new());
    assert!(checked.exhausted);
    assert!(checked.unique >= 100, "only {} worlds: something has stopped happening", checked.unique);
}

#[test]
fn each_seeded_mistake_about_approvals_breaks_that() {
    each_breaks_a_rule(Bug::OF_APPROVALS, |bug| hunt_approvals(bug.into()));
}
