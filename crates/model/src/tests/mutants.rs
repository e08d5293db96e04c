//! Every seeded mistake breaks a rule.

use std::collections::HashSet;

use crate::bounds::Bounds;
use crate::bug::Bug;
use crate::explore::hunt;

#[test]
fn every_seeded_mistake_breaks_a_rule() {
    let mut survivors = Vec::new();

    for bug in Bug::ALL {
        let found = hunt(Bounds::ground_of(bug));
        for (rule, steps) in &found.broken {
            println!("{bug:?} breaks \"{rule}\" in {} steps, after {} worlds", steps.len(), found.unique);
        }
        if found.broken.is_empty() {
            survivors.push(bug);
        }
    }

    assert_eq!(survivors, []);
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
