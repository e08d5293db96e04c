//! Every seeded mistake breaks a rule.

use std::collections::HashSet;

use crate::bounds::Bounds;
use crate::bug::Bug;
use crate::explore::{Checked, hunt};

/// Hunts each mistake with `hunt`, prints what it breaks, and fails if one of them breaks no rule.
pub(super) fn each_breaks_a_rule<A>(bugs: impl IntoIterator<Item = Bug>, hunt: impl Fn(Bug) -> Checked<A>) {
    let mut survivors = Vec::new();

    for bug in bugs {
        let found = hunt(bug);
        for (rule, steps) in &found.broken {
            println!("{bug:?} breaks \"{rule}\" in {} steps, after {} worlds", steps.len(), found.unique);
        }
        if found.broken.is_empty() {
            survivors.push(bug);
        }
    }

    assert_eq!(survivors, []);
}

#[test]
fn every_seeded_mistake_breaks_a_rule() {
    each_breaks_a_rule(Bug::ALL, |bug| hunt(Bounds::ground_of(bug)));
}

/// The figure `model.mutants_killed` hunts these five lists.
#[test]
fn each_mistake_is_in_one_list() {
    let all = [&Bug::ALL[..], &Bug::OF_APPROVALS, &Bug::OF_COPIES, &Bug::OF_HELLOS, &Bug::OF_WORKFLOWS].concat();
    let different: HashSet<&Bug> = all.iter().collect();

    // The last one of the enumeration.
    let count = Bug::RollBackTaskIsRemovedFirst as usize + 1;
    assert_eq!((all.len(), different.len()), (count, count));
}
